//! Deadlines that are passed down through all steps of a call.

use std::time::Duration;

use tokio::time::Instant;

/// A point in time by which an operation must complete. It is passed down, and each step bounds its waits by the remaining time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline `limit` from now, at most one year.
    pub fn within(limit: Duration) -> Self {
        Self::after(Instant::now(), limit)
    }

    /// A deadline `limit` after `start`, at most one year, for callers that have already read the clock.
    #[doc(hidden)]
    pub fn after(start: Instant, limit: Duration) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        Self(start + limit.min(YEAR))
    }

    /// The remaining time; zero once it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// The point in time itself.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// The earlier of this and `limit` from now.
    pub fn at_most(self, limit: Duration) -> Self {
        self.min(Self::within(limit))
    }

    /// Runs `work` until the deadline.
    pub async fn run<F: Future>(self, work: F) -> Result<F::Output, Passed> {
        tokio::time::timeout_at(self.0, work).await.map_err(|_| Passed)
    }
}

/// The deadline passed before the work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline passed")]
pub struct Passed;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_ends_at_the_deadline() {
        let deadline = Deadline::within(Duration::from_secs(5));
        assert_eq!(deadline.run(std::future::pending::<()>()).await, Err(Passed));
        assert!(deadline.has_passed());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_limit_stands() {
        let whole = Deadline::within(Duration::from_secs(60));
        assert_eq!(
            whole.at_most(Duration::from_secs(5)).remaining(),
            Duration::from_secs(5)
        );
        assert_eq!(whole.at_most(Duration::MAX).remaining(), Duration::from_secs(60));
    }
}
