//! The last health check of a connection, and a detector for machine sleep, after which a quiet connection may be dead.

use std::time::{Duration, SystemTime};

use pegboard_base::sync::Mutex;
use pegboard_base::timestamp::Timestamp;
use tokio::time::Instant;

/// The last health check of one connection: a probe or a start.
#[derive(Debug, Default)]
pub(super) struct HealthChecks(Mutex<Option<HealthCheck>>);

/// One health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HealthCheck {
    pub(super) at: Timestamp,
    /// Why the check failed; `None` if it succeeded.
    pub(super) error: Option<String>,
}

impl HealthChecks {
    pub(super) fn last(&self) -> Option<HealthCheck> {
        self.0.lock().clone()
    }

    /// Records a check that ended now.
    pub(super) fn record(&self, error: Option<String>) {
        let at = Timestamp::now();
        *self.0.lock() = Some(HealthCheck { at, error });
    }
}

/// How far the wall clock may run ahead of the monotonic clock before that counts as sleep.
const SLEPT: Duration = Duration::from_secs(30);

/// Compares the wall clock with the monotonic clock, which stops while the machine sleeps.
#[derive(Debug)]
pub(super) struct SleepDetector {
    wall: SystemTime,
    timer: Instant,
}

impl SleepDetector {
    pub(super) fn new() -> Self {
        Self::at(SystemTime::now(), Instant::now())
    }

    fn at(wall: SystemTime, timer: Instant) -> Self {
        Self { wall, timer }
    }

    /// Whether the machine has slept since the last call.
    pub(super) fn has_slept(&mut self) -> bool {
        self.update(SystemTime::now(), Instant::now())
    }

    fn update(&mut self, wall: SystemTime, timer: Instant) -> bool {
        let last = std::mem::replace(self, Self::at(wall, timer));
        let passed = wall.duration_since(last.wall).unwrap_or_default();
        passed > timer.saturating_duration_since(last.timer) + SLEPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_the_wall_clock_is_a_sleep_and_is_noticed_once() {
        let (wall, timer) = (SystemTime::UNIX_EPOCH, Instant::now());
        let at = |seconds| wall + Duration::from_secs(seconds);
        let later = |seconds| timer + Duration::from_secs(seconds);
        let mut watch = SleepDetector::at(wall, timer);
        assert!(!watch.update(at(15), later(15)));
        assert!(watch.update(at(1000), later(30)));
        assert!(!watch.update(at(1015), later(45)));
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_sleep() {
        let (wall, timer) = (SystemTime::UNIX_EPOCH + Duration::from_secs(5000), Instant::now());
        let mut watch = SleepDetector::at(wall, timer);
        assert!(!watch.update(wall - Duration::from_secs(3600), timer + Duration::from_secs(15)));
    }
}
