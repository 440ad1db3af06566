//! Sign-ins of people: [`Pegboard::sign_in`] and [`Pegboard::sign_out`].

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pegboard_base::timestamp::Timestamp;
use url::Url;

use super::{Pegboard, account_servers::AccountServers, sign_in_provider::account_of, sign_in_records::SignInRecord};
use crate::{audit::ChangeOutcome, server::Registry};
use pegboard_base::{caller::Principal, hint::Hint, name::ServerName};
use pegboard_config::{Auth, OAuthConfig};
use pegboard_oauth::{OAuthAccount, OAuthError, PendingSignIn, RedirectUri, SessionSummary, SignedOut as Ended};
use pegboard_tools::outcome::Failure;

/// The port of the redirect address, unless the config or the options name one.
const DEFAULT_PORT: u16 = 47_471;

/// Options of a sign-in.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct SignInOptions {
    redirect_uri: Option<String>,
    scopes: Vec<String>,
    principal: Option<Principal>,
    registers_anew: bool,
}

impl SignInOptions {
    /// Sets where the authorization server sends the browser afterwards: an `https` URL, or one of this machine. Without it, the `redirect`
    /// settings of the server's config decide.
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uri = Some(uri.into());
        self
    }

    /// Sets the scopes to request, in place of those of the config. Text with spaces names several.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes = scopes.into_iter().map(Into::into);
        self.scopes = scopes
            .flat_map(|scopes: String| scopes.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        self
    }

    /// Registers this program anew at the authorization server, if it registers itself there, and forgets its clients of all redirect addresses
    /// there. Needed where the server has forgotten the client and shows that only in the browser.
    pub fn new_client(mut self) -> Self {
        self.registers_anew = true;
        self
    }

    /// Sets whose sign-in it is. Without it, the sign-in is for all views without a principal.
    pub fn principal(mut self, principal: impl Into<Principal>) -> Self {
        self.principal = Some(principal.into());
        self
    }
}

/// A sign-in that has begun. A person follows its [URL](SignIn::url), and the browser is sent to its redirect address in the end.
#[derive(Debug)]
pub struct SignIn {
    board: Pegboard,
    pending: PendingSignIn,
}

impl SignIn {
    /// The URL to open in the browser of the person.
    pub fn url(&self) -> &Url {
        self.pending.url()
    }

    /// Where the authorization server sends the browser afterwards.
    pub fn redirect_uri(&self) -> &str {
        self.pending.redirect_uri().as_str()
    }

    /// Whether this is the redirect of this sign-in. Others are ignored: any page can send a browser to the redirect address.
    pub fn is_answered_by(&self, redirected: &str) -> bool {
        self.pending.is_answered_by(redirected)
    }

    /// Finishes the sign-in with the URL that the browser was sent to, or its query. Servers that wait for it are connected again.
    pub async fn finish(self, redirected: &str) -> Result<(), SignInError> {
        let account = self.pending.account().clone();
        let record = SignInRecord::begin(&self.board, SignInRecord::SIGN_IN, &account)
            .await
            .map_err(to_sign_in_error)?;
        let client = self.board.0.factory.sign_ins.client();
        if let Err(error) = client.finish(self.pending, redirected).await {
            let error = SignInError::from(error);
            record.end(Some(error.outcome()));
            return Err(error);
        }
        record.end(Some(ChangeOutcome::Done));
        let servers = AccountServers::new(&self.board.0.registry);
        servers.connect_waiting(&account).await;
        Ok(())
    }
}

/// What a sign-out did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignedOut {
    /// Nobody was signed in.
    WasNot,
    /// The tokens are forgotten, and the authorization server has revoked them.
    Revoked,
    /// The tokens are forgotten, but not revoked: they stay valid until they expire.
    #[non_exhaustive]
    OnlyForgotten {
        /// Why the authorization server has not revoked them.
        reason: String,
    },
}

#[doc(hidden)]
impl From<Ended> for SignedOut {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::WasNot => Self::WasNot,
            Ended::Revoked => Self::Revoked,
            Ended::OnlyForgotten(reason) => Self::OnlyForgotten { reason },
        }
    }
}

/// A sign-in that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedIn {
    /// The authorization server that issued the tokens.
    pub issuer: String,
    /// The scopes that were granted; those that were requested if the authorization server did not say.
    pub scopes: Vec<String>,
    /// When the sign-in was made. `None` if an older version has made it.
    pub since: Option<Timestamp>,
    /// The scopes that were requested and not granted.
    pub not_granted: Vec<String>,
    /// When the access token expires.
    pub expires_at: Timestamp,
    /// Whether the access token is renewed without a person.
    pub is_renewable: bool,
    /// Whether the tokens are of no more use, so that a person must sign in again.
    pub needs_sign_in: bool,
}

