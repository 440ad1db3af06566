//! What a program implements and returns: [`Credentials`], and the [`Credential`] for a server.

use pegboard_base::BoxFuture;
use std::{any::Any, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::{
    caller_tokens::CallerRights,
    request_proof::{AttachedProof, RequestProof},
};
use pegboard_base::{caller::Principal, name::ServerName, secret::Secret};

/// Supplies credentials while the program runs: tokens of users, tokens that expire, tokens from a vault.
///
/// A remote server's credential is requested for every HTTP request, unless the last one is still [valid](Credential::valid_for), and once
/// more when the server refuses it. That of a stdio server is requested when its process starts.
///
/// Concurrent requests share one call for an expired or refused credential. A call that takes longer than 30 s, panics or returns an error
/// fails the requests that wait for it, and nothing is sent.
pub trait Credentials: Send + Sync + 'static {
    /// Whether this provider has credentials for a server. Others keep those of the config. `is_process` is `true` for stdio servers: each
    /// principal then gets a process of its own, with the credential's environment variables.
    fn covers(&self, server: &ServerName, is_process: bool) -> bool {
        let _ = server;
        !is_process
    }

    /// Returns the credential for a server. An `Err` fails the request, and nothing is sent.
    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>>;

    /// Names what these credentials allow, for views of one principal: the name of the account, its scopes, the session of the user. Views with
    /// equal principals and equal names share connections, and the provider of the view that was opened last is asked for all of them, so that a
    /// view per request can bring a fresh token with the same rights.
    ///
    /// Without a name (the default) only a `View` and its clones share connections, because another provider may have a token
    /// with other rights. Clones of one `Arc` have the same name. Names are neither printed nor sent.
    fn identity(&self) -> Option<String> {
        None
    }

    /// What keeps the memory of this provider from being used by another one, if [`Credentials::identity`] is its address.
    #[doc(hidden)]
    fn allocation(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Returns `true` if status 403 of this server also means a refused credential, so that another one is requested. Otherwise 403 means that a
    /// right is missing, which no other credential has.
    fn retries_on_forbidden(&self, server: &ServerName) -> bool {
        let _ = server;
        false
    }

    /// Completes when there may be another credential than the one that failed. A server that is down for lack of a credential is then connected
    /// again at once; otherwise the next call does that.
    fn wait_for_renewal<'a>(&'a self, server: &'a ServerName, principal: Option<&'a Principal>) -> BoxFuture<'a, ()> {
        let _ = (server, principal);
        Box::pin(std::future::pending())
    }
}

/// One provider for many views, which share connections if their principals are equal.
impl<T: Credentials + ?Sized> Credentials for Arc<T> {
    fn covers(&self, server: &ServerName, is_process: bool) -> bool {
        self.as_ref().covers(server, is_process)
    }

    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> {
        self.as_ref().credential(request)
    }

    fn identity(&self) -> Option<String> {
        let address = || format!("{:p}", Self::as_ptr(self).cast::<()>());
        Some(self.as_ref().identity().unwrap_or_else(address))
    }

    fn allocation(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(Self::downgrade(self)))
    }

    fn retries_on_forbidden(&self, server: &ServerName) -> bool {
        self.as_ref().retries_on_forbidden(server)
    }

    fn wait_for_renewal<'a>(&'a self, server: &'a ServerName, principal: Option<&'a Principal>) -> BoxFuture<'a, ()> {
        self.as_ref().wait_for_renewal(server, principal)
    }
}

/// A provider that is chosen while the program runs.
impl Credentials for Box<dyn Credentials> {
    fn covers(&self, server: &ServerName, is_process: bool) -> bool {
        self.as_ref().covers(server, is_process)
    }

    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> {
        self.as_ref().credential(request)
    }

    fn identity(&self) -> Option<String> {
        self.as_ref().identity()
    }

    fn allocation(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.as_ref().allocation()
    }

    fn retries_on_forbidden(&self, server: &ServerName) -> bool {
        self.as_ref().retries_on_forbidden(server)
    }

    fn wait_for_renewal<'a>(&'a self, server: &'a ServerName, principal: Option<&'a Principal>) -> BoxFuture<'a, ()> {
        self.as_ref().wait_for_renewal(server, principal)
    }
}

/// The same credential for every server over the network.
///
/// ```
/// # mod pegboard { pub use pegboard_client::credential::*; }
/// use pegboard::{Credential, Credentials};
///
/// fn takes(_: impl Credentials) {}
///
/// takes(Credential::bearer("token of alice"));
/// ```
impl Credentials for Credential {
    fn credential<'a>(&'a self, _: CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn identity(&self) -> Option<String> {
        self.proof.is_none().then(|| self.digest())
    }
}

/// Makes a provider of an async function, which returns the credential for a server over the network.
///
/// ```
/// # mod pegboard { pub use pegboard_client::credential; pub use pegboard_client::credential::*; }
/// use pegboard::{Credential, credential::credentials};
///
/// let vault = credentials(|request| {
///     Box::pin(async move {
///         let token = format!("token-of-{:?}-for-{}", request.principal, request.server); // Read from the vault.
///         Ok(Credential::bearer(token))
///     })
/// });
/// ```
pub fn credentials<F>(credential: F) -> impl Credentials
where
    F: for<'a> Fn(CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> + Send + Sync + 'static,
{
    CredentialFunction(credential)
}

