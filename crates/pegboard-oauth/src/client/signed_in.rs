//! Who has signed in, as the store says. No request is made.

use super::{OAuthClient, SessionSummary};
use crate::{account::OAuthAccount, error::OAuthError, stored::Session};
use futures_util::future::BoxFuture;

impl OAuthClient {
    /// Whether somebody has signed in, without a request.
    pub fn is_signed_in<'a>(&'a self, account: &'a OAuthAccount) -> BoxFuture<'a, Result<bool, OAuthError>> {
        Box::pin(async move {
            let stored = self.inner.store.account(&account.key()).await?;
            let is_usable = |session: &Session| session.refresh_token.is_some() || !session.has_expired();
            Ok(stored
                .and_then(|stored| stored.session)
                .is_some_and(|session| is_usable(&session)))
        })
    }

    /// The session of an account, without a request and without its tokens.
    pub fn session<'a>(
        &'a self,
        account: &'a OAuthAccount,
    ) -> BoxFuture<'a, Result<Option<SessionSummary>, OAuthError>> {
        Box::pin(async move {
            let stored = self.inner.store.account(&account.key()).await?;
            Ok(stored.and_then(SessionSummary::from_stored))
        })
    }
}
