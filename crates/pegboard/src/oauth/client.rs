//! [`OAuthClient`]: access tokens of accounts, and the sign-ins that they need.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    access_token::AccessToken,
    account::{AccountKey, OAuthAccount},
    authorization::{PendingSignIn, choose_scopes},
    binding::Binding,
    challenge::Challenge,
    checked_http::{CheckedHttp, Trust},
    discovery::{discover, probe},
    dpop::{DpopKeys, TokenProof},
    error::{OAuthError, RETRY_AFTER},
    redirect_uri::RedirectUri,
    registration,
    renewal::{Cause, Renewal, check_issuer, within_flow},
    revocation,
    stored::{Session, StoredAccount, StoredChallenge},
    token_request::{self, ClientIdentity, Grant, TokenError, Wanted},
    token_store::TokenStore,
};
use crate::{
    credential::{Credential, CredentialReason},
    secret::Secret,
};

/// The most accounts whose last token is remembered. Beyond, all are forgotten, which costs a look at the store.
const MAX_REMEMBERED: usize = 10_000;

/// What a sign-out did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignedOut {
    /// There was nothing to sign out of.
    WasNot,
    /// The tokens are forgotten, and the authorization server has revoked them.
    Revoked,
    /// The tokens are forgotten. Why the authorization server has not revoked them.
    OnlyForgotten(String),
}

/// What is known of a session besides its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionSummary {
    pub(crate) issuer: String,
    pub(crate) scopes: Vec<String>,
    /// When the access token expires, in seconds since 1970.
    pub(crate) expires_at: u64,
    pub(crate) is_renewable: bool,
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
    keys: DpopKeys,
    accounts: Mutex<HashMap<AccountKey, Remembered>>,
    /// Renewals that run to their end even if nobody waits for them: the answer may replace the refresh token.
    renewals: TaskTracker,
}

/// What is known of an account besides the store.
#[derive(Debug, Default)]
struct Remembered {
    /// The token that was returned last, which is the one that a server refuses.
    returned: Option<Secret>,
    /// The token that the store had when it was last compared with the one that is used.
    followed: Option<Secret>,
    /// The last renewal's temporary failure, and until when it is not tried again.
    failed: Option<(Instant, OAuthError)>,
}

impl OAuthClient {
    pub(crate) fn new(store: TokenStore) -> Self {
        Self::with_http(store, CheckedHttp::new())
    }

