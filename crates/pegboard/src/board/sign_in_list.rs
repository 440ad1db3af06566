//! [`Pegboard::sign_ins`]: every sign-in that is stored.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use url::Url;

use super::{
    Pegboard,
    account_servers::AccountServers,
    sign_in::{SignInError, SignInErrorKind, SignedIn, SignedOut, to_sign_in_error},
    sign_in_records::SignInRecord,
};
use crate::audit::ChangeOutcome;
use pegboard_base::{caller::Principal, deadline::Deadline, name::ServerName};
use pegboard_oauth::{AccountKey, Forgotten, OAuthAccount};

/// The most sign-ins whose tokens are revoked at the same time.
const MAX_REVOCATIONS: usize = 8;

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

/// A sign-in that [`Pegboard::sign_out_all`] has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndedSignIn {
    /// The sign-in. `None` if its file could not be read.
    pub stored: Option<StoredSignIn>,
    /// The file that could not be read.
    pub file: Option<String>,
    /// What was done.
    pub result: Result<SignedOut, SignInError>,
}

impl EndedSignIn {
    fn from_result<T>(
        stored: Option<StoredSignIn>,
        file: Option<String>,
        forgotten: Result<T, SignInError>,
    ) -> (Self, Option<T>) {
        let (result, forgotten) = match forgotten {
            Ok(forgotten) => (Ok(SignedOut::WasNot), Some(forgotten)),
            Err(error) => (Err(error), None),
        };
        (Self { stored, file, result }, forgotten)
    }
}

impl Pegboard {
    /// Every sign-in in the token store, of all principals, sorted by server. Servers that share a sign-in, because they have the same URL and settings,
    /// are listed with it one by one. Tokens that were obtained without a person are listed too.
    pub async fn sign_ins(&self) -> Result<Vec<StoredSignIn>, SignInError> {
        let listed = self
            .0
            .factory
            .sign_ins
            .client()
            .sessions(&AccountServers::new(&self.0.registry).list_accounts())
            .await?;
        let sign_in = |listed: pegboard_oauth::ListedSession| StoredSignIn {
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
        let account = find_stored_account(self, stored)?;
        let forgotten = forget_stored(self, None, stored.principal.clone(), &stored.key).await?;
        Ok(self
            .0
            .factory
            .sign_ins
            .client()
            .revoke(forgotten, &account)
            .await
            .into())
    }

    /// Ends every stored sign-in, or those of a principal, also those whose servers are not in the config any more. Without a principal, files that
    /// cannot be read are removed too. First everything is forgotten; then the tokens are revoked, at most for `limit`.
    pub async fn sign_out_all(&self, principal: Option<&Principal>, limit: Duration) -> Vec<EndedSignIn> {
        let mut ended: Vec<(EndedSignIn, Option<(Forgotten, OAuthAccount)>)> = Vec::new();
        // A store of which nothing can be read has nothing to list.
        let stored = self.sign_ins().await.unwrap_or_default();
        let mut seen: HashSet<&AccountKey> = HashSet::new();
        for stored in &stored {
            let is_of = principal.is_none() || stored.principal.as_ref() == principal;
            if is_of && seen.insert(&stored.key) {
                let forgotten = forget_with_servers(self, stored).await;
                ended.push(EndedSignIn::from_result(Some(stored.clone()), None, forgotten));
            }
        }
        if principal.is_none() {
            let client = self.0.factory.sign_ins.client();
            for (key, file) in client
                .list_unreadable(&AccountServers::new(&self.0.registry).list_accounts())
                .await
                .unwrap_or_default()
            {
                let forgotten = forget_stored(self, None, None, &key).await;
                let forgotten = forgotten.and_then(|forgotten| Ok((forgotten, nobody("http://localhost")?)));
                ended.push(EndedSignIn::from_result(None, Some(file), forgotten));
            }
        }
        let end = Deadline::within(limit);
        let revoked = ended.into_iter().map(|(mut ended, forgotten)| async move {
            if let Some((forgotten, account)) = forgotten {
                let revoking = self.0.factory.sign_ins.client().revoke(forgotten, &account);
                ended.result = Ok(match tokio::time::timeout(end.remaining(), revoking).await {
                    Ok(revoked) => revoked.into(),
                    Err(_) => SignedOut::OnlyForgotten {
                        reason: "the authorization server did not answer in time".to_owned(),
                    },
                });
            }
            ended
        });
        stream::iter(revoked).buffered(MAX_REVOCATIONS).collect().await
    }
}

/// Forgets a sign-in, and ends the connections that use it.
async fn forget_with_servers(
    board: &Pegboard,
    stored: &StoredSignIn,
) -> Result<(Forgotten, OAuthAccount), SignInError> {
    let account = find_stored_account(board, stored)?;
    let forgotten = forget_stored(board, stored.server.clone(), stored.principal.clone(), &stored.key).await?;
    AccountServers::new(&board.0.registry).end_connections(&account).await;
    Ok((forgotten, account))
}

async fn forget_stored(
    board: &Pegboard,
    server: Option<ServerName>,
    principal: Option<Principal>,
    key: &AccountKey,
) -> Result<Forgotten, SignInError> {
    let record = SignInRecord::begin_for(board, SignInRecord::SIGN_OUT, server, principal)
        .await
        .map_err(to_sign_in_error)?;
    let forgotten = board.0.factory.sign_ins.client().forget(key).await;
    record.end(Some(match &forgotten {
        Ok(_) => ChangeOutcome::Done,
        Err(_) => ChangeOutcome::Failed,
    }));
    Ok(forgotten?)
}

/// The account of a stored sign-in. One whose server is not in the config any more has no settings.
fn find_stored_account(board: &Pegboard, stored: &StoredSignIn) -> Result<OAuthAccount, SignInError> {
    let known = AccountServers::new(&board.0.registry).list_accounts().into_iter();
    let mut of_server = known.filter(|account| Some(&account.server) == stored.server.as_ref());
    let account = match of_server.next() {
        Some(account) => account,
        None => nobody(&stored.url)?,
    };
    Ok(OAuthAccount {
        principal: stored.principal.clone(),
        ..account
    })
}

/// An account without settings.
fn nobody(url: &str) -> Result<OAuthAccount, SignInError> {
    let failed = |why: String| {
        let text = format!("the sign-in to {url} cannot be ended: {why}");
        SignInError::new(SignInErrorKind::Failed, text)
    };
    let parsed = Url::parse(url).map_err(|error| failed(error.to_string()))?;
    let name = ServerName::parse("removed").map_err(|error| failed(error.to_string()))?;
    Ok(OAuthAccount::new(name, parsed, Arc::default()))
}
