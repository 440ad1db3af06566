//! Why a call was refused or lost, and the kinds of outcome.

use std::{borrow::Cow, error::Error, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    advice::{self, Advice},
    cause::Cause,
    stored_millis,
};
use pegboard_base::{
    diagnosis::{self, Diagnosis},
    label::label,
};

/// Why a call was refused or lost.
///
/// It is an [`Error`] whose message is written for people; [`text`](Failure::text) is the text for models. Its [`source`](Error::source) is
/// the error below it in its own words.
///
/// ```
/// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
/// use std::{error::Error, time::Duration};
/// use pegboard::{Failure, Kind};
///
/// /// How long an agent's loop waits before it makes the call again.
/// fn wait(failure: &Failure) -> Option<Duration> {
///     match failure.kind {
///         Kind::LimitExceeded | Kind::Unavailable | Kind::Transport => failure.retry_after,
///         _ => None,
///     }
/// }
///
/// let failure = Failure::new(Kind::Unavailable, "the index is being rebuilt")
///     .retry_after(Duration::from_secs(5))
///     .caused_by(&std::io::Error::other("index locked"));
/// assert_eq!(wait(&failure), Some(Duration::from_secs(5)));
/// assert_eq!(failure.source().unwrap().to_string(), "index locked");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure.
    pub kind: Kind,
    /// What failed, and why.
    pub message: String,
    /// What an operator can do about it.
    #[serde(default)]
    pub hint: Option<String>,
    /// What a model is told beside the message, such as the names that there are. A person looks them up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub for_models: Option<Box<str>>,
    /// What a model should do next.
    #[serde(
        default,
        deserialize_with = "advice::deserialize_known",
        skip_serializing_if = "Option::is_none"
    )]
    pub advice: Option<Advice>,
    /// Whether the tool may have run nevertheless.
    #[serde(default)]
    pub may_have_executed: bool,
    /// The code of the JSON-RPC error that the server sent. A tool call that is answered with an error has it in
    /// [`Answer::error_code`](crate::outcome::Answer::error_code).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// How long to wait before the next call, if that is known: from the server's `Retry-After`, from its circuit breaker, from the schedule of
    /// its restarts, from a limit on calls, or from the recent pace of a full queue.
    #[serde(
        default,
        rename = "retry_after_ms",
        with = "stored_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub retry_after: Option<Duration>,
    /// The error below it.
    #[serde(default, rename = "causes", skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub cause: Option<Box<Cause>>,
    /// What is wrong with the server, as data. Decide by its code, not by the texts.
    #[serde(
        default,
        deserialize_with = "diagnosis::known",
        skip_serializing_if = "Option::is_none"
    )]
    pub diagnosis: Option<Box<Diagnosis>>,
}

impl Failure {
    /// Creates a failure after which the tool has certainly not run.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            for_models: None,
            advice: None,
            may_have_executed: false,
            code: None,
            retry_after: None,
            cause: None,
            diagnosis: None,
        }
    }

    /// The text for a model: the message, and what the model should do next.
    pub fn text(&self) -> String {
        match self.advice {
            Some(advice) => self.text_with(advice),
            None => self.message_for_models().into_owned(),
        }
    }

    /// The text for a model, with this advice in place of its own.
    pub fn text_with(&self, advice: Advice) -> String {
        advice.append_to(&self.message_for_models(), self.retry_after)
    }

    fn message_for_models(&self) -> Cow<'_, str> {
        match &self.for_models {
            Some(more) => format!("{}. {more}", self.message).into(),
            None => self.message.as_str().into(),
        }
    }

    /// Sets what a model should do next.
    #[must_use]
    pub fn advice(mut self, advice: Advice) -> Self {
        self.advice = Some(advice);
        self
    }

    /// Sets what is wrong with the server.
    #[must_use]
    pub fn diagnosed(mut self, diagnosis: Diagnosis) -> Self {
        self.diagnosis = Some(Box::new(diagnosis));
        self
    }

    /// Sets what a model is told beside the message.
    #[must_use]
    #[doc(hidden)]
    pub fn for_models(mut self, more: impl Into<Box<str>>) -> Self {
        self.for_models = Some(more.into());
        self
    }

    /// Sets the code of the JSON-RPC error that the server sent.
    #[must_use]
    pub fn code(mut self, code: i64) -> Self {
        self.code = Some(code);
        self
    }

    /// Sets how long to wait before the next call.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Sets the error below it. The texts of the error and of its sources are kept, at most eight of 4 KiB each.
    #[must_use]
    pub fn caused_by(mut self, error: &(dyn Error + 'static)) -> Self {
        self.cause = Some(Box::new(Cause::new(error)));
        self
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

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// The kinds of outcome that programs can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
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
    #[doc(hidden)]
    pub const ALL: [Self; 14] = [
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

label!(Kind, "kind of outcome");
