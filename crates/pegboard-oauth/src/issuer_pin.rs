//! Which authorization server gets the secret of the config's client, if the config does not say it: the first one that a server named, for ever.

use super::{
    account::OAuthAccount,
    error::OAuthError,
    metadata::{ServerMetadata, clip},
    stored::{PinnedIssuer, Session},
    token_store::TokenStore,
};

/// An account whose client is about to send its secret to an authorization server.
pub(super) struct IssuerPin<'a> {
    pub(super) store: &'a TokenStore,
    pub(super) account: &'a OAuthAccount,
    /// The sign-in that the account has.
    pub(super) session: Option<&'a Session>,
    /// The authorization server that the server names now.
    pub(super) server: &'a ServerMetadata,
}

impl IssuerPin<'_> {
    /// Fails if the secret of the account's client belongs to another authorization server.
    pub(super) async fn check(&self) -> Result<(), OAuthError> {
        let Self {
            store,
            account,
            session,
            server,
        } = self;
        if !is_open(account) {
            return Ok(());
        }
        let pinned = store.pinned_issuer(&account.pin_key()).await?.map(|pin| pin.issuer);
        let known = pinned.or_else(|| session.map(|session| session.issuer.clone()));
        match known {
            Some(known) if known.trim_end_matches('/') != server.issuer.trim_end_matches('/') => {
                Err(OAuthError::IssuerChanged {
                    now: clip(&server.issuer),
                    before: clip(&known),
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks it, and keeps the authorization server as the only one from now on. Called before the secret is sent.
    pub(super) async fn pin(&self) -> Result<(), OAuthError> {
        let Self {
            store, account, server, ..
        } = self;
        if !is_open(account) {
            return Ok(());
        }
        let key = account.pin_key();
        let _lock = store.lock(&key).await?;
        self.check().await?;
        if store.pinned_issuer(&key).await?.is_none() {
            store
                .pin_issuer(&key, &PinnedIssuer::new(account, &server.issuer))
                .await?;
        }
        Ok(())
    }
}

/// Whether the client proves who it is, and the config does not say to whom.
fn is_open(account: &OAuthAccount) -> bool {
    let settings = &account.settings;
    let has_secret = settings.client_secret.is_some() || settings.private_key.is_some();
    has_secret && !settings.names_authorization_server()
}
