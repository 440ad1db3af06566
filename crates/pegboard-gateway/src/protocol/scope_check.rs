//! Which scope a request needs.

use pegboard_protocol::{
    RpcError, code,
    method::{Access, RequestMethod},
};
use serde_json::json;

use crate::door::{Scope, Scopes};

/// Fails if a client with these scopes may not send requests with this method.
pub(super) fn authorize(scopes: Scopes, method: &str) -> Result<(), RpcError> {
    match required_scope(method) {
        Some(scope) if !scopes.contains(scope) => Err(refusal(scope)),
        _ => Ok(()),
    }
}

/// The scope that a method needs; `None` if it belongs to the connection itself.
///
/// A method that the protocol does not have may run anything.
fn required_scope(method: &str) -> Option<Scope> {
    match RequestMethod::find(method).map(|request| request.access) {
        Some(Access::Connection) => None,
        Some(Access::Read) => Some(Scope::Read),
        Some(Access::Run | Access::Client) | None => Some(Scope::Call),
    }
}

fn refusal(scope: Scope) -> RpcError {
    let message = format!("the token lacks the scope `{scope}`, which this request needs");
    RpcError::new(code::FORBIDDEN, message).data(json!({"scope": scope.as_str()}))
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
            assert_eq!(required_scope(method), scope, "{method}");
        }
    }

    #[test]
    fn a_refusal_names_the_scope() {
        let error = authorize([Scope::Read, Scope::Admin].into_iter().collect(), "tools/call").unwrap_err();
        assert_eq!((error.code, error.data), (-32011, Some(json!({"scope": "call"}))));
        assert!(error.message.contains("`call`"), "{}", error.message);
        assert!(authorize(Scopes::DEFAULT, "tools/call").is_ok());
        assert!(authorize([].into_iter().collect(), "ping").is_ok());
    }
}
