//! Renews the token of an account: one task of one process at a time, and without losing a session that is still good.

use std::{future::Future, time::Duration};

use url::Url;

use super::{
    access_token::AccessToken,
    account::{AccountKey, OAuthAccount},
    authorization::choose_scopes,
    binding::Binding,
    challenge::{Challenge, add_scopes},
    checked_http::{CheckedHttp, ConfiguredOrigins},
    clock::unix_now,
    discovery::{Discovered, discover},
    dpop::DpopKeys,
    error::{OAuthError, RETRY_AFTER, Refusal},
    issuer_pin::IssuerPin,
    metadata::{ResourceDpop, ServerMetadata, clip},
    registration,
    stored::{Session, StoredAccount, StoredChallenge, StoredClient},
    token_answer::TokenAnswer,
    token_request::{self, ClientIdentity, Grant, TokenError, TokenRequestBase},
    token_store::TokenStore,
};
use pegboard_base::secret::Secret;
use pegboard_config::OAuthGrant;
use pegboard_mask::KnownSecrets;

/// How long all requests of one renewal or sign-in may take together.
const FLOW_TIMEOUT: Duration = Duration::from_secs(30);
/// The most renewals in a row of tokens that the server refuses although they are new.
const MAX_REFUSED: u8 = 2;
/// A token that is refused within this time was never accepted, in seconds.
const JUST_ISSUED: u64 = 60;
/// The most step-ups in a row, and of those the most that ask for nothing new.
const MAX_STEP_UPS: u8 = 3;
const MAX_FUTILE_STEP_UPS: u8 = 1;
/// After this time a step-up is no longer in a row with the one before, in seconds.
const STEP_UP_WINDOW: u64 = 3600;

/// Why a token is renewed.
#[derive(Debug)]
pub(super) enum Cause {
    /// It is near its end, or there is none.
    Due,
    /// The server has refused it.
    Refused(Challenge),
}

/// The renewal of one account's token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Renewal<'a> {
    pub(super) http: &'a CheckedHttp,
    pub(super) store: &'a TokenStore,
    pub(super) keys: &'a DpopKeys,
    pub(super) secrets: &'a KnownSecrets,
    pub(super) account: &'a OAuthAccount,
    pub(super) key: &'a AccountKey,
}

/// Limits the time of a flow.
pub(super) async fn within_flow<T>(flow: impl Future<Output = Result<T, OAuthError>>) -> Result<T, OAuthError> {
    match tokio::time::timeout(FLOW_TIMEOUT, flow).await {
        Ok(result) => result,
        Err(_) => Err(OAuthError::Temporary {
            reason: format!("the sign-in was not done within {} s", FLOW_TIMEOUT.as_secs()),
            retry_after: RETRY_AFTER,
        }),
    }
}

