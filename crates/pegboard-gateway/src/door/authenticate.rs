//! [`Authenticator`]: a program's own way to tell who sends a request, in place of tokens.

use std::{fmt, sync::Arc};

use http::request::Parts;
use pegboard::{BoxFuture, Principal};

use super::{AuthError, Caller, Rejection, Scopes, admitted::Admitted};

type Authenticate = dyn for<'a> Fn(&'a Parts) -> BoxFuture<'a, Result<Principal, AuthError>> + Send + Sync;

/// Tells who sends a request.
#[derive(Clone)]
pub(crate) struct Authenticator {
    authenticate: Arc<Authenticate>,
    admitted: Arc<Admitted>,
}

impl Authenticator {
    pub(crate) fn new<F>(authenticate: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> BoxFuture<'a, Result<Principal, AuthError>> + Send + Sync + 'static,
    {
        Self {
            authenticate: Arc::new(authenticate),
            admitted: Arc::default(),
        }
    }

    /// The caller of a request, who may use tools but not change what runs.
    pub(crate) async fn authenticate(&self, head: &Parts) -> Result<Caller, Rejection> {
        let principal = (self.authenticate)(head).await.map_err(Rejection::Program)?;
        Ok(Caller {
            revoked: self.admitted.revocation_of(&principal),
            principal: Some(principal),
            scopes: Scopes::DEFAULT,
            ..Caller::default()
        })
    }

    /// Ends what a principal has open.
    pub(crate) fn end(&self, principal: &Principal) {
        self.admitted.end(principal);
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}
