//! [`OAuthClient`]: access tokens of accounts, and the sign-ins that they need.

mod exchanged;
mod remembered;
mod sign_out;
mod signed_in;

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use self::remembered::Remembered;
use super::{
    access_token::AccessToken,
    account::{AccountKey, OAuthAccount},
    authorization::{PendingSignIn, choose_scopes},
    binding::Binding,
    challenge::Challenge,
    checked_http::{CheckedHttp, ConfiguredOrigins},
    discovery::find,
    dpop::{DpopKeys, TokenProof},
    error::{OAuthError, RETRY_AFTER},
    issuer_pin::IssuerPin,
    redirect_uri::RedirectUri,
    registration,
    renewal::{Cause, Renewal, check_destination, within_flow},
    session::SessionSummary,
    stored::{Session, StoredAccount},
    token_request::{self, ClientIdentity, Grant, TokenError, TokenRequestBase},
    token_store::TokenStore,
};
use pegboard_base::secret::Secret;
use pegboard_base::sync::{Mutex, MutexGuard};
use pegboard_client::credential::{Credential, CredentialReason};
use pegboard_mask::KnownSecrets;

/// How long a request waits for the renewal of a token that is still valid.
const GRACE: Duration = Duration::from_secs(2);
/// How long a request waits for the renewal of another one. Callers give up after 30 s, and would not learn that it goes on.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(25);
/// When to ask again for a renewal that goes on.
const RETRY_SOON: Duration = Duration::from_secs(3);
/// The most accounts whose last token is remembered. Beyond, all are forgotten, which costs a look at the store.
const MAX_REMEMBERED: usize = 10_000;

/// The most exchanged tokens that are kept. Beyond, all are forgotten, which costs another exchange.
const MAX_EXCHANGED: usize = 10_000;

/// Obtains, keeps and refreshes tokens. One for each board; clones share everything.
#[derive(Debug, Clone)]
pub struct OAuthClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: CheckedHttp,
    /// Learns what is exchanged, so that it is masked in the messages of servers.
    secrets: KnownSecrets,
    store: TokenStore,
    /// What tokens of callers were exchanged for. It is in memory only, like the tokens of callers.
    exchanged: TokenStore,
    keys: DpopKeys,
    accounts: Mutex<HashMap<AccountKey, Remembered>>,
    /// Renewals that run to their end even if nobody waits for them: the answer may replace the refresh token.
    renewals: TaskTracker,
}

impl OAuthClient {
    /// Creates a client that keeps tokens in `store`. Tokens from token exchange are added to `secrets`, so that they are masked.
    pub fn new(store: TokenStore, secrets: KnownSecrets) -> Self {
        Self::with_http(store, CheckedHttp::new(), secrets)
    }

