//! [`Pegboard::sign_ins`]: every sign-in that is stored.

use std::sync::Arc;

use url::Url;

use super::{
    Pegboard,
    sign_in::{SignInError, SignInErrorKind, SignedIn, SignedOut},
    sign_in_provider::account_of,
};
use crate::{
    caller::Principal,
    name::ServerName,
    oauth::{AccountKey, OAuthAccount},
};

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
    /// Whether its file is encrypted with a key from the keyring of the operating system.
    pub is_encrypted: bool,
    key: AccountKey,
}

impl StoredSignIn {
    /// Whether both have the same tokens: servers with the same URL and settings share a sign-in.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.key == other.key
    }
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
            is_encrypted: listed.is_encrypted,
            key: listed.key,
        };
        Ok(listed.into_iter().map(sign_in).collect())
    }

    /// Revokes and forgets the tokens of a stored sign-in, like [`Pegboard::sign_out_as`], also of one whose server is not in the config any more.
    pub async fn sign_out_stored(&self, stored: &StoredSignIn) -> Result<SignedOut, SignInError> {
        if let Some(server) = &stored.server {
            return match &stored.principal {
                Some(principal) => self.sign_out_as(server, principal.clone()).await,
                None => self.sign_out(server).await,
            };
        }
        let url = Url::parse(&stored.url).map_err(|error| failed(stored, &error.to_string()))?;
        let name = ServerName::parse("removed").map_err(|error| failed(stored, &error.to_string()))?;
        let account = OAuthAccount::new(name, url, Arc::default());
        let client = self.0.factory.sign_ins.client();
        Ok(client.sign_out_of(&stored.key, &account).await?.into())
    }
}

fn failed(stored: &StoredSignIn, why: &str) -> SignInError {
    let text = format!("the sign-in to {} cannot be ended: {why}", stored.url);
    SignInError::new(SignInErrorKind::Failed, text)
}
