//! When a server is started again: soon at first, then less and less often, and rarely when it ends again and again.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The waits before the first, second, … start after a failure. The last one stays.
const SCHEDULE: &[u64] = &[0, 1, 2, 5, 10, 30, 60];
/// How much a wait may differ from the schedule, so that many boards do not knock at the same moment.
const JITTER: f64 = 0.2;
/// So many ends within the window make a crash loop.
const CRASHES: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// How often a server in a crash loop is tried.
const CRASH_RETRY: Duration = Duration::from_secs(60);

/// A schedule of restarts, and how far it has been used up.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    schedule: Vec<Duration>,
    jitter: f64,
    failures: usize,
    /// Where the jitter comes from. It need not be good, only different from board to board.
    seed: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        let seed = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |time| time.as_nanos());
        Self {
            schedule: SCHEDULE.iter().copied().map(Duration::from_secs).collect(),
            jitter: JITTER,
            failures: 0,
            seed: u64::try_from(seed & u128::from(u64::MAX)).unwrap_or(1) | 1,
        }
    }
}

impl Backoff {
    /// The same schedule to the millisecond, for tests.
    #[must_use]
    pub(crate) fn without_jitter(mut self) -> Self {
        self.jitter = 0.0;
        self
    }

    /// The wait before the next start.
    pub(super) fn next(&mut self) -> Duration {
        let at = self.failures.min(self.schedule.len().saturating_sub(1));
        self.failures = self.failures.saturating_add(1);
        let wait = self.schedule.get(at).copied().unwrap_or_default();
        wait.mul_f64(1.0 + self.jitter * self.swing())
    }

    /// All is well: the next failure counts as the first.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// A number between -1 and 1.
    fn swing(&mut self) -> f64 {
        // Marsaglia's xorshift with the shifts 13, 7 and 17.
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let share = f64::from(u32::try_from(self.seed >> 32).unwrap_or(0)) / f64::from(u32::MAX);
        share.mul_add(2.0, -1.0)
    }
}

/// Remembers when a server ended, to see whether it does nothing else.
#[derive(Debug, Default)]
pub(super) struct CrashLoop(VecDeque<Instant>);

impl CrashLoop {
    /// The server has ended once more. Whether it has done so too often.
    pub(super) fn exited(&mut self) -> bool {
        let now = Instant::now();
        self.0.push_back(now);
        while self.0.len() > CRASHES || self.0.front().is_some_and(|first| now.duration_since(*first) > WINDOW) {
            self.0.pop_front();
        }
        self.0.len() >= CRASHES
    }

    /// The wait before the next start of a server in a crash loop.
    pub(super) fn retry() -> Duration {
        CRASH_RETRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_by_the_schedule_and_start_anew_after_a_reset() {
        let mut backoff = Backoff::default().without_jitter();
        let waits: Vec<u64> = (0..9).map(|_| backoff.next().as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 5, 10, 30, 60, 60, 60]);
        backoff.reset();
        assert_eq!(backoff.next(), Duration::ZERO);
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        let mut backoff = Backoff::default();
        let waits: Vec<f64> = (0..500).map(|_| backoff.next().as_secs_f64()).skip(6).collect();
        assert!(waits.iter().all(|wait| (48.0..=72.0).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait < 55.0) && waits.iter().any(|wait| *wait > 65.0));
    }

    #[tokio::test(start_paused = true)]
    async fn five_ends_within_a_minute_are_a_crash_loop() {
        let mut crashes = CrashLoop::default();
        for _ in 0..4 {
            assert!(!crashes.exited());
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        assert!(crashes.exited());
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(!crashes.exited());
    }
}
