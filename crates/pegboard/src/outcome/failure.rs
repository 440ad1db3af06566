//! Why a call was refused or lost, and the kinds of outcome.

use serde::Serialize;

/// Why a call was refused or lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of failure.
    pub kind: Kind,
    /// What failed, and why.
    pub message: String,
    /// What an operator can do about it.
    pub hint: Option<String>,
    /// Whether the tool may have run nevertheless.
    pub may_have_executed: bool,
}

impl Failure {
    /// Creates a failure after which the tool has certainly not run.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            may_have_executed: false,
        }
    }

    /// Sets what an operator can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks that the tool may have run nevertheless.
    #[must_use]
    pub fn after_sending(mut self) -> Self {
        self.may_have_executed = true;
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The kinds of outcome that programs can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// The tool succeeded.
    Ok,
    /// The tool or its server answered with an error.
    ToolError,
    /// No such tool.
    UnknownTool,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
    /// A policy forbids the call.
    NotPermitted,
    /// A limit on number or size was reached.
    LimitExceeded,
    /// The server cannot be reached.
    Unavailable,
    /// The server is being restarted.
    RestartInProgress,
    /// The server could not be restarted.
    RestartFailed,
    /// The server requires a sign-in.
    NeedsAuth,
    /// The connection failed during the call.
    Transport,
    /// A timeout expired.
    Timeout,
    /// The caller cancelled the call.
    Cancelled,
    /// A bug in Pegboard, or an answer that violates the protocol.
    Internal,
}

impl Kind {
    /// Every kind, in declaration order.
    pub(crate) const ALL: [Self; 14] = [
        Self::Ok,
        Self::ToolError,
        Self::UnknownTool,
        Self::InvalidArguments,
        Self::NotPermitted,
        Self::LimitExceeded,
        Self::Unavailable,
        Self::RestartInProgress,
        Self::RestartFailed,
        Self::NeedsAuth,
        Self::Transport,
        Self::Timeout,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The name in events, metrics and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::NotPermitted => "not_permitted",
            Self::LimitExceeded => "limit_exceeded",
            Self::Unavailable => "unavailable",
            Self::RestartInProgress => "restart_in_progress",
            Self::RestartFailed => "restart_failed",
            Self::NeedsAuth => "needs_auth",
            Self::Transport => "transport",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}