    fn with_http(store: TokenStore, http: CheckedHttp, secrets: KnownSecrets) -> Self {
        let inner = Inner {
            http,
            secrets,
            store,
            exchanged: TokenStore::in_memory_of(MAX_EXCHANGED),
            keys: DpopKeys::default(),
            accounts: Mutex::default(),
            renewals: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The store of the tokens.
    pub fn store(&self) -> &TokenStore {
        &self.inner.store
    }

    /// Returns the access token of an account. Renews one that is near its end, or that the server has refused. If it has refused another one than
    /// the account's, which was renewed since, that one is returned.
    ///
    /// [`OAuthError::NeedsSignIn`] for [`CredentialReason::FirstUse`] does not mean that the server needs a token: the request may be sent without
    /// one, and the challenge of the response is remembered when this is called again with [`CredentialReason::Refused`].
    pub fn access_token_after<'a>(
        &'a self,
        account: &'a OAuthAccount,
        reason: CredentialReason<'a>,
        refused_token: Option<Secret>,
    ) -> BoxFuture<'a, Result<AccessToken, OAuthError>> {
        Box::pin(async move {
            let key = account.key();
            let refused = match reason {
                CredentialReason::Refused { challenge } => Some(challenge.map(Challenge::parse).unwrap_or_default()),
                CredentialReason::FirstUse | CredentialReason::Refresh => None,
            };
            let current = self.store_of(account).account(&key).await?;
            let current = current.and_then(|stored| stored.session);
            let (seen, cause) = match refused {
                None => match &current {
                    Some(session) if !session.is_due() => {
                        return Ok(self.remember_returned(&key, AccessToken::fresh(session)));
                    }
                    Some(session) => (Some(session.access_token.clone()), Cause::Due),
                    None => (None, Cause::Due),
                },
                Some(challenge) => (refused_token, Cause::Refused(challenge)),
            };
            if let Some(failure) = self.recent_failure(account, &key, current.as_ref(), (seen.as_ref(), &cause)) {
                return failure;
            }
            let usable = current.filter(|session| matches!(cause, Cause::Due) && !session.has_expired());
            let is_renewing = |remembered: &mut Remembered| std::mem::replace(&mut remembered.is_renewing, true);
            if let Some(session) = &usable
                && self.update_remembered(&key, is_renewing)
            {
                return Ok(AccessToken::stale(session));
            }
            let renewal = self.renewal(account, &key, seen, cause);
            let most = if usable.is_some() { GRACE } else { ANSWER_TIMEOUT };
            match (tokio::time::timeout(most, renewal).await, usable) {
                // The store does not work, for example.
                (Ok(Err(error)), Some(session)) if !error.needs_sign_in() => Ok(AccessToken::stale(&session)),
                (Ok(renewed), _) => Ok(self.remember_returned(&key, renewed?)),
                // It goes on, and the next request finds its result.
                (Err(_), Some(session)) => Ok(AccessToken::stale(&session)),
                (Err(_), None) => Err(OAuthError::Temporary {
                    reason: "the token is still being renewed".to_owned(),
                    retry_after: RETRY_SOON,
                }),
            }
        })
    }

    /// The same, where the refused token is the one that was returned last.
    #[cfg(test)]
    pub(crate) async fn access_token(
        &self,
        account: &OAuthAccount,
        reason: CredentialReason<'_>,
    ) -> Result<AccessToken, OAuthError> {
        let returned = self.update_remembered(&account.key(), |remembered| remembered.returned.clone());
        self.access_token_after(account, reason, returned).await
    }

    /// The headers that carry a token, and the proofs of its key if it is bound to one.
    pub fn credential(&self, token: &AccessToken) -> Result<Credential, OAuthError> {
        let credential = match &token.proof_key {
            None => Credential::bearer(token.token.expose()),
            Some(stored) => {
                let key = self.inner.keys.get(stored).map_err(OAuthError::needs_another_sign_in)?;
                Credential::dpop(&token.token, Arc::new(TokenProof::new(key, &token.token)))
            }
        };
        Ok(credential.valid_for(token.valid_for))
    }

    /// Starts a sign-in: finds the authorization server, registers if needed, and returns the URL for the browser.
    pub async fn begin(&self, account: &OAuthAccount, redirect: &RedirectUri) -> Result<PendingSignIn, OAuthError> {
        self.begin_as(account, redirect, false).await
    }

    /// Starts a sign-in with a client that is registered for it, whatever was registered before.
    pub async fn begin_anew(
        &self,
        account: &OAuthAccount,
        redirect: &RedirectUri,
    ) -> Result<PendingSignIn, OAuthError> {
        self.begin_as(account, redirect, true).await
    }

