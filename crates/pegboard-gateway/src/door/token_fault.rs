//! [`TokenFault`]: why an access token is refused.

use http::StatusCode;

/// Why an access token is refused. The texts are sent to the client, within quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenFault {
    #[error("the access token is longer than 16 KiB")]
    TooLong,
    #[error("the token is unknown here and is no signed JWT")]
    Opaque,
    #[error("the access token is no well-formed JWT")]
    Malformed,
    #[error("the access token is signed with an algorithm that is not accepted")]
    Algorithm,
    #[error("the access token has a critical header that is not understood")]
    Critical,
    #[error("the JWT is of another type than an access token")]
    Type,
    #[error("the access token is bound to a key of its holder, and this gateway checks no proofs of that")]
    Bound,
    #[error("the access token is signed with a key that its issuer does not publish")]
    UnknownKey,
    #[error("the signature of the access token is wrong")]
    Signature,
    #[error("the access token is from an issuer that is not accepted")]
    Issuer,
    #[error("the access token is for another audience")]
    Audience,
    #[error("the access token has expired")]
    Expired,
    #[error("the access token is not valid yet")]
    NotYet,
    #[error("a claim of the access token is missing or has the wrong type")]
    Claim,
    #[error("the access token is not active")]
    Inactive,
    #[error("the access token lacks a scope that is required here")]
    Scope,
    #[error("no rule of this gateway admits the holder of the access token")]
    NoRule,
    #[error("the access token cannot be checked now, because its issuer does not answer; try again later")]
    Unavailable,
    #[error("the rules for access tokens have just changed; try again")]
    Superseded,
}

impl TokenFault {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 19] = [
        Self::TooLong,
        Self::Opaque,
        Self::Malformed,
        Self::Algorithm,
        Self::Critical,
        Self::Type,
        Self::Bound,
        Self::UnknownKey,
        Self::Signature,
        Self::Issuer,
        Self::Audience,
        Self::Expired,
        Self::NotYet,
        Self::Claim,
        Self::Inactive,
        Self::Scope,
        Self::NoRule,
        Self::Unavailable,
        Self::Superseded,
    ];

    /// The status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Scope | Self::NoRule => StatusCode::FORBIDDEN,
            Self::Unavailable | Self::Superseded => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The error code of RFC 6750; `None` if the token may be a good one.
    pub(crate) fn code(self) -> Option<&'static str> {
        match self {
            Self::Scope | Self::NoRule => Some("insufficient_scope"),
            Self::Unavailable | Self::Superseded => None,
            _ => Some("invalid_token"),
        }
    }

    /// The reason as a label of a metric.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Scope | Self::NoRule => "oauth_scope",
            Self::Unavailable | Self::Superseded => "oauth_unavailable",
            Self::Expired | Self::Inactive => "oauth_expired",
            _ => "oauth_token",
        }
    }
}
