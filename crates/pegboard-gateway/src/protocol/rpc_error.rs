//! [`RpcError`]: the `error` of a response.

use serde::Serialize;
use serde_json::{Value, json};

/// The `error` of a JSON-RPC response.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What failed, on what, and what to do.
    pub message: String,
    /// Further data for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Whether a server wrote it. What its data says about another try is the server's word, and not that of this gateway.
    #[serde(skip)]
    pub(crate) is_of_server: bool,
}

impl RpcError {
    /// The message is not JSON.
    pub const PARSE: i64 = -32700;
    /// The message is no valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed.
    pub const INTERNAL: i64 = -32603;
    /// The server has no room for the request now.
    pub const BUSY: i64 = -32000;
    /// The resource does not exist.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The gateway ends the request before it is done: it stops, the session has ended, or the token is no longer valid. The field
    /// `may_have_executed` of the data says whether the request may have taken effect.
    pub const STOPPING: i64 = -32010;
    /// The token of the client lacks the scope that the request needs.
    pub const FORBIDDEN: i64 = -32011;
    /// A header differs from the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a capability that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The user must visit a page first (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// The protocol version is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// Creates an error.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            is_of_server: false,
        }
    }

    /// A server's error.
    pub(crate) fn of_server(code: i64, message: String, data: Option<Value>) -> Self {
        Self {
            data,
            is_of_server: true,
            ..Self::new(code, message)
        }
    }

    /// Creates an error about params.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// Creates an error about an unknown method.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("method `{}` is not known here", method.escape_debug());
        Self::new(Self::METHOD_NOT_FOUND, message)
    }

    /// The error for work that panicked. The panic itself is logged by its hook.
    pub(super) fn panicked(may_have_executed: bool) -> Self {
        Self::new(Self::INTERNAL, "the server failed while it answered this request")
            .data(json!({"may_have_executed": may_have_executed}))
    }

    /// Whether the data says that the request may have taken effect.
    pub(super) fn may_have_executed(&self) -> bool {
        let says = |data: &Value, field: &str| data.get(field) == Some(&Value::Bool(true));
        let fields = ["may_have_executed", "pegboard/may_have_executed"];
        self.data
            .as_ref()
            .is_some_and(|data| fields.into_iter().any(|field| says(data, field)))
    }

    /// Sets the data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}
