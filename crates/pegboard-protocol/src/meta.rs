//! The keys of `_meta`, the field of requests, notifications and results for what is not their content.

/// The start of all keys that MCP defines.
pub const PREFIX: &str = "io.modelcontextprotocol/";

/// The protocol version of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The name and version of the client of a modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The capabilities of the client of a modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The lowest level of log messages that a modern request wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The name and version of the server, in a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription that a notification belongs to (modern).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The token under which the sender of a request wants progress.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The trace of a request (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";
/// What systems that take part in the trace have added to it (W3C Trace Context).
pub const TRACESTATE: &str = "tracestate";
/// Names and values that accompany a request through all systems (W3C Baggage).
pub const BAGGAGE: &str = "baggage";

/// The keys that Pegboard writes.
pub mod pegboard {
    /// The kind of a failed call.
    pub const KIND: &str = "pegboard/kind";
    /// Whether a failed call may have taken effect.
    pub const MAY_HAVE_EXECUTED: &str = "pegboard/may_have_executed";
    /// The failure of a call in full, for Pegboard's own commands.
    pub const FAILURE: &str = "pegboard/failure";
    /// In a request of one of Pegboard's own commands: that it wants the times of the call. In the result: those times.
    pub const TIMES: &str = "pegboard/times";
    /// The page on which a user signs in to a server.
    pub const SIGN_IN_URL: &str = "pegboard/sign_in_url";

    /// All of these keys.
    pub const ALL: &[&str] = &[KIND, MAY_HAVE_EXECUTED, FAILURE, TIMES, SIGN_IN_URL];
}

/// The keys that MCP defines for itself.
pub const ALL: &[&str] = &[
    PROTOCOL_VERSION,
    CLIENT_INFO,
    CLIENT_CAPABILITIES,
    LOG_LEVEL,
    SERVER_INFO,
    SUBSCRIPTION_ID,
    RELATED_TASK,
    PROGRESS_TOKEN,
    TRACEPARENT,
    TRACESTATE,
    BAGGAGE,
];

/// Returns `true` if the protocol itself sets this key, so that callers cannot.
pub fn is_reserved(key: &str) -> bool {
    key == PROGRESS_TOKEN || key.starts_with(PREFIX)
}
