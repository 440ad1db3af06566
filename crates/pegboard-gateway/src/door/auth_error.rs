//! [`AuthError`]: why a program does not admit a request.

/// Why a program does not admit a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// It has no credentials, or they are no good: status 401.
    #[error("the credentials of the request are missing or not valid")]
    Unauthenticated,
    /// Whoever it is from may not use the gateway: status 403.
    #[error("the sender of the request may not use this gateway")]
    Forbidden,
    /// That cannot be told now: status 503.
    #[error("the credentials of the request cannot be verified now; try again later")]
    Unavailable,
}
