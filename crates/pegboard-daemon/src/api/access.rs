//! The rights of callers: a handler takes the one that it needs, and requests without it are refused.

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
    request::Parts,
};
use pegboard_gateway::{Caller, LocalClient, Scope};

use super::problem::Problem;

/// A caller that may see the state of servers and tools.
pub(super) struct StatusReader(pub(super) Caller);

/// A caller that the gateway has admitted. What it may do is not known yet.
pub(super) struct Anyone(pub(super) Caller);

/// A caller that may call tools.
pub(super) struct ToolCaller(pub(super) Caller);

/// A caller that may change what runs.
pub(super) struct Admin(pub(super) Caller);

/// Why a caller may not do what needs this scope; `None` if it may.
pub(super) fn lacks(caller: &Caller, scope: Scope) -> Option<String> {
    let has_scope = caller.scopes().contains(scope);
    (!has_scope).then(|| match caller.principal() {
        Some(_) => format!("the token lacks the scope `{scope}`, which this request needs"),
        None => format!("this request needs a token with the scope `{scope}`"),
    })
}

/// The caller, if it has the scope. A request that no gateway has admitted has no caller.
fn caller_with(parts: &Parts, scope: Option<Scope>) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned();
    let caller = caller.ok_or_else(|| Problem::forbidden("the request was not admitted by a gateway"))?;
    match scope.and_then(|scope| lacks(&caller, scope)) {
        None => Ok(caller),
        Some(why) => {
            let hint = match caller.principal() {
                Some(_) => "the operator sets `scopes` of the token",
                None => {
                    "send one as `Authorization: Bearer …`: a token of `[serve.tokens]`, or if there are none, that of the user, whose file \
                     `pegboard serve` names"
                }
            };
            Err(Problem::forbidden(why).hint(hint))
        }
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

/// Whether a web page of another site can make a browser send a request like this one: no body, no header that needs a preflight. A token and JSON are
/// such headers.
fn can_be_forged(parts: &Parts) -> bool {
    let is_json = |kind: &HeaderValue| {
        let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    };
    parts.method == Method::POST
        && !parts.headers.contains_key(AUTHORIZATION)
        && !parts.headers.get(CONTENT_TYPE).is_some_and(is_json)
        && parts.extensions.get::<LocalClient>().is_none()
}

access!(Anyone, None);
access!(StatusReader, Some(Scope::Read));
access!(ToolCaller, Some(Scope::Call));

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let caller = caller_with(parts, Some(Scope::Admin)).map_err(Problem::into_response)?;
        if can_be_forged(parts) {
            let detail = "a request without a token that changes something needs the header `Content-Type: application/json`, also without a body";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).into_response());
        }
        Ok(Self(caller))
    }
}
