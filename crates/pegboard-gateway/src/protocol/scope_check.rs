//! Which scope a request needs.

use serde_json::json;

use super::rpc_error::RpcError;
use crate::door::{Scope, Scopes};

/// Fails if a client with these scopes may not send requests with this method.
pub(super) fn check(scopes: Scopes, method: &str) -> Result<(), RpcError> {
    match needed(method) {
        Some(scope) if !scopes.contains(scope) => Err(refusal(scope)),
        _ => Ok(()),
    }
}

/// The scope that a method needs; `None` if it belongs to the connection itself.
///
/// A method that is not known here may run anything.
fn needed(method: &str) -> Option<Scope> {
    match method {
        "tools/call" => Some(Scope::Call),
        "initialize" | "ping" | "server/discover" | "logging/setLevel" => None,
        "tools/list"
        | "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "prompts/list"
        | "prompts/get"
        | "completion/complete"
        | "subscriptions/listen" => Some(Scope::Read),
        _ => Some(Scope::Call),
    }
}

fn refusal(scope: Scope) -> RpcError {
    let message = format!("the token lacks the scope `{scope}`, which this request needs");
    RpcError::new(RpcError::FORBIDDEN, message).data(json!({"scope": scope.as_str()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_something_needs_call_and_what_shows_something_needs_read() {
        for (method, scope) in [
            ("initialize", None),
            ("ping", None),
            ("server/discover", None),
            ("tools/list", Some(Scope::Read)),
            ("resources/read", Some(Scope::Read)),
            ("prompts/get", Some(Scope::Read)),
            ("subscriptions/listen", Some(Scope::Read)),
            ("tools/call", Some(Scope::Call)),
            ("tasks/get", Some(Scope::Call)),
            ("tasks/cancel", Some(Scope::Call)),
            ("vendor/anything", Some(Scope::Call)),
            ("", Some(Scope::Call)),
        ] {
            assert_eq!(needed(method), scope, "{method}");
        }
    }

    #[test]
    fn a_refusal_names_the_scope() {
        let error = check([Scope::Read, Scope::Admin].into_iter().collect(), "tools/call").unwrap_err();
        assert_eq!((error.code, error.data), (-32011, Some(json!({"scope": "call"}))));
        assert!(error.message.contains("`call`"), "{}", error.message);
        assert!(check(Scopes::OF_A_CLIENT, "tools/call").is_ok());
        assert!(check([].into_iter().collect(), "ping").is_ok());
    }
}
