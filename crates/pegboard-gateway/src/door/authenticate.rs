//! [`Authenticator`]: a program's own way to tell who sends a request, in place of tokens.

use std::{fmt, sync::Arc};

use http::request::Parts;
use pegboard::{BoxFuture, Principal};

use super::{Caller, Rejection, Scopes};

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

type Authenticate = dyn for<'a> Fn(&'a Parts) -> BoxFuture<'a, Result<Principal, AuthError>> + Send + Sync;

/// Tells who sends a request.
#[derive(Clone)]
pub(crate) struct Authenticator(Arc<Authenticate>);

impl Authenticator {
    pub(crate) fn new<F>(authenticate: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> BoxFuture<'a, Result<Principal, AuthError>> + Send + Sync + 'static,
    {
        Self(Arc::new(authenticate))
    }

    /// The caller of a request, who may use tools but not change what runs.
    pub(crate) async fn authenticate(&self, head: &Parts) -> Result<Caller, Rejection> {
        let principal = (self.0)(head).await.map_err(Rejection::Program)?;
        Ok(Caller {
            principal: Some(principal),
            scopes: Scopes::DEFAULT,
            ..Caller::default()
        })
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}
