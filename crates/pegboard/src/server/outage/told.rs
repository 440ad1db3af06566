//! [`Told`]: what the supervisor of a server said about an outage, if it is another process.

use std::time::Duration;

use tokio::time::Instant;

use super::next_start::A_MOMENT;
use pegboard_tools::outcome::{Failure, Kind};

/// The failure with which another supervisor refused a session, and when it arrived.
#[derive(Debug, Clone)]
pub(super) struct Told {
    failure: Failure,
    at: Instant,
}

impl Told {
    pub(super) fn new(failure: &Failure) -> Self {
        Self {
            failure: failure.clone(),
            at: Instant::now(),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        self.failure.kind
    }

    /// The failure of a call that is made now.
    pub(super) fn failure(&self) -> Failure {
        Failure {
            retry_after: self.retry_after(),
            ..self.failure.clone()
        }
    }

    /// How long it still takes until the next start that the other supervisor announced. A moment once that time has passed.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let wait = self.failure.retry_after?;
        Some(
            wait.checked_sub(self.at.elapsed())
                .filter(|left| !left.is_zero())
                .unwrap_or(A_MOMENT),
        )
    }
}
