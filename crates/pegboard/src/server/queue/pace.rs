//! Estimates how long a call would wait, from the recent pace of a queue.

use std::time::Duration;

use tokio::time::Instant;

/// The least and the most that an estimate says. A client that waits longer than a minute learns nothing new by waiting.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);
/// The weight of the past in the moving average, against one for the latest interval.
const PAST: u32 = 7;

/// How often a permit passes to a waiting call. The average interval is the average duration of a call divided by the number of calls in flight.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When a permit passed on last, or when calls began to wait.
    last: Option<Instant>,
    average: Option<Duration>,
}

impl Pace {
    /// Calls begin to wait.
    pub(super) fn begin(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// A permit passes to a waiting call.
    pub(super) fn pass(&mut self, now: Instant) {
        let interval = self.since_last(now);
        self.average = Some(match self.average {
            None => interval,
            Some(average) => (average * PAST + interval) / (PAST + 1),
        });
        self.last = Some(now);
    }

    /// How long it takes until `calls` calls have got their permits.
    pub(super) fn estimate(&self, calls: usize, now: Instant) -> Duration {
        // While no call ends, the interval is at least the time that has passed.
        let interval = self.average.unwrap_or_default().max(self.since_last(now));
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        interval.checked_mul(calls).unwrap_or(MOST).clamp(LEAST, MOST)
    }

    fn since_last(&self, now: Instant) -> Duration {
        self.last
            .map_or(Duration::ZERO, |last| now.saturating_duration_since(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_estimate_follows_the_pace_and_grows_while_nothing_moves() {
        let (mut pace, began) = (Pace::default(), Instant::now());
        let at = |millis| began + Duration::from_millis(millis);
        assert_eq!(pace.estimate(100, at(0)), LEAST, "nothing is known yet");
        pace.begin(at(0));
        for passed in 1..=50 {
            pace.pass(at(passed * 100));
        }
        assert_eq!(pace.estimate(100, at(5000)), Duration::from_secs(10));
        assert_eq!(pace.estimate(3, at(5000)), LEAST);
        assert_eq!(pace.estimate(100, at(5400)), Duration::from_secs(40), "no call ends");
        assert_eq!(pace.estimate(usize::MAX, at(60_000)), MOST);
    }
}
