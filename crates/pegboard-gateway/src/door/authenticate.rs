//! [`Authenticator`]: a program's own way to tell who sends a request, in place of tokens.

use std::{fmt, sync::Arc, time::Duration};

use http::request::Parts;
use pegboard::{BoxFuture, Principal};
use pegboard_base::sync::catch;

use super::{AuthError, Caller, Rejection, Scopes, admitted::Admitted};

/// How long the program may take to tell who sends a request.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How often the program is asked about one request, if what its sender has open is ended meanwhile.
const ATTEMPTS: usize = 3;

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
        for _ in 0..ATTEMPTS {
            let asked = self.admitted.moment();
            let principal = self.ask(head).await.map_err(Rejection::Program)?;
            // What the program answers may be older than the end of the principal.
            if let Some(revoked) = self.admitted.revocation_since(asked, &principal) {
                return Ok(Caller {
                    revoked,
                    principal: Some(principal),
                    scopes: Scopes::DEFAULT,
                    ..Caller::default()
                });
            }
        }
        Err(Rejection::Program(AuthError::Unavailable))
    }

    /// Asks the program.
    async fn ask(&self, head: &Parts) -> Result<Principal, AuthError> {
        let asking = catch(async { (self.authenticate)(head).await });
        match tokio::time::timeout(TIME_LIMIT, asking).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                tracing::error!("the function that authenticates requests panicked; the request is refused");
                Err(AuthError::Unavailable)
            }
            Err(_) => {
                tracing::warn!("the function that authenticates requests took too long; the request is refused");
                Err(AuthError::Unavailable)
            }
        }
    }

    /// Ends what a principal has open. Returns as whom it was opened, if there may be something.
    pub(crate) fn end(&self, principal: &Principal) -> Option<Caller> {
        let revoked = self.admitted.end(principal)?;
        Some(Caller {
            revoked,
            principal: Some(principal.clone()),
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