    fn with_http(store: TokenStore, http: CheckedHttp) -> Self {
        let inner = Inner {
            http,
            store,
            keys: DpopKeys::default(),
            accounts: Mutex::default(),
            renewals: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn store(&self) -> &TokenStore {
        &self.inner.store
    }

    /// Returns the access token of an account. Renews one that is near its end, or that the server has refused.
    ///
    /// [`OAuthError::NeedsSignIn`] for [`CredentialReason::FirstUse`] does not mean that the server needs a token: the request may be sent without
    /// one, and the challenge of the response is remembered when this is called again with [`CredentialReason::Refused`].
    pub(crate) async fn access_token(
        &self,
        account: &OAuthAccount,
        reason: CredentialReason<'_>,
    ) -> Result<AccessToken, OAuthError> {
        let key = account.key();
        let refused = match reason {
            CredentialReason::Refused { challenge } => Some(challenge.map(Challenge::parse).unwrap_or_default()),
            CredentialReason::FirstUse | CredentialReason::Refresh => None,
        };
        let current = self.inner.store.account(&key).await?.and_then(|stored| stored.session);
        let returned = self.remembered(&key, |remembered| remembered.returned.clone());
        let (seen, cause) = match refused {
            None => match &current {
                Some(session) if !session.is_due() => return Ok(self.returned(&key, AccessToken::fresh(session))),
                Some(session) => (Some(session.access_token.clone()), Cause::Due),
                None => (None, Cause::Due),
            },
            Some(challenge) => (returned, Cause::Refused(challenge)),
        };
        if let Some(failure) = self.recent_failure(&key, current.as_ref(), &cause) {
            return failure;
        }
        let renewed = self.renewed(account, &key, seen, cause).await;
        self.remembered(&key, |remembered| {
            remembered.failed = match &renewed {
                Err(error) if error.is_temporary() => Some((Instant::now() + RETRY_AFTER, error.clone())),
                _ => None,
            };
        });
        Ok(self.returned(&key, renewed?))
    }

    /// The headers that carry a token, and the proofs of its key if it is bound to one.
    pub(crate) fn credential(&self, token: &AccessToken) -> Result<Credential, OAuthError> {
        let credential = match &token.proof_key {
            None => Credential::bearer(token.token.expose()),
            Some(stored) => {
                let key = self.inner.keys.get(stored).map_err(OAuthError::NeedsSignIn)?;
                Credential::bound(&token.token, Arc::new(TokenProof::new(key, &token.token)))
            }
        };
        Ok(credential.valid_for(token.valid_for))
    }

    /// Starts a sign-in: finds the authorization server, registers if needed, and returns the URL for the browser.
    pub(crate) async fn begin(
        &self,
        account: &OAuthAccount,
        redirect: &RedirectUri,
    ) -> Result<PendingSignIn, OAuthError> {
        if !account.settings.grant.needs_person() {
            return Err(OAuthError::Setting(
                "the server's tokens come without a person, so there is nothing to sign in to".to_owned(),
            ));
        }
        let Inner { http, store, keys, .. } = &*self.inner;
        let flow = async {
            let stored = store.account(&account.key()).await?.unwrap_or_default();
            let mut probed = None;
            let challenge = match stored.challenge {
                Some(challenge) => challenge,
                // A server that does not answer may still have metadata, so a failure here is none of the sign-in.
                None => match probed.insert(probe(http, account).await) {
                    Ok(probed) => probed.challenge.clone().into(),
                    Err(_) => StoredChallenge::default(),
                },
            };
            let found = match (
                discover(http, account, challenge.resource_metadata.as_deref()).await,
                &probed,
            ) {
                (Ok(found), Some(Ok(probed))) if probed.is_open && found.is_guessed => {
                    return Err(OAuthError::NotNeeded);
                }
                (Ok(found), _) => found,
                (Err(error), Some(Err(down))) if error.is_temporary() => return Err(OAuthError::down(account, down)),
                (Err(error), _) => return Err(error),
            };
            check_issuer(account, stored.session.as_ref(), &found.server)?;
            let scopes = choose_scopes(account, &challenge, &found);
            if let Some(unknown) = &stored.unknown_client {
                registration::forget(store, &found.server, redirect, unknown).await?;
            }
            let client = registration::client(http, store, account, &found.server, redirect, &scopes).await?;
            let binding = Binding::choose(keys, account, &found, challenge.offers_dpop, None)?;
            let pending = PendingSignIn::new(account, found, client, redirect, scopes, challenge.is_step_up)?;
            Ok(pending.bound_to(binding))
        };
        Box::pin(within_flow(flow)).await
    }

    /// Finishes a sign-in with the URL that the browser was redirected to.
    pub(crate) async fn finish(&self, pending: PendingSignIn, redirected: &str) -> Result<(), OAuthError> {
        let code = pending.code(redirected)?;
        Box::pin(within_flow(self.redeem(&pending, &code))).await
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
        let settings = &account.settings;
        let server = &found.server;
        let identity = ClientIdentity::new(client, settings, &server.issuer, server.signing_algs.as_deref())
            .bound_to(binding.as_ref());
        let grant = Grant::Code {
            code,
            verifier: &pending.verifier,
            redirect_uri: pending.redirect_uri().as_str(),
        };
        let wanted = Wanted {
            resource: Some(&found.resource),
            audience: settings.audience.as_deref(),
            scopes: &pending.scopes,
        };
        let trust = Trust::of(account);
        let endpoint = &server.token_endpoint;
        let answer = match token_request::request(http, &trust, endpoint, &identity, &grant, wanted).await {
            Ok(answer) => answer,
            Err(error) => {
                let TokenError::InvalidClient(text) = error else {
                    return Err(error.into());
                };
                // The next sign-in registers anew.
                let redirect = pending.redirect_uri().as_str();
                store.remove_registration(&server.issuer, redirect).await?;
                return Err(match settings.client_id {
                    Some(_) => TokenError::InvalidClient(text).into(),
                    None => OAuthError::UnknownClient(text),
                });
            }
        };
        let mut session = Session::new(found, client.clone(), pending.scopes.clone(), answer);
        Binding::keep_in(binding.as_ref(), &mut session);
        let key = account.key();
        let _lock = store.lock(&key).await?;
        let before = store.account(&key).await?.and_then(|stored| stored.session);
        if let (true, Some(before)) = (pending.is_step_up, &before) {
            let is_futile = pending.scopes.iter().all(|scope| before.scopes.contains(scope));
            session.count_step_up(before, is_futile);
        }
        let mut stored = StoredAccount::new(account);
        stored.session = Some(session);
        self.remembered(&key, |remembered| {
            *remembered = Remembered {
                followed: stored.session.as_ref().map(|session| session.access_token.clone()),
                ..Remembered::default()
            };
        });
        store.put_account(&key, &stored).await?;
        Ok(())
    }

    /// Revokes and forgets the tokens of an account.
    pub(crate) async fn sign_out(&self, account: &OAuthAccount) -> Result<SignedOut, OAuthError> {
        let Inner { http, store, .. } = &*self.inner;
        let key = account.key();
        let _lock = store.lock(&key).await?;
        // A file that cannot be read can still be removed.
        let session = store
            .account(&key)
            .await
            .ok()
            .flatten()
            .and_then(|stored| stored.session);
        store.remove_account(&key).await?;
        if let Some(proof_key) = session.as_ref().and_then(|session| session.proof_key.as_ref()) {
            self.inner.keys.forget(proof_key);
        }
        self.remembered(&key, |remembered| *remembered = Remembered::default());
        let Some(session) = session else {
            return Ok(SignedOut::WasNot);
        };
        let revoked = within_flow(async { Ok(revocation::revoke(http, account, &session).await) }).await;
        Ok(match revoked {
            Ok(Ok(())) => SignedOut::Revoked,
            Ok(Err(why)) => SignedOut::OnlyForgotten(why),
            Err(error) => SignedOut::OnlyForgotten(error.to_string()),
        })
    }

    /// Whether somebody has signed in, without a request.
    pub(crate) async fn is_signed_in(&self, account: &OAuthAccount) -> Result<bool, OAuthError> {
        let stored = self.inner.store.account(&account.key()).await?;
        let is_usable = |session: &Session| session.refresh_token.is_some() || !session.has_expired();
        Ok(stored
            .and_then(|stored| stored.session)
            .is_some_and(|session| is_usable(&session)))
    }

    /// The session of an account, without a request and without its tokens.
    pub(crate) async fn session(&self, account: &OAuthAccount) -> Result<Option<SessionSummary>, OAuthError> {
        let stored = self.inner.store.account(&account.key()).await?;
        let session = stored.and_then(|stored| stored.session);
        Ok(session.map(|session| SessionSummary {
            expires_at: session.expires_at(),
            is_renewable: session.refresh_token.is_some(),
            issuer: session.issuer,
            scopes: session.scopes,
        }))
    }

    /// Waits for renewals that are under way.
    pub(crate) async fn close(&self) {
        self.inner.renewals.close();
        self.inner.renewals.wait().await;
    }

    /// Renews a token in a task of its own, so that it ends even if the caller is gone.
    async fn renewed(
        &self,
        account: &OAuthAccount,
        key: &AccountKey,
        seen: Option<Secret>,
        cause: Cause,
    ) -> Result<AccessToken, OAuthError> {
        let (inner, account, key) = (self.inner.clone(), account.clone(), key.clone());
        let task = self.inner.renewals.spawn(async move {
            let renewal = Renewal {
                http: &inner.http,
                store: &inner.store,
                keys: &inner.keys,
                account: &account,
                key: &key,
            };
            Box::pin(renewal.run(seen.as_ref(), cause)).await
        });
        task.await.unwrap_or_else(|_| {
            Err(OAuthError::Temporary {
                reason: "the renewal of the token was cut off".to_owned(),
                retry_after: RETRY_AFTER,
            })
        })
    }

    /// The result that a renewal shortly after a failed one has, without a request.
    fn recent_failure(
        &self,
        key: &AccountKey,
        current: Option<&Session>,
        cause: &Cause,
    ) -> Option<Result<AccessToken, OAuthError>> {
        let (until, error) = self.remembered(key, |remembered| remembered.failed.clone())?;
        if Instant::now() >= until {
            return None;
        }
        match (current, cause) {
            (Some(session), Cause::Due) if !session.has_expired() => Some(Ok(AccessToken::stale(session))),
            (Some(session), Cause::Refused(_)) => {
                let returned = self.remembered(key, |remembered| remembered.returned.clone());
                (returned.as_ref() == Some(&session.access_token)).then_some(Err(error))
            }
            _ => Some(Err(error)),
        }
    }

    /// Takes note of the token that the store has. Returns whether it is another one than this process knows of.
    pub(super) fn follow(&self, key: &AccountKey, stored: Option<&Secret>) -> bool {
        self.remembered(key, |remembered| {
            let followed = std::mem::replace(&mut remembered.followed, stored.cloned());
            match stored {
                Some(_) => remembered.returned.as_ref() != stored && followed.as_ref() != stored,
                None => remembered.returned.take().or(followed).is_some(),
            }
        })
    }

    fn returned(&self, key: &AccountKey, token: AccessToken) -> AccessToken {
        self.remembered(key, |remembered| remembered.returned = Some(token.token.clone()));
        token
    }

    fn remembered<T>(&self, key: &AccountKey, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut accounts: MutexGuard<'_, HashMap<AccountKey, Remembered>> =
            self.inner.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= MAX_REMEMBERED && !accounts.contains_key(key) {
            accounts.clear();
        }
        change(accounts.entry(key.clone()).or_default())
    }
}

#[cfg(test)]
mod tests;
