//! Who has signed in, as the store says. No request is made.

use super::{OAuthClient, SessionSummary};
use crate::{account::OAuthAccount, error::OAuthError, stored::Session};

impl OAuthClient {
    /// Whether somebody has signed in, without a request.
    pub async fn is_signed_in(&self, account: &OAuthAccount) -> Result<bool, OAuthError> {
        let stored = self.inner.store.account(&account.key()).await?;
        let is_usable = |session: &Session| session.refresh_token.is_some() || !session.has_expired();
        Ok(stored
            .and_then(|stored| stored.session)
            .is_some_and(|session| is_usable(&session)))
    }

    /// The session of an account, without a request and without its tokens.
    pub async fn session(&self, account: &OAuthAccount) -> Result<Option<SessionSummary>, OAuthError> {
        let stored = self.inner.store.account(&account.key()).await?;
        Ok(stored.and_then(SessionSummary::from_stored))
    }
}
