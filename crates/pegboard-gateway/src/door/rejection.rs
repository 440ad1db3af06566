//! [`Rejection`]: why a request is not admitted.

use http::StatusCode;

use super::{auth_error::AuthError, token_fault::TokenFault};

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("the Host header is missing")]
    NoHost,
    #[error(
        "the Host header does not name this server; add the name to `serve.hosts`, in a program to `GatewayBuilder::hosts`"
    )]
    Host,
    #[error("the Origin header names another site; add the origin to `serve.origins`")]
    Origin,
    #[error("the request comes from a page of another site")]
    CrossSite,
    #[error("a header that must be single is given twice")]
    Doubled,
    #[error("a header is not plain text")]
    NotText,
    #[error("a token is needed: send it as `Authorization: Bearer …`")]
    NoToken,
    #[error(
        "without a token, only processes of the user who started the gateway are served, and this request is of another one or of a sandboxed server: \
         send that user's token, whose file `pegboard serve` names, as `Authorization: Bearer …`"
    )]
    NotOwner,
    #[error("the token is unknown or has expired")]
    Token,
    #[error("{0}")]
    AccessToken(TokenFault),
    #[error("{0}")]
    Program(AuthError),
}

impl Rejection {
    /// The status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NoHost | Self::Doubled | Self::NotText => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::NoToken | Self::NotOwner | Self::Token => StatusCode::UNAUTHORIZED,
            Self::AccessToken(fault) => fault.status(),
            Self::Program(AuthError::Unauthenticated) => StatusCode::UNAUTHORIZED,
            Self::Program(AuthError::Forbidden) => StatusCode::FORBIDDEN,
            Self::Program(AuthError::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The reason as a label of a metric.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::NoHost | Self::Host => "host",
            Self::Origin | Self::CrossSite => "origin",
            Self::Doubled | Self::NotText => "header",
            Self::NoToken | Self::NotOwner => "no_token",
            Self::Token => "token",
            Self::AccessToken(fault) => fault.label(),
            Self::Program(_) => "program",
        }
    }

    /// What is wrong with the access token.
    pub(crate) fn fault(self) -> Option<TokenFault> {
        match self {
            Self::AccessToken(fault) => Some(fault),
            _ => None,
        }
    }

    /// The `WWW-Authenticate` header of the response of a gateway that knows no authorization server.
    pub(crate) fn challenge(self) -> Option<&'static str> {
        match self {
            Self::NoToken | Self::NotOwner | Self::Program(AuthError::Unauthenticated) => {
                Some(r#"Bearer realm="pegboard""#)
            }
            Self::Token => Some(r#"Bearer realm="pegboard", error="invalid_token""#),
            _ => None,
        }
    }
}
