//! Builds replies to calls outside of a board, for executors of the program's own and for tests.

use std::time::Duration;

use super::ToolCall;
use crate::outcome::{Answer, Failure, Kind, Outcome, Reply};

impl Reply {
    /// Creates the reply to a call that succeeded.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
    /// use pegboard::{Reply, ToolCall};
    ///
    /// let reply = Reply::done(&ToolCall::new("time.now").id("c1"), "noon");
    /// assert_eq!((reply.id.as_str(), reply.text().as_str()), ("c1", "noon"));
    /// ```
    pub fn done(call: &ToolCall, answer: impl Into<Answer>) -> Self {
        Self::from_outcome(call, Outcome::Done(answer.into()))
    }

    /// Creates the reply to a call whose tool answered with an error.
    pub fn failed(call: &ToolCall, answer: impl Into<Answer>) -> Self {
        Self::from_outcome(call, Outcome::ToolFailed(answer.into()))
    }

    /// Creates the reply to a call that was not executed.
    pub fn refused(call: &ToolCall, kind: Kind, message: impl Into<String>) -> Self {
        Self::to(call, Outcome::Refused(Failure::new(kind, message)))
    }

    /// Creates the reply to a call that was sent and got no usable answer. The tool may have run.
    pub fn lost(call: &ToolCall, kind: Kind, message: impl Into<String>) -> Self {
        Self {
            attempts: 1,
            ..Self::to(call, Outcome::Lost(Failure::new(kind, message).after_sending()))
        }
    }

    /// Creates the reply to a call with this outcome. Its other fields can be set afterwards.
    pub fn to(call: &ToolCall, outcome: Outcome) -> Self {
        call.unanswered(outcome, Duration::ZERO)
    }

    fn from_outcome(call: &ToolCall, outcome: Outcome) -> Self {
        let original_bytes = outcome.text().len();
        Self {
            attempts: 1,
            original_bytes,
            ..Self::to(call, outcome)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_say_whether_the_tool_may_have_run() {
        let call = ToolCall::new("fx.t");
        for (reply, kind, may_have_executed) in [
            (Reply::done(&call, "ok"), Kind::Ok, true),
            (Reply::failed(&call, "no"), Kind::ToolError, true),
            (
                Reply::refused(&call, Kind::NotPermitted, "no"),
                Kind::NotPermitted,
                false,
            ),
            (Reply::lost(&call, Kind::Timeout, "late"), Kind::Timeout, true),
        ] {
            assert_eq!(reply.outcome.kind(), kind);
            assert_eq!(reply.outcome.may_have_executed(), may_have_executed, "{kind:?}");
            assert_eq!((reply.name.as_str(), &reply.id), ("fx.t", &call.id));
        }
    }
}
