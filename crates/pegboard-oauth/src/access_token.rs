//! [`AccessToken`]: a token that may be sent.

use std::time::Duration;

use super::{clock::unix_now, error::RETRY_AFTER, stored::Session};
use pegboard_base::secret::Secret;

/// How long a token is reused before the store is looked at again, so that a sign-in or sign-out elsewhere is noticed.
const MAX_REUSE: Duration = Duration::from_secs(60);

/// An access token, and how long it may be reused without asking again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    pub(crate) token: Secret,
    pub(crate) valid_for: Duration,
    /// The key that the token is bound to. Each request with the token needs a proof of it.
    pub(super) proof_key: Option<Secret>,
}

impl AccessToken {
    /// The token of a session that needs no renewal yet.
    pub(super) fn fresh(session: &Session) -> Self {
        Self::until(session, session.refresh_at(), MAX_REUSE)
    }

    /// The token of a session whose renewal failed. It is used while it is valid, and its renewal is tried again soon.
    pub(super) fn stale(session: &Session) -> Self {
        Self::until(session, session.expires_at(), RETRY_AFTER)
    }

    fn until(session: &Session, end: u64, most: Duration) -> Self {
        let left = Duration::from_secs(end.saturating_sub(unix_now()));
        Self {
            token: session.access_token.clone(),
            valid_for: left.min(most),
            proof_key: session.proof_key.clone().filter(|_| session.is_bound),
        }
    }
}
