//! The exit codes that scripts rely on.

use std::process::ExitCode;

use pegboard::{Kind, Outcome};

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Success.
    Done = 0,
    /// The tool reported an error, or a check found a problem.
    ToolError = 1,
    /// Wrong usage or config, unknown tool or invalid arguments.
    Usage = 2,
    /// A server is unavailable, or the call was lost.
    Unavailable = 3,
    /// A server requires a sign-in.
    SignIn = 4,
    /// Refused by a policy, a limit or a person, or a project file that is not approved.
    Refused = 5,
    /// A time limit passed.
    Timeout = 124,
    /// Ctrl-C or SIGTERM.
    Interrupted = 130,
}

#[cfg(test)]
impl Exit {
    /// All of them, by code.
    pub(crate) const ALL: [Self; 8] = [
        Self::Done,
        Self::ToolError,
        Self::Usage,
        Self::Unavailable,
        Self::SignIn,
        Self::Refused,
        Self::Timeout,
        Self::Interrupted,
    ];

    /// What the documentation says about the code.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ToolError => "the tool reported an error, or a check found a problem",
            Self::Usage => "usage, config, unknown server or tool, invalid arguments",
            Self::Unavailable => "a server is unavailable, or the call was lost",
            Self::SignIn => "a server requires a sign-in",
            Self::Refused => "refused by a policy, a limit or a person, or a project file that is not approved",
            Self::Timeout => "a time limit passed",
            Self::Interrupted => "interrupted by Ctrl-C or SIGTERM",
        }
    }
}

impl Exit {
    /// The code for a call with this outcome. A call that may have run is not `Refused`, even if a limit discarded its result.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        match (outcome, outcome.kind()) {
            (Outcome::Lost(_), Kind::LimitExceeded) => Self::Unavailable,
            // With a code it was not the user who cancelled the call, but the server, or Pegboard itself.
            (Outcome::Lost(failure) | Outcome::Refused(failure), Kind::Cancelled) if failure.code.is_some() => {
                Self::Unavailable
            }
            (_, kind) => Self::from_kind(kind),
        }
    }

    /// The code for a request with this kind of outcome.
    pub(crate) fn from_kind(kind: Kind) -> Self {
        match kind {
            Kind::Ok => Self::Done,
            Kind::ToolError => Self::ToolError,
            Kind::UnknownTool | Kind::InvalidArguments => Self::Usage,
            Kind::NotPermitted | Kind::LimitExceeded => Self::Refused,
            Kind::NeedsAuth => Self::SignIn,
            Kind::Timeout => Self::Timeout,
            Kind::Cancelled => Self::Interrupted,
            // Unavailable, restarts, transport, internal, and kinds that a later version adds.
            _ => Self::Unavailable,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard::Failure;

    #[test]
    fn every_kind_of_ending_has_the_promised_code() {
        for (kind, code) in [
            (Kind::Ok, 0),
            (Kind::ToolError, 1),
            (Kind::UnknownTool, 2),
            (Kind::InvalidArguments, 2),
            (Kind::Unavailable, 3),
            (Kind::RestartInProgress, 3),
            (Kind::RestartFailed, 3),
            (Kind::Transport, 3),
            (Kind::Internal, 3),
            (Kind::NeedsAuth, 4),
            (Kind::NotPermitted, 5),
            (Kind::LimitExceeded, 5),
            (Kind::Timeout, 124),
            (Kind::Cancelled, 130),
        ] {
            assert_eq!(Exit::from_kind(kind) as u8, code, "{kind:?}");
        }
    }

    #[test]
    fn a_call_whose_answer_was_too_large_is_lost_and_not_refused() {
        let limited = || Failure::new(Kind::LimitExceeded, "too large");
        assert_eq!(Exit::from_outcome(&Outcome::Lost(limited())), Exit::Unavailable);
        assert_eq!(Exit::from_outcome(&Outcome::Refused(limited())), Exit::Refused);
    }
}
