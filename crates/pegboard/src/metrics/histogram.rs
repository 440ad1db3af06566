//! Histograms of durations, with buckets whose bounds double.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::Serialize;

use pegboard_tools::outcome::millis;

/// The bound of the first bucket is this power of two, in microseconds: 64 µs.
const FIRST_BOUND: u32 = 6;
/// How many buckets have a bound. The last bound is 537 s; one more bucket has none.
const BOUNDED: usize = 24;

/// A histogram of durations. The bounds of its buckets double from 0.064 ms to 537 s.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Histogram {
    /// How many durations were counted.
    pub count: u64,
    /// Their sum.
    pub sum_ms: f64,
    /// How many durations were at most as long as each bound. The counts are cumulative, as in Prometheus.
    pub buckets: Vec<Bucket>,
}

/// One bucket of a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// The longest duration that counts here; `None` in the last bucket, which has no bound.
    pub le_ms: Option<f64>,
    /// How many durations were at most so long.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        AtomicHistogram::default().read()
    }
}

impl Histogram {
    /// The mean, or `None` before anything was counted.
    pub fn mean_ms(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a mean need not be exact to the last digit")]
        (self.count > 0).then(|| self.sum_ms / self.count as f64)
    }

    /// An upper bound of the quantile `q`, such as 0.95. `None` before anything was counted, and if the quantile is in the bucket without a
    /// bound.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is not negative and need not be exact"
        )]
        let wanted = (self.count as f64 * q.clamp(0.0, 1.0)).ceil() as u64;
        let reached = self.buckets.iter().find(|bucket| bucket.count >= wanted.max(1));
        reached.and_then(|bucket| bucket.le_ms)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ms += other.sum_ms;
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            ours.count += theirs.count;
        }
    }
}

/// A histogram that is recorded concurrently.
#[derive(Debug, Default)]
pub(crate) struct AtomicHistogram {
    buckets: [AtomicU64; BOUNDED + 1],
    micros: AtomicU64,
}

impl AtomicHistogram {
    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Histogram {
        let mut count = 0;
        let buckets = self.buckets.iter().enumerate().map(|(at, bucket)| {
            count += bucket.load(Ordering::Relaxed);
            let bound = || millis(Duration::from_micros(1 << (FIRST_BOUND as usize + at)));
            Bucket {
                le_ms: (at < BOUNDED).then(bound),
                count,
            }
        });
        Histogram {
            buckets: buckets.collect(),
            count,
            sum_ms: millis(Duration::from_micros(self.micros.load(Ordering::Relaxed))),
        }
    }
}

/// The index of the first bucket whose bound is at least `micros`.
fn bucket_of(micros: u64) -> usize {
    let over = micros.saturating_sub(1) >> FIRST_BOUND;
    let at = u64::BITS - over.leading_zeros();
    (at as usize).min(BOUNDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_whose_bound_it_keeps_to() {
        for (micros, at) in [
            (0, 0),
            (64, 0),
            (65, 1),
            (128, 1),
            (129, 2),
            (536_870_912, 23),
            (536_870_913, 24),
        ] {
            assert_eq!(bucket_of(micros), at, "{micros} µs");
        }
        assert_eq!(bucket_of(u64::MAX), BOUNDED);
    }

    #[test]
    fn a_histogram_is_cumulative_and_tells_means_and_quantiles() {
        let timings = AtomicHistogram::default();
        assert_eq!(
            (timings.read().mean_ms(), timings.read().quantile_ms(0.5)),
            (None, None)
        );
        for millis in [1, 1, 1, 97] {
            timings.record(Duration::from_millis(millis));
        }
        let read = timings.read();
        assert_eq!((read.count, read.sum_ms, read.mean_ms()), (4, 100.0, Some(25.0)));
        assert_eq!(read.quantile_ms(0.75), Some(1.024));
        assert_eq!(read.quantile_ms(1.0), Some(131.072));
        assert_eq!(
            read.buckets.last().map(|bucket| (bucket.le_ms, bucket.count)),
            Some((None, 4))
        );
        timings.record(Duration::from_secs(3600));
        assert_eq!(timings.read().quantile_ms(1.0), None);
    }
}
