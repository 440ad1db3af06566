//! [`Signal`]: one of the three kinds of telemetry, and how much of it was sent.

use std::fmt;

use pegboard_base::sync::atomic::{AtomicU64, Ordering};

/// A kind of telemetry. Each has a path of its own at a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Snapshots of counters and histograms.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    /// Its word in paths and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many spans, log records or points of metrics were sent, and how many were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The collector has taken them.
    pub exported: u64,
    /// There was no room for them, or the collector has refused them.
    pub dropped: u64,
}

/// [`Counts`] that several tasks write.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Tally {
    pub(crate) fn add_exported(&self, count: u64) {
        self.exported.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            exported: self.exported.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}
