//! The waits between two attempts to send a batch.

use std::time::Duration;

use pegboard_base::telemetry::TraceId;

/// The first wait after a failure, and the longest one.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Waits that double, each changed by up to a quarter so that processes do not come back at once.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(LONGEST);
        let quarter = wait / 4;
        // The low byte of a random id.
        let share = u32::from(TraceId::random().to_bytes()[15]);
        wait - quarter + quarter * 2 * share / 255
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let mut backoff = Backoff::new();
        let waits: Vec<Duration> = (0..9).map(|_| backoff.next()).collect();
        for (wait, seconds) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]) {
            let seconds: f64 = seconds;
            assert!(
                (seconds * 0.74..seconds * 1.26).contains(&wait.as_secs_f64()),
                "{waits:?}"
            );
        }
    }
}
