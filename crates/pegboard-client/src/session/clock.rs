//! Milliseconds since a connection was opened: timestamps that fit into an atomic.

use std::time::Duration;

use tokio::time::Instant;

/// Counts the milliseconds since a connection was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    opened: Instant,
}

impl Clock {
    /// Creates a clock that starts at zero now.
    pub(super) fn start() -> Self {
        Self { opened: Instant::now() }
    }

    pub(super) fn now(self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Converts a timestamp of this clock to an instant.
    pub(super) fn instant(self, millis: u64) -> Instant {
        self.opened + Duration::from_millis(millis)
    }
}