impl Renewal<'_> {
    /// Renews the token. `seen` is the one that is due or was refused: another one in the store is newer, and is used.
    pub(super) async fn run(self, seen: Option<&Secret>, cause: Cause) -> Result<AccessToken, OAuthError> {
        let _lock = self.store.lock(self.key).await?;
        let stored = self.store.account(self.key).await?;
        let stored = stored.unwrap_or_else(|| StoredAccount::new(self.account));
        if let Some(session) = &stored.session
            && Some(&session.access_token) != seen
            && !session.is_due()
        {
            return Ok(AccessToken::fresh(session));
        }
        let challenge = match cause {
            Cause::Due => None,
            Cause::Refused(challenge) => Some(challenge),
        };
        match (&challenge, stored.session.clone()) {
            (Some(challenge), Some(session)) if challenge.wants_more_scopes() => {
                self.step_up(stored, session, challenge).await
            }
            (_, Some(session)) if self.account.settings.grant.needs_person() => {
                self.refresh(stored, session, challenge.as_ref()).await
            }
            (_, None) if self.account.settings.grant.needs_person() => {
                let why = match self.store.damaged_file(self.key).await {
                    Some(file) => format!("the stored sign-in was damaged, and its file is kept as {file}"),
                    None => self.why_nobody_signed_in().await.to_owned(),
                };
                self.needs_sign_in(stored, challenge.as_ref(), &why).await
            }
            (_, session) => self.obtain(stored, session, challenge.as_ref()).await,
        }
    }

    async fn why_nobody_signed_in(self) -> &'static str {
        for key in self.account.keys_of_other_dpop() {
            let stored = self.store.account(&key).await;
            if stored.is_ok_and(|stored| stored.is_some_and(|stored| stored.session.is_some())) {
                return "`oauth.dpop` of the server was changed after the sign-in, so a new one is needed";
            }
        }
        "nobody has signed in"
    }

    /// Asks for a token with more scopes: of a person, or of the authorization server.
    async fn step_up(
        self,
        mut stored: StoredAccount,
        session: Session,
        challenge: &Challenge,
    ) -> Result<AccessToken, OAuthError> {
        let mut scopes = session.scopes.clone();
        add_scopes(&mut scopes, challenge.scopes.iter().map(String::as_str));
        let is_futile = scopes.len() == session.scopes.len();
        let is_in_a_row = unix_now().saturating_sub(session.stepped_up_at) < STEP_UP_WINDOW;
        let is_over = session.step_ups >= MAX_STEP_UPS || (is_futile && session.futile_step_ups >= MAX_FUTILE_STEP_UPS);
        if is_in_a_row && is_over {
            return Err(OAuthError::StepUpLimit(challenge.scopes.join(" ")));
        }
        let wanted = StoredChallenge {
            scopes,
            resource_metadata: challenge.resource_metadata.clone(),
            is_step_up: true,
            offers_dpop: challenge.offers_dpop,
        };
        if self.account.settings.grant.needs_person() {
            self.remember(&mut stored, wanted).await;
            return Err(OAuthError::needs_another_sign_in(format!(
                "the server asks for more scopes ({})",
                clip(&challenge.scopes.join(" "))
            )));
        }
        let (_, mut renewed) = self.request_grant(Some(&session), &wanted, true).await?;
        renewed.count_step_up(&session, is_futile);
        self.keep(stored, renewed).await
    }

    /// Uses the refresh token.
    async fn refresh(
        self,
        mut stored: StoredAccount,
        mut session: Session,
        challenge: Option<&Challenge>,
    ) -> Result<AccessToken, OAuthError> {
        let is_refused = challenge.is_some();
        let still_good = !is_refused && !session.has_expired();
        let Some(refresh_token) = session.refresh_token.clone() else {
            if still_good {
                return Ok(AccessToken::stale(&session));
            }
            let token = match is_refused {
                true => "the server no longer accepts the token",
                false => "the token has expired",
            };
            let why = match &session.ended {
                Some(why) => format!("{token}, and {why}"),
                None => format!("{token}, and the authorization server gave none to renew it with"),
            };
            return self.needs_sign_in(stored, challenge, &why).await;
        };
        if is_refused {
            session.refused_at_once = match unix_now().saturating_sub(session.issued_at) < JUST_ISSUED {
                true => session.refused_at_once.saturating_add(1),
                false => 1,
            };
            if session.refused_at_once > MAX_REFUSED {
                return self
                    .needs_sign_in(stored, challenge, "the server refuses tokens that were just issued")
                    .await;
            }
        }
        let was_interrupted = session.refreshing;
        session.refreshing = true;
        stored.session = Some(session.clone());
        if let Err(error) = self.store.mark_account(self.key, &stored).await {
            // A refresh token that is replaced where the new one cannot be stored ends the session, here with the process and elsewhere at once.
            tracing::warn!(server = %self.account.server, %error, "the token is not renewed, because a new one could not be stored");
            return match still_good {
                true => Ok(AccessToken::stale(&session)),
                false => Err(error.into()),
            };
        }
        match self.redeem(&session, &refresh_token).await {
            Ok(answer) => {
                session.renew(answer);
                self.keep(stored, session).await
            }
            Err(TokenError::InvalidGrant(text)) => {
                let why = match was_interrupted {
                    true => format!(
                        "an earlier renewal of the token was interrupted, so its answer is lost, and the authorization server does not take the old \
                         token any more: {text}"
                    ),
                    false => format!("the authorization server has ended the session: {text}"),
                };
                session.refresh_token = None;
                session.refreshing = false;
                session.ended = Some(why.clone());
                stored.session = Some(session.clone());
                self.store.keep_account(self.key, &stored).await;
                match still_good {
                    true => Ok(AccessToken::stale(&session)),
                    false => self.needs_sign_in(stored, challenge, &why).await,
                }
            }
            Err(TokenError::InvalidClient(text)) if session.client.secret.is_some() || self.is_registered(&session) => {
                if still_good {
                    return Ok(AccessToken::stale(&session));
                }
                stored.unknown_client = Some(session.client.id.clone());
                self.store.keep_account(self.key, &stored).await;
                let why = format!("the authorization server does not know this program any more: {text}");
                self.needs_sign_in(stored, challenge, &why).await
            }
            Err(error) => {
                let error = error.for_account(self.account);
                if !error.is_temporary() {
                    // There was an answer, so the refresh token was not used up unnoticed.
                    session.refreshing = false;
                    stored.session = Some(session.clone());
                    self.store.keep_account(self.key, &stored).await;
                }
                match still_good {
                    true => {
                        tracing::warn!(server = %self.account.server, %error, "a token could not be renewed; the old one is still valid");
                        Ok(AccessToken::stale(&session))
                    }
                    false => Err(error),
                }
            }
        }
    }

    /// Whether this program has registered the client itself.
    fn is_registered(self, session: &Session) -> bool {
        let settings = &self.account.settings;
        settings.client_id.as_deref() != Some(&session.client.id)
            && settings
                .client_metadata_url
                .as_ref()
                .is_none_or(|url| url.expose().as_str() != session.client.id)
    }

    async fn redeem(self, session: &Session, refresh_token: &Secret) -> Result<TokenAnswer, TokenError> {
        let settings = &self.account.settings;
        let endpoint = Url::parse(&session.token_endpoint)
            .map_err(|error| OAuthError::Discovery(format!("the stored token endpoint is no URL: {error}")))?;
        let binding = Binding::for_session(self.keys, self.account, session)?;
        let client =
            ClientIdentity::new(&session.client, settings, &session.issuer, None).with_binding(binding.as_ref());
        let wanted = TokenRequestBase {
            resource: Some(&session.resource),
            audience: None,
            scopes: &[],
        };
        let trust = ConfiguredOrigins::new(self.account);
        let grant = Grant::Refresh(refresh_token);
        let request = token_request::request(self.http, &trust, &endpoint, &client, &grant, wanted);
        match tokio::time::timeout(FLOW_TIMEOUT, request).await {
            Ok(result) => result,
            Err(_) => Err(TokenError::Other(OAuthError::Temporary {
                reason: "the authorization server did not answer in time".to_owned(),
                retry_after: RETRY_AFTER,
            })),
        }
    }

    /// Gets a token by a grant that needs no person.
    async fn obtain(
        self,
        stored: StoredAccount,
        session: Option<Session>,
        challenge: Option<&Challenge>,
    ) -> Result<AccessToken, OAuthError> {
        let is_refused = challenge.is_some();
        let mut refused = 0;
        if let Some(session) = session.as_ref().filter(|_| is_refused) {
            let is_new = unix_now().saturating_sub(session.issued_at) < JUST_ISSUED;
            refused = if is_new {
                session.refused_at_once.saturating_add(1)
            } else {
                1
            };
            if refused > MAX_REFUSED {
                let why = "the server refuses tokens that were just issued";
                return Err(OAuthError::Refused(Refusal::new(why)));
            }
        }
        let wanted = challenge
            .map(|challenge| StoredChallenge::from(challenge.clone()))
            .unwrap_or_default();
        match self.request_grant(session.as_ref(), &wanted, is_refused).await {
            Ok((_, mut renewed)) => {
                renewed.refused_at_once = refused;
                self.keep(stored, renewed).await
            }
            Err(error) => match session {
                Some(session) if !is_refused && !session.has_expired() => {
                    tracing::warn!(server = %self.account.server, %error, "a token could not be renewed; the old one is still valid");
                    Ok(AccessToken::stale(&session))
                }
                _ => Err(error),
            },
        }
    }

    /// Requests a token by the configured grant. Uses what is known of the authorization server, unless the server has refused its last token.
    async fn request_grant(
        self,
        session: Option<&Session>,
        challenge: &StoredChallenge,
        is_refused: bool,
    ) -> Result<(Discovered, Session), OAuthError> {
        check_destination(self.account)?;
        within_flow(async {
            let settings = &self.account.settings;
            let known = session.filter(|_| !is_refused).and_then(known_server);
            let found = match known {
                Some(found) => found,
                None => discover(self.http, self.account, challenge.resource_metadata.as_deref()).await?,
            };
            let pin = IssuerPin {
                store: self.store,
                account: self.account,
                session,
                server: &found.server,
            };
            pin.pin().await?;
            let client = registration::find_configured(settings, &found.server).unwrap_or_else(StoredClient::anonymous);
            let mut scopes = choose_scopes(self.account, challenge, &found);
            if let (true, Some(session)) = (scopes.is_empty(), session) {
                scopes.clone_from(&session.scopes);
            }
            let server = &found.server;
            let binding = Binding::choose(self.keys, self.account, &found, challenge.offers_dpop, session)?;
            let identity = ClientIdentity::new(&client, settings, &server.issuer, server.signing_algs.as_deref())
                .with_binding(binding.as_ref());
            let wanted = TokenRequestBase {
                resource: Some(&found.resource),
                audience: settings.audience.as_deref(),
                scopes: &scopes,
            };
            let input;
            let grant = match &settings.grant {
                OAuthGrant::AuthorizationCode => {
                    return Err(OAuthError::Setting("this grant needs a person".to_owned()));
                }
                OAuthGrant::ClientCredentials => Grant::ClientCredentials,
                OAuthGrant::TokenExchange(exchange) => {
                    input = token_request::read_input(&exchange.subject, self.account).await?;
                    self.secrets.learn([input.clone()]);
                    Grant::Exchange {
                        subject: &input,
                        exchange,
                    }
                }
                OAuthGrant::JwtBearer(bearer) => {
                    let read = token_request::read_input(&bearer.assertion, self.account).await?;
                    self.secrets.learn([read.clone()]);
                    input =
                        token_request::assertion(self.http, self.account, bearer, read, &server.issuer, wanted).await?;
                    self.secrets.learn([input.clone()]);
                    Grant::Assertion(&input)
                }
            };
            let trust = ConfiguredOrigins::new(self.account);
            let endpoint = &server.token_endpoint;
            let request = token_request::request(self.http, &trust, endpoint, &identity, &grant, wanted);
            let answer = request.await.map_err(|error| error.for_account(self.account))?;
            let mut session = Session::new(&found, client, scopes, answer);
            Binding::keep_in(binding.as_ref(), &mut session);
            if let Some(subject) = &self.account.subject {
                // What a caller's token was exchanged for is not used longer than that token.
                session.end_by(subject.expires);
            }
            Ok((found, session))
        })
        .await
    }

    /// Stores a new session and returns its token.
    async fn keep(self, mut stored: StoredAccount, session: Session) -> Result<AccessToken, OAuthError> {
        let token = AccessToken::fresh(&session);
        stored.session = Some(session);
        stored.challenge = None;
        self.store.keep_account(self.key, &stored).await;
        Ok(token)
    }

    async fn needs_sign_in(
        self,
        mut stored: StoredAccount,
        challenge: Option<&Challenge>,
        why: &str,
    ) -> Result<AccessToken, OAuthError> {
        if let Some(challenge) = challenge {
            self.remember(&mut stored, challenge.clone().into()).await;
        }
        Err(OAuthError::NeedsSignIn {
            why: why.to_owned(),
            has_ended: stored.session.is_some(),
        })
    }

    /// Keeps a challenge for the next sign-in. Writes only if it is new: every write is a change that others look at.
    async fn remember(self, stored: &mut StoredAccount, challenge: StoredChallenge) {
        if stored.challenge.as_ref() != Some(&challenge) {
            stored.challenge = Some(challenge);
            self.store.keep_account(self.key, stored).await;
        }
    }
}

/// What a session knows about its authorization server.
fn known_server(session: &Session) -> Option<Discovered> {
    let mut server = ServerMetadata::new(session.issuer.clone(), None, Url::parse(&session.token_endpoint).ok()?);
    server.auth_methods = Some(vec![session.client.auth.as_str().to_owned()]);
    server.takes_client_documents = true;
    Some(Discovered {
        resource: session.resource.clone(),
        resource_scopes: None,
        resource_dpop: ResourceDpop::NotSaid,
        server,
        is_guessed: false,
    })
}

/// Fails if a credential would go wherever the server says.
pub(super) fn check_destination(account: &OAuthAccount) -> Result<(), OAuthError> {
    match account.settings.open_destination() {
        Some((name, missing)) => Err(OAuthError::Setting(format!("`oauth.{name}`: {missing}"))),
        None => Ok(()),
    }
}