struct CredentialFunction<F>(F);

impl<F> Credentials for CredentialFunction<F>
where
    F: for<'a> Fn(CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> + Send + Sync + 'static,
{
    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> {
        (self.0)(request)
    }
}

/// What a credential is requested for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CredentialRequest<'a> {
    /// The server.
    pub server: &'a ServerName,
    /// The principal whose credential it is; `None` for the board's own connections.
    pub principal: Option<&'a Principal>,
    /// Why it is requested.
    pub reason: CredentialReason<'a>,
    /// The token that the server has refused, if the credential had one. The provider may have given another one to another connection since.
    #[doc(hidden)]
    pub refused_token: Option<&'a Secret>,
    /// Which of the principal's access tokens may be exchanged for it.
    #[doc(hidden)]
    pub rights: Option<CallerRights>,
}

/// Why a credential is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialReason<'a> {
    /// The connection has none yet.
    FirstUse,
    /// The last one may have expired.
    Refresh,
    /// The server has refused the last one: with status 401, or with 403 because its scopes are not enough.
    Refused {
        /// The `WWW-Authenticate` header of the response.
        challenge: Option<&'a str>,
    },
}

/// A credential: headers for remote servers, environment variables for stdio servers. Its values are masked like the secrets of the config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Credential {
    headers: Vec<(String, Secret)>,
    env: Vec<(String, Secret)>,
    valid_for: Option<Duration>,
    proof: Option<AttachedProof>,
}

impl Credential {
    /// Creates a credential without values: requests are sent as the config says.
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates an `Authorization` header with a bearer token.
    pub fn bearer(token: impl AsRef<str>) -> Self {
        Self::none().header("Authorization", format!("Bearer {}", token.as_ref()))
    }

    /// Creates an `Authorization` header with a DPoP token; each request carries a proof of its key.
    #[doc(hidden)]
    pub fn dpop(token: &Secret, proof: Arc<dyn RequestProof>) -> Self {
        let credential = Self::none().header("Authorization", format!("DPoP {}", token.expose()));
        Self {
            proof: Some(AttachedProof(proof)),
            ..credential
        }
    }

    /// Adds a header. It replaces a header of the config with the same name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), Secret::new(value.into())));
        self
    }

    /// Adds an environment variable of a stdio server's process. It replaces a variable of the config with the same name.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), Secret::new(value.into())));
        self
    }

    /// Sets how long the credential is reused before the provider is asked again. Without it, the provider is asked for every request.
    pub fn valid_for(mut self, time: Duration) -> Self {
        self.valid_for = Some(time);
        self
    }

    /// A name for what it allows, which does not tell its values.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for (name, value) in self.headers.iter().chain(&self.env) {
            for text in [name.as_str(), value.expose()] {
                digest.update((text.len() as u64).to_le_bytes());
                digest.update(text);
            }
        }
        BASE64_STANDARD.encode(digest.finalize())
    }

    pub(crate) fn headers(&self) -> &[(String, Secret)] {
        &self.headers
    }

    pub(crate) fn variables(&self) -> &[(String, Secret)] {
        &self.env
    }

    pub(super) fn proof(&self) -> Option<&AttachedProof> {
        self.proof.as_ref()
    }

    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.valid_for
    }
}

/// Why there is no credential. The message is shown to the caller, so it must not contain secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialError {
    message: String,
    remedy: Remedy,
}

/// What helps against a missing credential.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Remedy {
    /// The program must supply one.
    #[default]
    Program,
    /// A person can do this: sign in, or correct the config or what it names.
    Person {
        /// What the person has to do.
        task: PersonTask,
        /// How to do it.
        hint: Option<String>,
    },
    /// It is tried again after this time. A person may help in the way that the hint says.
    Wait {
        /// The time until the next attempt.
        after: Duration,
        /// What a person can do meanwhile, if anything.
        hint: Option<String>,
    },
}

/// What a person has to do before there is a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonTask {
    /// To sign in.
    SignIn,
    /// To sign in again: the last sign-in has ended.
    SignInAgain,
    /// To correct the config or what it names.
    Correct,
}

impl Remedy {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Program => Some(
                "the program's `Credentials` must return a credential for this server, or not cover it; nothing was sent"
                    .to_owned(),
            ),
            Self::Person { hint, .. } | Self::Wait { hint, .. } => hint.clone(),
        }
    }

    /// When the next attempt may succeed without a person.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Wait { after, .. } => Some(*after),
            Self::Program | Self::Person { .. } => None,
        }
    }
}

impl CredentialError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: Remedy::Program,
        }
    }

    /// Sets what helps, for credentials that the config names.
    #[doc(hidden)]
    pub fn with_remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = remedy;
        self
    }

    pub(crate) fn remedy(&self) -> &Remedy {
        &self.remedy
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CredentialError {}

impl From<String> for CredentialError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for CredentialError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}
