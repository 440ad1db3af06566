//! [`Remembered`]: what is known of an account besides the store.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    access_token::AccessToken,
    error::{OAuthError, RETRY_AFTER},
    stored::Session,
};
use pegboard_base::secret::Secret;
use pegboard_config::OAuthConfig;

/// The longest time between renewals that are refused for a reason that does not pass by itself.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// What is known of an account besides the store.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// The token that was returned last, which is the one that a server refuses.
    pub(super) returned: Option<Secret>,
    /// The token that the store had when it was last compared with the one that is used.
    pub(super) followed: Option<Secret>,
    pub(super) failed: Option<Failed>,
    /// How many renewals have failed in a row.
    pub(super) failures: u32,
    /// Whether a renewal goes on that nobody waits for.
    pub(super) is_renewing: bool,
}

/// A renewal that failed, and is not tried again at once.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    pub(super) until: Instant,
    pub(super) error: OAuthError,
    /// The token that was to be renewed, and the settings. With others it is tried at once.
    pub(super) token: Option<Secret>,
    pub(super) settings: Arc<OAuthConfig>,
}

impl Remembered {
    /// Counts a failure, or forgets those before. `session` is the one whose renewal failed, `is_asked` says that a
    /// person is asked for more scopes.
    pub(super) fn note(
        &mut self,
        renewed: &Result<AccessToken, OAuthError>,
        session: Option<Session>,
        is_asked: bool,
        settings: &Arc<OAuthConfig>,
    ) {
        let Err(error) = renewed else {
            (self.failed, self.failures) = (None, 0);
            return;
        };
        let has_refresh_token = session.as_ref().is_some_and(|session| session.refresh_token.is_some());
        // Nothing was requested then.
        let is_at_once = match error {
            OAuthError::Setting(_) => true,
            error => is_asked || (error.needs_sign_in() && !has_refresh_token),
        };
        if is_at_once {
            self.failed = None;
            return;
        }
        let delay = match error.retry_after() {
            Some(after) => after,
            None => (RETRY_AFTER * 2_u32.saturating_pow(self.failures.min(8))).min(MAX_RETRY_AFTER),
        };
        self.failures = self.failures.saturating_add(1);
        self.failed = Some(Failed {
            until: Instant::now() + delay,
            error: error.clone(),
            token: session.map(|session| session.access_token),
            settings: settings.clone(),
        });
    }
}
