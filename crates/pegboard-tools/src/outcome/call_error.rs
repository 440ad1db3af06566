//! [`CallError`]: a reply that is no answer, as an error.

use std::{error::Error, fmt, time::Duration};

use super::{Failure, Kind, Outcome, Reply};

/// Why a call has no usable answer. It is small, can be matched, and keeps the whole reply.
///
/// ```
/// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
/// use pegboard::{Kind, Reply, ToolCall, outcome::CallError};
///
/// fn stars(reply: Reply) -> Result<u64, CallError> {
///     reply.json()
/// }
///
/// let call = ToolCall::new("github.stars");
/// assert_eq!(stars(Reply::done(&call, "7")).unwrap(), 7);
/// match stars(Reply::refused(&call, Kind::NotPermitted, "`github` is read by admins only")) {
///     Err(CallError::Refused(reply)) => assert_eq!(reply.outcome.kind(), Kind::NotPermitted),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// The tool, or its server, answered with an error.
    ToolFailed(Box<Reply>),
    /// The call was not executed.
    Refused(Box<Reply>),
    /// The call was sent and no usable answer came back.
    Lost(Box<Reply>),
    /// The tool answered, and the answer is not what the program asked for.
    Unreadable(Box<UnreadableAnswer>),
}

/// An answer that cannot be read as the type that the program asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UnreadableAnswer {
    /// The reply with the answer.
    pub reply: Reply,
    /// What does not fit.
    pub problem: String,
}

impl CallError {
    /// The reply that it was made of.
    pub fn reply(&self) -> &Reply {
        match self {
            Self::ToolFailed(reply) | Self::Refused(reply) | Self::Lost(reply) => reply,
            Self::Unreadable(unreadable) => &unreadable.reply,
        }
    }

    /// The reply that it was made of.
    pub fn into_reply(self) -> Reply {
        match self {
            Self::ToolFailed(reply) | Self::Refused(reply) | Self::Lost(reply) => *reply,
            Self::Unreadable(unreadable) => unreadable.reply,
        }
    }

    /// The kind of outcome. An answer that cannot be read is of the kind [`Kind::Ok`]: its tool has succeeded.
    pub fn kind(&self) -> Kind {
        self.reply().outcome.kind()
    }

    /// Why the call was refused or lost.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.reply().outcome {
            Outcome::Refused(failure) | Outcome::Lost(failure) => Some(failure),
            Outcome::Done(_) | Outcome::ToolFailed(_) => None,
        }
    }

    /// Whether the tool may have run. `false` is certain, `true` is not.
    pub fn may_have_executed(&self) -> bool {
        self.reply().outcome.may_have_executed()
    }

    /// How long to wait before the next call, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.reply().outcome.retry_after()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.reply().name;
        match self {
            Self::ToolFailed(reply) => write!(f, "`{name}` has failed: {}", reply.text()),
            // The message names the tool or its server where that helps.
            Self::Refused(_) | Self::Lost(_) => match self.failure() {
                Some(failure) => write!(f, "{failure}"),
                None => f.write_str(name),
            },
            Self::Unreadable(unreadable) => {
                write!(f, "the answer of `{name}` cannot be read: {}", unreadable.problem)
            }
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The failure has the same message as this error.
        self.failure().and_then(Error::source)
    }
}
