//! [`History`]: what the board counted in the last hour, a sample every ten seconds, in memory.

use std::{collections::VecDeque, time::Duration};

use pegboard::{
    Timestamp,
    metrics::{Histogram, Metrics},
};
use pegboard_base::sync::Mutex;

/// How often the counters are read.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);
/// How many samples are kept: an hour.
pub(crate) const SAMPLES: usize = 360;

/// The counters at one moment.
#[derive(Clone, Debug)]
struct Sample {
    at: Timestamp,
    calls: u64,
    failed: u64,
    /// The cumulative counts of the latency buckets.
    buckets: Vec<u64>,
}

/// What happened between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
}

impl Interval {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people is not exact")]
    pub(crate) fn calls_per_second(&self) -> f64 {
        if self.seconds > 0.0 {
            self.calls as f64 / self.seconds
        } else {
            0.0
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for people is not exact")]
    pub(crate) fn failed_share(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.failed as f64 / self.calls as f64)
    }
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: Mutex<VecDeque<Sample>>,
    /// The upper bounds of the latency buckets, in milliseconds.
    bounds: std::sync::OnceLock<Vec<Option<f64>>>,
}

impl History {
    /// Adds what the board counts now.
    pub(crate) fn add(&self, metrics: &Metrics) {
        let latency = &metrics.total.calls.latency;
        self.bounds
            .get_or_init(|| latency.buckets.iter().map(|bucket| bucket.le_ms).collect());
        let sample = sample(metrics);
        let mut samples = self.samples.lock();
        if samples.len() > SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// What happened in each interval, the newest last.
    pub(crate) fn intervals(&self) -> Vec<Interval> {
        let samples = self.samples.lock();
        let bounds = self.bounds.get().map_or(&[][..], Vec::as_slice);
        let pairs = samples.iter().zip(samples.iter().skip(1));
        pairs.map(|(before, after)| between(before, after, bounds)).collect()
    }

    /// What happened since the last sample that is at least this old, or since the first one.
    pub(crate) fn since(&self, age: Duration, metrics: &Metrics) -> Option<Interval> {
        let now = sample(metrics);
        let samples = self.samples.lock();
        let is_old = |sample: &&Sample| {
            now.at
                .checked_duration_since(sample.at)
                .is_some_and(|passed| passed >= age)
        };
        let before = samples.iter().rev().find(is_old).or_else(|| samples.front())?;
        let bounds = self.bounds.get().map_or(&[][..], Vec::as_slice);
        Some(between(before, &now, bounds))
    }
}

fn sample(metrics: &Metrics) -> Sample {
    let calls = &metrics.total.calls;
    Sample {
        at: Timestamp::now(),
        calls: calls.total,
        failed: calls.failed,
        buckets: calls.latency.buckets.iter().map(|bucket| bucket.count).collect(),
    }
}

fn between(before: &Sample, after: &Sample, bounds: &[Option<f64>]) -> Interval {
    let counts: Vec<u64> = after
        .buckets
        .iter()
        .zip(&before.buckets)
        .map(|(after, before)| after.saturating_sub(*before))
        .collect();
    Interval {
        calls: after.calls.saturating_sub(before.calls),
        failed: after.failed.saturating_sub(before.failed),
        seconds: after
            .at
            .checked_duration_since(before.at)
            .unwrap_or_default()
            .as_secs_f64(),
        p50_ms: quantile(&counts, bounds, 0.5),
        p99_ms: quantile(&counts, bounds, 0.99),
    }
}

/// The quantile of a histogram since the start.
pub(crate) fn quantile_of(histogram: &Histogram, q: f64) -> Option<f64> {
    let counts: Vec<u64> = histogram.buckets.iter().map(|bucket| bucket.count).collect();
    let bounds: Vec<Option<f64>> = histogram.buckets.iter().map(|bucket| bucket.le_ms).collect();
    quantile(&counts, &bounds, q)
}

/// A quantile of cumulative counts, as if the durations of a bucket were spread evenly over it. The bounds double, so it is right within a factor
/// of two at worst.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn quantile(counts: &[u64], bounds: &[Option<f64>], q: f64) -> Option<f64> {
    let total = *counts.last()?;
    if total == 0 {
        return None;
    }
    let wanted = total as f64 * q;
    let at = counts.iter().position(|count| *count as f64 >= wanted)?;
    let below = at.checked_sub(1);
    let (low, under) = below.map_or((0.0, 0), |below| (bounds[below].unwrap_or_default(), counts[below]));
    let high = bounds.get(at).copied().flatten().unwrap_or(low * 2.0);
    let inside = (counts[at] - under) as f64;
    let share = if inside > 0.0 {
        (wanted - under as f64) / inside
    } else {
        1.0
    };
    Some(low + (high - low) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_found_in_its_bucket() {
        let bounds = [Some(1.0), Some(2.0), Some(4.0), None];
        assert_eq!(quantile(&[0, 0, 0, 0], &bounds, 0.5), None);
        assert_eq!(quantile(&[10, 10, 10, 10], &bounds, 0.5), Some(0.5));
        assert_eq!(quantile(&[5, 10, 10, 10], &bounds, 0.5), Some(1.0));
        assert_eq!(quantile(&[0, 0, 100, 100], &bounds, 0.99), Some(3.98));
        assert_eq!(quantile(&[0, 0, 0, 4], &bounds, 0.5), Some(6.0));
    }

    #[test]
    fn an_interval_without_calls_has_a_rate_and_no_share() {
        let interval = Interval {
            seconds: 10.0,
            ..Interval::default()
        };
        assert_eq!((interval.calls_per_second(), interval.failed_share()), (0.0, None));
    }
}