    fn begin_as<'a>(
        &'a self,
        account: &'a OAuthAccount,
        redirect: &'a RedirectUri,
        registers_anew: bool,
    ) -> BoxFuture<'a, Result<PendingSignIn, OAuthError>> {
        Box::pin(async move {
            if !account.settings.grant.needs_person() {
                return Err(OAuthError::Setting(
                    "the server's tokens come without a person, so there is nothing to sign in to".to_owned(),
                ));
            }
            check_destination(account)?;
            let Inner { http, store, keys, .. } = &*self.inner;
            let flow = async {
                let stored = store.account(&account.key()).await?.unwrap_or_default();
                let (challenge, found) = find(http, account, stored.challenge).await?;
                let pin = IssuerPin {
                    store,
                    account,
                    session: stored.session.as_ref(),
                    server: &found.server,
                };
                pin.check().await?;
                let scopes = choose_scopes(account, &challenge, &found);
                if registers_anew {
                    store.remove_registrations(&found.server.issuer).await?;
                    // Even if it cannot be read.
                    let (issuer, redirect) = (&found.server.issuer, redirect.as_str());
                    store.remove_registration(issuer, redirect).await?;
                } else if let Some(unknown) = &stored.unknown_client {
                    registration::forget(store, &found.server, redirect, unknown).await?;
                }
                let client = registration::client(http, store, account, &found, redirect, &scopes).await?;
                let binding = Binding::choose(keys, account, &found, challenge.offers_dpop, None)?;
                let pending = PendingSignIn::new(account, found, client, redirect, scopes, challenge.is_step_up)?;
                Ok(pending.with_binding(binding))
            };
            Box::pin(within_flow(flow)).await
        })
    }

    /// Finishes a sign-in with the URL that the browser was redirected to.
    pub fn finish<'a>(&'a self, pending: PendingSignIn, redirected: &'a str) -> BoxFuture<'a, Result<(), OAuthError>> {
        Box::pin(async move {
            let code = pending.code(redirected)?;
            let client = self.clone();
            // In a task of its own: the code can be used once, so its tokens must be stored even if the caller is gone.
            let task = self
                .inner
                .renewals
                .spawn(async move { Box::pin(client.redeem(&pending, &code)).await });
            task.await.unwrap_or_else(|_| Err(cut_off()))
        })
    }

    async fn redeem(&self, pending: &PendingSignIn, code: &Secret) -> Result<(), OAuthError> {
        let Inner { http, store, .. } = &*self.inner;
        let PendingSignIn {
            account,
            found,
            client,
            binding,
            ..
        } = pending;
        let key = account.key();
        // Before the code is used: tokens that cannot be stored for lack of the lock would be lost.
        let _lock = store.lock(&key).await?;
        let before = store.account(&key).await?.and_then(|stored| stored.session);
        let pin = IssuerPin {
            store,
            account,
            session: before.as_ref(),
            server: &found.server,
        };
        pin.pin().await?;
        let settings = &account.settings;
        let server = &found.server;
        let identity = ClientIdentity::new(client, settings, &server.issuer, server.signing_algs.as_deref())
            .with_binding(binding.as_ref());
        let grant = Grant::Code {
            code,
            verifier: &pending.verifier,
            redirect_uri: pending.redirect_uri().as_str(),
        };
        let wanted = TokenRequestBase {
            resource: Some(&found.resource),
            audience: settings.audience.as_deref(),
            scopes: &pending.scopes,
        };
        let trust = ConfiguredOrigins::new(account);
        let endpoint = &server.token_endpoint;
        let request = token_request::request(http, &trust, endpoint, &identity, &grant, wanted);
        let answer = match request.await {
            Ok(answer) => answer,
            Err(error) => {
                let TokenError::InvalidClient(text) = error else {
                    return Err(error.into());
                };
                // The next sign-in registers anew.
                let redirect = pending.redirect_uri().as_str();
                store.remove_registration(&server.issuer, redirect).await?;
                return Err(match settings.client_id {
                    Some(_) => OAuthError::wrong_client(account, text),
                    None => OAuthError::UnknownClient(text),
                });
            }
        };
        let mut session = Session::new(found, client.clone(), pending.scopes.clone(), answer);
        Binding::keep_in(binding.as_ref(), &mut session);
        if let (true, Some(before)) = (pending.is_step_up, &before) {
            let is_futile = pending.scopes.iter().all(|scope| before.scopes.contains(scope));
            session.count_step_up(before, is_futile);
        }
        let mut stored = StoredAccount::new(account);
        stored.session = Some(session);
        self.update_remembered(&key, |remembered| {
            *remembered = Remembered {
                followed: stored.session.as_ref().map(|session| session.access_token.clone()),
                ..Remembered::default()
            };
        });
        store.remove_damaged_file(&key).await;
        // If the file cannot be written, this process has the tokens, and the person is told.
        Ok(store.put_account(&key, &stored).await?)
    }

    /// Waits for renewals that are under way.
    pub async fn close(&self) {
        self.inner.renewals.close();
        self.inner.renewals.wait().await;
    }

    /// Renews a token in a task of its own, which ends and remembers a failure even if nobody waits for it.
    fn renewal(
        &self,
        account: &OAuthAccount,
        key: &AccountKey,
        seen: Option<Secret>,
        cause: Cause,
    ) -> impl Future<Output = Result<AccessToken, OAuthError>> + use<> {
        let (client, account, key) = (self.clone(), account.clone(), key.clone());
        let task = self.inner.renewals.spawn(async move {
            let Inner {
                http, keys, secrets, ..
            } = &*client.inner;
            let store = client.store_of(&account);
            let renewal = Renewal {
                http,
                store,
                keys,
                secrets,
                account: &account,
                key: &key,
            };
            let is_step_up = matches!(&cause, Cause::Refused(challenge) if challenge.wants_more_scopes());
            let is_asked = is_step_up && account.settings.grant.needs_person();
            let renewed = Box::pin(renewal.run(seen.as_ref(), cause)).await;
            let session = match &renewed {
                Ok(_) => None,
                Err(_) => store
                    .account(&key)
                    .await
                    .ok()
                    .flatten()
                    .and_then(|stored| stored.session),
            };
            client.update_remembered(&key, |remembered| {
                remembered.is_renewing = false;
                remembered.note(&renewed, session, is_asked, &account.settings);
            });
            renewed
        });
        async move { task.await.unwrap_or_else(|_| Err(cut_off())) }
    }

    /// The result that a renewal shortly after a failed one has, without a request.
    fn recent_failure(
        &self,
        account: &OAuthAccount,
        key: &AccountKey,
        current: Option<&Session>,
        (seen, cause): (Option<&Secret>, &Cause),
    ) -> Option<Result<AccessToken, OAuthError>> {
        let failed = self.update_remembered(key, |remembered| remembered.failed.clone())?;
        let token = current.map(|session| &session.access_token);
        if Instant::now() >= failed.until || failed.token.as_ref() != token || failed.settings != account.settings {
            return None;
        }
        match (current, cause) {
            (Some(session), Cause::Due) if !session.has_expired() => Some(Ok(AccessToken::stale(session))),
            (Some(session), Cause::Refused(_)) if seen != Some(&session.access_token) => None,
            _ => Some(Err(failed.error)),
        }
    }

    /// Takes note of the token that the store has. Returns whether it is another one than this process knows of.
    pub(super) fn follow(&self, key: &AccountKey, stored: Option<&Secret>) -> bool {
        self.update_remembered(key, |remembered| {
            let followed = std::mem::replace(&mut remembered.followed, stored.cloned());
            match stored {
                Some(_) => remembered.returned.as_ref() != stored && followed.as_ref() != stored,
                None => remembered.returned.take().or(followed).is_some(),
            }
        })
    }

    fn remember_returned(&self, key: &AccountKey, token: AccessToken) -> AccessToken {
        self.update_remembered(key, |remembered| remembered.returned = Some(token.token.clone()));
        token
    }

    fn update_remembered<T>(&self, key: &AccountKey, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut accounts: MutexGuard<'_, HashMap<AccountKey, Remembered>> = self.inner.accounts.lock();
        if accounts.len() >= MAX_REMEMBERED && !accounts.contains_key(key) {
            accounts.clear();
        }
        change(accounts.entry(key.clone()).or_default())
    }
}

fn cut_off() -> OAuthError {
    OAuthError::Temporary {
        reason: "the request for a token was cut off".to_owned(),
        retry_after: RETRY_AFTER,
    }
}

#[cfg(test)]
mod tests;
