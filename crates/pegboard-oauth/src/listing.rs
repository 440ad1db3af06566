//! The sign-ins of the whole store, for a person who looks after them.

use super::{
    account::{AccountKey, OAuthAccount},
    client::OAuthClient,
    error::OAuthError,
    session::SessionSummary,
};
use futures_util::future::BoxFuture;
use pegboard_base::{caller::Principal, name::ServerName};

/// A session of the store, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    /// The server whose tokens these are; `None` if none of the given accounts has them.
    pub server: Option<ServerName>,
    /// The URL of the server, without its query.
    pub url: String,
    /// The principal that signed in; `None` for the board's own connections.
    pub principal: Option<Principal>,
    /// The issuer, scopes and times of the session.
    pub session: SessionSummary,
    /// Whether the file of the session is encrypted.
    pub is_encrypted: bool,
    /// The key of the file.
    pub key: AccountKey,
}

impl OAuthClient {
    /// All sessions of the store. One that several of `servers` share is listed for each of them.
    pub fn sessions<'a>(
        &'a self,
        servers: &'a [OAuthAccount],
    ) -> BoxFuture<'a, Result<Vec<ListedSession>, OAuthError>> {
        Box::pin(async move {
            let mut listed = Vec::new();
            for found in self.store().accounts().await? {
                let (key, stored) = (found.key, found.account);
                let principal = stored.principal.clone().map(Principal::from);
                let url = stored.server.clone();
                let Some(session) = SessionSummary::from_stored(stored) else {
                    continue;
                };
                let is_of = |server: &&OAuthAccount| {
                    let account = OAuthAccount {
                        principal: principal.clone(),
                        ..(*server).clone()
                    };
                    account.key() == key
                };
                let mut names: Vec<Option<ServerName>> = servers
                    .iter()
                    .filter(is_of)
                    .map(|account| Some(account.server.clone()))
                    .collect();
                if names.is_empty() {
                    names.push(None);
                }
                listed.extend(names.into_iter().map(|server| ListedSession {
                    server,
                    url: url.clone(),
                    principal: principal.clone(),
                    session: session.clone(),
                    is_encrypted: found.is_encrypted,
                    key: key.clone(),
                }));
            }
            listed.sort_by(|a, b| (&a.server, &a.url, &a.principal).cmp(&(&b.server, &b.url, &b.principal)));
            Ok(listed)
        })
    }

    /// The keys and the names of files that cannot be read. The issuers that the clients of `servers` are pinned to are left out.
    pub fn list_unreadable<'a>(
        &'a self,
        servers: &'a [OAuthAccount],
    ) -> BoxFuture<'a, Result<Vec<(AccountKey, String)>, OAuthError>> {
        Box::pin(async move {
            let pinned: Vec<AccountKey> = servers.iter().map(OAuthAccount::pin_key).collect();
            let mut files = self.store().list_unreadable().await?;
            files.retain(|(key, _)| !pinned.contains(key));
            Ok(files)
        })
    }
}
