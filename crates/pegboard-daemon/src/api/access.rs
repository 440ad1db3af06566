//! The rights of callers: a handler takes the one that it needs, and requests without it are refused.

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse as _, Response},
};
use http::request::Parts;
use pegboard_gateway::{Caller, Scope};

use super::problem::Problem;

/// A caller that may see the state of servers and tools.
pub(super) struct Reader(pub(super) Caller);

/// A caller that the gateway has admitted. What it may do is not known yet.
pub(super) struct Anyone(pub(super) Caller);

/// A caller that may call tools.
pub(super) struct ToolCaller(pub(super) Caller);

/// A caller that may change what runs.
pub(super) struct Admin(pub(super) Caller);

/// Why a caller may not do what needs this scope; `None` if it may.
pub(super) fn lacks(caller: &Caller, scope: Scope) -> Option<String> {
    let has_scope = caller.scopes().contains(scope);
    (!has_scope).then(|| format!("the token lacks the scope `{scope}`, which this request needs"))
}

/// The caller, if it has the scope. A request that no gateway has admitted has no caller.
fn caller_with(parts: &Parts, scope: Option<Scope>) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned();
    let caller = caller.ok_or_else(|| Problem::forbidden("the request was not admitted by a gateway"))?;
    match scope.and_then(|scope| lacks(&caller, scope)) {
        None => Ok(caller),
        Some(why) => Err(Problem::forbidden(why).hint("the operator sets `scopes` of the token")),
    }
}

macro_rules! access {
    ($type:ident, $scope:expr) => {
        impl<S: Sync> FromRequestParts<S> for $type {
            type Rejection = Response;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
                let caller = caller_with(parts, $scope);
                caller.map(Self).map_err(Problem::into_response)
            }
        }
    };
}

access!(Anyone, None);
access!(Reader, Some(Scope::Read));
access!(ToolCaller, Some(Scope::Call));
access!(Admin, Some(Scope::Admin));
