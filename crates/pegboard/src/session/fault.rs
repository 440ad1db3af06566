//! What further rounds, tasks and readers ask of a failed request.

use tokio::time::Instant;

use super::{Fault, FaultKind};
use crate::transport::{EndReason, FailureKind, Sent};

impl Fault {
    /// The time for something that began at `started` was up, and a request for it had been sent.
    pub(super) fn late(started: Instant) -> Self {
        Self {
            kind: FaultKind::TimedOut {
                late_after: started.elapsed(),
                idle: false,
                last_words: None,
            },
            sent: Sent::Maybe,
        }
    }

    /// Whether the session is of no use any more, so that what only reads is asked again in a new one.
    pub(crate) fn loses_session(&self) -> bool {
        match &self.kind {
            FaultKind::Ended(end) => end.reason != EndReason::Closed,
            FaultKind::Wire(failure) => failure.kind == FailureKind::SessionGone,
            FaultKind::TimedOut { .. }
            | FaultKind::Dial(_)
            | FaultKind::Error(_)
            | FaultKind::Unreadable(_)
            | FaultKind::NoVersion(_) => false,
        }
    }

    /// Whether it is an answer of the server, although not a result.
    pub(crate) fn is_answer(&self) -> bool {
        match &self.kind {
            FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_) => true,
            FaultKind::Wire(failure) => matches!(failure.kind, FailureKind::Rpc(_)),
            FaultKind::Ended(_) | FaultKind::Dial(_) | FaultKind::TimedOut { .. } => false,
        }
    }

    /// Whether the server is there and wants fewer requests.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(&self.kind, FaultKind::Wire(failure) if matches!(failure.kind, FailureKind::Status { code: 429, .. }))
    }

    /// Whether only this one request failed, so that others may be answered.
    pub(super) fn leaves_session(&self) -> bool {
        match &self.kind {
            FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_) | FaultKind::TimedOut { .. } => {
                true
            }
            FaultKind::Wire(failure) => matches!(
                failure.kind,
                FailureKind::Rpc(_)
                    | FailureKind::Status { .. }
                    | FailureKind::TooLarge
                    | FailureKind::NoRoom
                    | FailureKind::Protocol
            ),
            FaultKind::Ended(_) | FaultKind::Dial(_) => false,
        }
    }
}
