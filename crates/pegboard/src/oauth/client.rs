//! [`OAuthClient`]: access tokens of accounts, and the sign-ins that they need.

use std::{sync::Arc, time::Duration};

use super::{
    account::OAuthAccount, authorization::PendingSignIn, checked_http::CheckedHttp, error::OAuthError,
    redirect_uri::RedirectUri, token_store::TokenStore,
};
use crate::{credential::CredentialReason, secret::Secret};

/// An access token, and how long it may be reused without asking again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessToken {
    pub(crate) token: Secret,
    pub(crate) valid_for: Duration,
}

/// What a sign-out did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignedOut {
    /// There was nothing to sign out of.
    WasNot,
    /// The tokens are forgotten, and the authorization server has revoked them.
    Revoked,
    /// The tokens are forgotten. The authorization server cannot revoke tokens, or did not answer.
    OnlyForgotten,
}

/// Obtains, keeps and refreshes tokens. One for each board; clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct OAuthClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: CheckedHttp,
    store: TokenStore,
}

impl OAuthClient {
    pub(crate) fn new(store: TokenStore) -> Self {
        Self {
            inner: Arc::new(Inner {
                http: CheckedHttp::new(),
                store,
            }),
        }
    }

    pub(crate) fn store(&self) -> &TokenStore {
        &self.inner.store
    }

    /// Returns the access token of an account. Renews one that is near its end, or that the server has refused.
    pub(crate) async fn access_token(
        &self,
        account: &OAuthAccount,
        reason: CredentialReason<'_>,
    ) -> Result<AccessToken, OAuthError> {
        let _ = (account, reason);
        Err(OAuthError::NeedsSignIn("nobody has signed in".to_owned()))
    }

    /// Starts a sign-in: finds the authorization server, registers if needed, and returns the URL for the browser.
    pub(crate) async fn begin(
        &self,
        account: &OAuthAccount,
        redirect: &RedirectUri,
    ) -> Result<PendingSignIn, OAuthError> {
        let _ = (account, redirect);
        Err(OAuthError::Discovery("not built yet".to_owned()))
    }

    /// Finishes a sign-in with the URL that the browser was redirected to.
    pub(crate) async fn finish(&self, pending: PendingSignIn, redirected: &str) -> Result<(), OAuthError> {
        let _ = (pending, redirected);
        Err(OAuthError::Redirect("not built yet".to_owned()))
    }

    /// Revokes and forgets the tokens of an account.
    pub(crate) async fn sign_out(&self, account: &OAuthAccount) -> Result<SignedOut, OAuthError> {
        let _ = account;
        Ok(SignedOut::WasNot)
    }
}
