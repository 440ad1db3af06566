//! [`Pegboard::sign_ins`]: every sign-in that is stored.

use super::{
    Pegboard,
    sign_in::{SignInError, SignedIn},
    sign_in_provider::account_of,
};
use crate::{caller::Principal, name::ServerName, oauth::OAuthAccount};

/// A sign-in of the token store, and whose it is. It has no token.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSignIn {
    /// The server. `None` if the config has no server with this URL and these settings any more.
    pub server: Option<ServerName>,
    /// The URL of the server, without its query.
    pub url: String,
    /// Whose sign-in it is. `None` for that of all views without a principal.
    pub principal: Option<Principal>,
    /// What is known of it.
    pub signed_in: SignedIn,
}

impl Pegboard {
    /// Every sign-in in the token store, of all principals, sorted by server. Servers that share a sign-in, because they have the same URL and settings,
    /// are listed with it one by one. Tokens that were obtained without a person are listed too.
    pub async fn sign_ins(&self) -> Result<Vec<StoredSignIn>, SignInError> {
        let servers = self.0.registry.configured();
        let accounts: Vec<OAuthAccount> = servers
            .iter()
            .filter_map(|server| Some(account_of(server.name(), &server.config().transport)?.0))
            .collect();
        let listed = self.0.factory.sign_ins.client().sessions(&accounts).await?;
        let sign_in = |listed: crate::oauth::ListedSession| StoredSignIn {
            server: listed.server,
            url: listed.url,
            principal: listed.principal,
            signed_in: SignedIn::from(listed.session),
        };
        Ok(listed.into_iter().map(sign_in).collect())
    }
}
