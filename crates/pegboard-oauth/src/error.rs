//! [`OAuthError`]: why there is no token, or why a sign-in failed.

use std::time::Duration;

use super::{account::OAuthAccount, checked_http::HttpError, token_store::StoreError};
use pegboard_base::{hint::Hint, name::ServerName};

/// How long after a temporary failure the next attempt is made.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(15);

/// Why there is no token. No text contains a token, a code or a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// Only a person can go on.
    #[error("{why}; sign in to go on")]
    NeedsSignIn {
        /// Why.
        why: String,
        /// Whether there was a sign-in, which has ended.
        has_ended: bool,
    },
    /// The server asks for more scopes again and again, although they were requested.
    #[error(
        "the server still refuses the token for lack of scopes ({0}), after they were requested; it is not asked again"
    )]
    StepUpLimit(String),
    /// The authorization server cannot be found, or what it says about itself must not be used.
    #[error("{0}")]
    Discovery(String),
    /// The server names another authorization server than the one that the client's secret was first used at.
    #[error(
        "the server now names the authorization server {now}, but the client's secret was used at {before}; it is not sent to another one"
    )]
    IssuerChanged {
        /// The issuer that the server names now.
        now: String,
        /// The issuer that the secret was first used at.
        before: String,
    },
    /// Nothing names an authorization server, and there is none at the server itself.
    #[error("the server names no authorization server")]
    NoAuthorizationServer,
    /// The program cannot be registered as a client.
    #[error("{0}")]
    Registration(Refusal),
    /// The redirect after a sign-in is not the answer to it.
    #[error("{0}")]
    Redirect(String),
    /// The authorization server refused the sign-in.
    #[error("the authorization server refused the sign-in: {0}")]
    Denied(Refusal),
    /// The authorization server refused a token request, and would refuse it again.
    #[error("the authorization server refused the token request: {0}")]
    Refused(Refusal),
    /// The authorization server refuses the client that the config names.
    #[error("the authorization server refused the client of the config: {text}")]
    WrongClient {
        /// The authorization server's error.
        text: String,
        /// What to do about it.
        hint: String,
    },
    /// The tokens are not bound to a key, and the config wants that they are.
    #[error("{0}")]
    NotBound(String),
    /// The authorization server does not know the client that this program has registered there.
    #[error("the authorization server does not know this program any more: {0}")]
    UnknownClient(String),
    /// The server answers without a token, and names no authorization server.
    #[error("the server needs no sign-in: it answers without a token")]
    NotNeeded,
    /// The server itself cannot be reached.
    #[error("server `{server}` cannot be reached: {why}")]
    Down {
        /// The name of the server in the config.
        server: ServerName,
        /// Why the request failed.
        why: String,
    },
    /// A failure that may be over at the next attempt.
    #[error("{reason}")]
    Temporary {
        /// The message of the failure.
        reason: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The settings do not fit together.
    #[error("{0}")]
    Setting(String),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A request failed, or was not made because its URL is not safe.
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// Why an authorization server refused something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct Refusal {
    /// The error code of OAuth, such as `invalid_scope`, if the authorization server sent one.
    pub code: Option<String>,
    /// Why, in words.
    pub text: String,
}

impl Refusal {
    /// Creates a refusal without a code.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            code: None,
            text: text.into(),
        }
    }

    /// Sets the code that the authorization server sent.
    pub(super) fn code(mut self, code: Option<String>) -> Self {
        self.code = code;
        self
    }
}

impl OAuthError {
    /// The error code of OAuth that the authorization server sent, if it sent one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Registration(refusal) | Self::Denied(refusal) | Self::Refused(refusal) => refusal.code.as_deref(),
            _ => None,
        }
    }

    /// Only a sign-in helps, for another reason than the end of the last one.
    pub(super) fn needs_another_sign_in(why: String) -> Self {
        Self::NeedsSignIn { why, has_ended: false }
    }

    /// The server itself cannot be reached.
    pub(super) fn down(account: &OAuthAccount, why: &HttpError) -> Self {
        let why = match why {
            HttpError::Failed { why, .. } => why.clone(),
            why => why.to_string(),
        };
        Self::Down {
            server: account.server.clone(),
            why,
        }
    }

    /// The authorization server refuses the client that the config names.
    pub(super) fn wrong_client(account: &OAuthAccount, text: String) -> Self {
        let settings = &account.settings;
        let fields = if settings.private_key.is_some() {
            "`client_id`, `private_key_file` and `key_id`"
        } else if settings.client_secret.is_some() {
            "`client_id` and `client_secret`"
        } else if settings.client_id.is_some() {
            "`client_id`, and whether the client has a `client_secret`,"
        } else {
            "`client_metadata_url`"
        };
        let hint = format!("check {fields} in `oauth` or `auth` of server `{}`", account.server);
        Self::WrongClient { text, hint }
    }

    /// Whether a person has to sign in.
    pub fn needs_sign_in(&self) -> bool {
        matches!(self, Self::NeedsSignIn { .. })
    }

    /// Whether a later attempt may succeed without a change of the config or a sign-in.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Temporary { .. } | Self::Down { .. } => true,
            Self::Http(error) => error.is_temporary(),
            Self::Store(error) => error.is_temporary(),
            _ => false,
        }
    }
}

impl OAuthError {
    /// When to try again, if that may succeed without a change.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Temporary { retry_after, .. } => Some(*retry_after),
            error => error.is_temporary().then_some(RETRY_AFTER),
        }
    }
}

impl Hint for OAuthError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Http(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::IssuerChanged { now, .. } => Some(format!(
                "if the client is registered there too, set `oauth.issuer = \"{now}\"` for the server"
            )),
            Self::NoAuthorizationServer => Some(
                "give the server's credentials in `auth` or `headers`, or name its authorization server in `oauth.issuer`"
                    .to_owned(),
            ),
            Self::Down { .. } => Some("start the server, or check its `url`, the network and any proxy".to_owned()),
            Self::Registration(_) => {
                Some("register a client by hand and name it in `oauth.client_id` of the server".to_owned())
            }
            Self::WrongClient { hint, .. } => Some(hint.clone()),
            Self::NotBound(_) => Some(
                "set `dpop = \"auto\"` in `oauth` of the server to use tokens that are not bound to a key, or turn on DPoP at its authorization server"
                    .to_owned(),
            ),
            Self::UnknownClient(_) => Some("sign in again: the program registers anew".to_owned()),
            Self::Discovery(_) => Some(
                "name the authorization server in `oauth.issuer`, or its endpoints in `oauth.authorization_url` and `oauth.token_url`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
