//! The rights of callers: a handler takes the one that it needs, and requests without it are refused.

use axum::{extract::FromRequestParts, response::Response};
use http::request::Parts;
use pegboard_gateway::{Caller, Scope};

use super::problem::Problem;
use axum::response::IntoResponse as _;

/// A caller that may see the state of servers and tools.
pub(super) struct Reader(pub(super) Caller);

/// A caller that may call tools.
pub(super) struct Invoker(pub(super) Caller);

/// A caller that may change what runs.
pub(super) struct Admin(pub(super) Caller);

/// The caller, if it has the scope. A request that no gateway has admitted has no caller.
fn caller_with(parts: &Parts, scope: Scope) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>();
    let caller = caller.ok_or_else(|| Problem::forbidden("the request was not admitted by a gateway"))?;
    if caller.scopes().contains(scope) {
        return Ok(caller.clone());
    }
    let problem = Problem::forbidden(format!("the token does not have the scope `{scope}`"));
    Err(problem.hint("the operator sets `scopes` of the token"))
}

macro_rules! access {
    ($type:ident, $scope:expr) => {
        impl<S: Sync> FromRequestParts<S> for $type {
            type Rejection = Response;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
                caller_with(parts, $scope)
                    .map(Self)
                    .map_err(Problem::into_response)
            }
        }
    };
}

access!(Reader, Scope::Read);
access!(Invoker, Scope::Call);
access!(Admin, Scope::Admin);