#[doc(hidden)]
impl From<SessionSummary> for SignedIn {
    fn from(session: SessionSummary) -> Self {
        Self {
            since: session.began_at.map(time),
            expires_at: time(session.expires_at),
            issuer: session.issuer,
            scopes: session.scopes,
            not_granted: session.not_granted,
            is_renewable: session.is_renewable,
            needs_sign_in: session.needs_sign_in,
        }
    }
}

/// The time of so many seconds since 1970.
fn time(seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).ok();
    let time = seconds.and_then(Timestamp::from_second);
    time.unwrap_or(Timestamp::MAX)
}

/// Why a sign-in or sign-out failed. No text contains a token, a code or a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SignInError {
    kind: SignInErrorKind,
    message: String,
    hint: Option<String>,
    oauth_code: Option<String>,
}

/// The kind of a [`SignInError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignInErrorKind {
    /// The board has no server of that name.
    UnknownServer,
    /// The server takes no sign-in of a person.
    NotPossible,
    /// The server needs no sign-in.
    NotNeeded,
    /// The person or the authorization server refused it.
    Denied,
    /// The redirect is not the answer to this sign-in.
    WrongRedirect,
    /// The authorization server refused the code or the client, after the person had signed in.
    Refused,
    /// A host did not answer; a later attempt may succeed.
    Unreachable,
    /// Another reason.
    Failed,
}

impl SignInError {
    /// The kind of the error.
    pub fn kind(&self) -> SignInErrorKind {
        self.kind
    }

    /// The error code of OAuth that the authorization server sent, such as `invalid_scope`, if it sent one.
    pub fn oauth_code(&self) -> Option<&str> {
        self.oauth_code.as_deref()
    }

    /// How the sign-in or sign-out ended, for its record.
    fn outcome(&self) -> ChangeOutcome {
        match self.kind {
            SignInErrorKind::Denied | SignInErrorKind::WrongRedirect | SignInErrorKind::Refused => {
                ChangeOutcome::Refused
            }
            _ => ChangeOutcome::Failed,
        }
    }

    pub(super) fn new(kind: SignInErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            oauth_code: None,
        }
    }
}

/// The audit log is required and cannot be written.
pub(super) fn to_sign_in_error(failure: Failure) -> SignInError {
    SignInError::new(SignInErrorKind::Failed, failure.message)
}

impl Hint for SignInError {
    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

#[doc(hidden)]
impl From<OAuthError> for SignInError {
    fn from(error: OAuthError) -> Self {
        let kind = match &error {
            OAuthError::Denied(_) => SignInErrorKind::Denied,
            OAuthError::Redirect(_) => SignInErrorKind::WrongRedirect,
            OAuthError::Setting(_)
            | OAuthError::Registration(_)
            | OAuthError::NoAuthorizationServer
            | OAuthError::NotBound(_) => SignInErrorKind::NotPossible,
            OAuthError::NotNeeded => SignInErrorKind::NotNeeded,
            OAuthError::Refused(_)
            | OAuthError::WrongClient { .. }
            | OAuthError::UnknownClient(_)
            | OAuthError::NeedsSignIn { .. } => SignInErrorKind::Refused,
            OAuthError::Store(_) => SignInErrorKind::Failed,
            error if error.is_temporary() => SignInErrorKind::Unreachable,
            _ => SignInErrorKind::Failed,
        };
        Self {
            hint: error.hint(),
            oauth_code: error.code().map(str::to_owned),
            ..Self::new(kind, error.to_string())
        }
    }
}

impl Pegboard {
    /// Begins a sign-in to a remote server. Finds its authorization server and registers there if needed.
    ///
    /// ```no_run
    /// # async fn sign_in(board: pegboard::Pegboard) -> Result<(), pegboard::SignInError> {
    /// let signing_in = board.sign_in("linear", pegboard::SignInOptions::default()).await?;
    /// println!("Open {}", signing_in.url());
    /// let redirected = "http://127.0.0.1:47471/callback?code=…&state=…"; // What the browser was sent to.
    /// signing_in.finish(redirected).await
    /// # }
    /// ```
    pub async fn sign_in(&self, server: impl AsRef<str>, options: SignInOptions) -> Result<SignIn, SignInError> {
        let mut account = find_account(&self.0.registry, server.as_ref())?;
        account.principal = options.principal;
        if !options.scopes.is_empty() {
            let settings = OAuthConfig {
                scopes: options.scopes,
                ..OAuthConfig::clone(&account.settings)
            };
            account.settings = Arc::new(settings);
        }
        let redirect = match &options.redirect_uri {
            Some(uri) => RedirectUri::parse(uri)?,
            None => {
                let settings = &account.settings.redirect;
                RedirectUri::local(settings, settings.port.unwrap_or(DEFAULT_PORT))?
            }
        };
        if options.registers_anew && account.settings.client_id.is_some() {
            let why = format!(
                "the config names the client of `{}`, so none is registered",
                account.server
            );
            return Err(SignInError {
                hint: Some("remove `oauth.client_id` of the server, or sign in without a new client".to_owned()),
                ..SignInError::new(SignInErrorKind::NotPossible, why)
            });
        }
        let client = self.0.factory.sign_ins.client();
        let pending = match options.registers_anew {
            true => client.begin_anew(&account, &redirect).await?,
            false => client.begin(&account, &redirect).await?,
        };
        Ok(SignIn {
            board: self.clone(),
            pending,
        })
    }

