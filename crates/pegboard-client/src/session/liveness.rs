//! [`Liveness`]: when a server was last heard of, and whether it may be gone.

use std::time::Duration;

use super::clock::Clock;
use pegboard_base::sync::atomic::{AtomicU64, Ordering};

/// The last sign of life of one connection, and the last request that failed on its way.
#[derive(Debug)]
pub(super) struct Liveness {
    pub(super) clock: Clock,
    /// When the last message arrived, by the connection's clock.
    last_message: AtomicU64,
    /// The time after which a request last failed on its way; zero if none has.
    last_failure: AtomicU64,
}

impl Liveness {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            last_message: AtomicU64::new(0),
            last_failure: AtomicU64::new(0),
        }
    }

    /// Notes a message of the server.
    pub(super) fn note_message(&self) {
        self.last_message.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Notes that a request failed on its way to the server or back.
    pub(super) fn note_failure(&self) {
        self.last_failure.store(self.clock.now() + 1, Ordering::Relaxed);
    }

    /// Returns the time since the last message of the server.
    pub(super) fn idle_for(&self) -> Duration {
        let last_message = self.last_message.load(Ordering::Relaxed);
        Duration::from_millis(self.clock.now().saturating_sub(last_message))
    }

    /// Whether a request has failed on its way since the last message of the server.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.last_failure.load(Ordering::Relaxed) > self.last_message.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_casts_doubt_until_the_next_message() {
        let liveness = Liveness::new(Clock::start());
        assert!(!liveness.is_in_doubt());
        liveness.note_failure();
        assert!(
            liveness.is_in_doubt(),
            "even in the same millisecond as the last message"
        );
        tokio::time::advance(Duration::from_millis(20)).await;
        assert_eq!(liveness.idle_for(), Duration::from_millis(20));
        liveness.note_message();
        assert!(!liveness.is_in_doubt());
        assert_eq!(liveness.idle_for(), Duration::ZERO);
    }
}
