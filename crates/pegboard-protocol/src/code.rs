//! The codes of JSON-RPC errors.

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is no valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// The request was cancelled.
pub const REQUEST_CANCELLED: i64 = -32800;

/// The server refuses the request for a reason of its own. SDKs send it with an HTTP status.
pub const SERVER_ERROR: i64 = -32000;
/// There is no such session. SDKs send it with the HTTP status 404.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// The resource does not exist (legacy).
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// A header differs from the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client lacks a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The protocol version is not supported.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// The user must visit a page first (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Pegboard has no room for the request now.
pub const BUSY: i64 = SERVER_ERROR;
/// Pegboard ends the request before it is done: it stops, the session has ended, or the token is no longer valid. The field
/// `may_have_executed` of the data says whether the request may have taken effect.
pub const STOPPING: i64 = -32010;
/// The token of Pegboard's client lacks the scope that the request needs.
pub const FORBIDDEN: i64 = -32011;

/// All codes.
pub const ALL: &[i64] = &[
    PARSE_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    INVALID_PARAMS,
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    SERVER_ERROR,
    SESSION_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
    STOPPING,
    FORBIDDEN,
];

/// The code as a label of a metric: one of [`ALL`], or `_OTHER`. A server may answer with any number.
pub fn label(code: i64) -> String {
    match ALL.contains(&code) {
        true => code.to_string(),
        false => "_OTHER".to_owned(),
    }
}

/// Returns `true` for the errors with which the modern era refuses a request before it is handled.
pub const fn refuses_modern_request(code: i64) -> bool {
    matches!(code, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
}