    /// Revokes and forgets the tokens of a server, of all views without a principal. Connections that use them end.
    pub async fn sign_out(&self, server: impl AsRef<str>) -> Result<SignedOut, SignInError> {
        let account = find_account(&self.0.registry, server.as_ref())?;
        end_sign_in(self, &account).await
    }

    /// Like [`Pegboard::sign_out`] for the views of a principal.
    pub async fn sign_out_as(
        &self,
        server: impl AsRef<str>,
        principal: impl Into<Principal>,
    ) -> Result<SignedOut, SignInError> {
        let mut account = find_account(&self.0.registry, server.as_ref())?;
        account.principal = Some(principal.into());
        end_sign_in(self, &account).await
    }

    /// Whether people can sign in to a server: it is remote, and its config has no other credentials for it.
    pub fn takes_sign_in(&self, server: impl AsRef<str>) -> bool {
        let account = find_account(&self.0.registry, server.as_ref());
        account.is_ok_and(|account| account.settings.grant.needs_person())
    }

    /// Whether a sign-in to a server may [register a new client](SignInOptions::new_client): the config names none.
    pub fn registers_client(&self, server: impl AsRef<str>) -> bool {
        let account = find_account(&self.0.registry, server.as_ref());
        account.is_ok_and(|account| account.settings.grant.needs_person() && account.settings.client_id.is_none())
    }

    /// Whether there are tokens for a server: of the principal, or of all views without one.
    pub async fn is_signed_in(
        &self,
        server: impl AsRef<str>,
        principal: Option<&Principal>,
    ) -> Result<bool, SignInError> {
        let mut account = find_account(&self.0.registry, server.as_ref())?;
        account.principal = principal.cloned();
        Ok(self.0.factory.sign_ins.client().is_signed_in(&account).await?)
    }

    /// The sign-in that is stored for a server: of the principal, or of all views without one. `None` if nobody has signed in.
    pub async fn signed_in(
        &self,
        server: impl AsRef<str>,
        principal: Option<&Principal>,
    ) -> Result<Option<SignedIn>, SignInError> {
        let mut account = find_account(&self.0.registry, server.as_ref())?;
        account.principal = principal.cloned();
        let session = self.0.factory.sign_ins.client().session(&account).await?;
        Ok(session.map(SignedIn::from))
    }
}

/// Revokes and forgets the tokens of an account, and ends the connections that use them.
fn end_sign_in<'a>(board: &'a Pegboard, account: &'a OAuthAccount) -> BoxFuture<'a, Result<SignedOut, SignInError>> {
    Box::pin(async move {
        let record = SignInRecord::begin(board, SignInRecord::SIGN_OUT, account)
            .await
            .map_err(to_sign_in_error)?;
        let ended = match board.0.factory.sign_ins.client().sign_out(account).await {
            Ok(ended) => ended,
            Err(error) => {
                let error = SignInError::from(error);
                record.end(Some(error.outcome()));
                return Err(error);
            }
        };
        record.end((ended != Ended::WasNot).then_some(ChangeOutcome::Done));
        if ended != Ended::WasNot {
            AccountServers::new(&board.0.registry).end_connections(account).await;
        }
        Ok(ended.into())
    })
}

/// The account of a server. Fails if people cannot sign in to it.
fn find_account(registry: &Registry, name: &str) -> Result<OAuthAccount, SignInError> {
    let unknown = || SignInError::new(SignInErrorKind::UnknownServer, format!("there is no server `{name}`"));
    let name = ServerName::parse(name).map_err(|_| unknown())?;
    let server = registry.get(&name).ok_or_else(unknown)?;
    let config = server.config();
    let account = account_of(&name, &config.transport);
    if let Some((account, _)) = account.filter(|_| server.spec().target.is_configured()) {
        return Ok(account);
    }
    let (why, hint) = match config.transport.endpoint().map(|endpoint| &endpoint.auth) {
        None => ("it is not a remote server", None),
        Some(Auth::Anonymous) => (
            "its config says that it needs none",
            Some("remove `auth = \"none\"` or `oauth = false` of the server"),
        ),
        Some(_) => (
            "its config has other credentials for it",
            Some("remove `auth`, `headers_helper` or the `Authorization` header of the server"),
        ),
    };
    Err(SignInError {
        hint: hint.map(str::to_owned),
        ..SignInError::new(
            SignInErrorKind::NotPossible,
            format!("nobody can sign in to `{name}`: {why}"),
        )
    })
}
