//! Counters and histograms of a board: atomics that calls and supervisors write, and the snapshot that [`Pegboard::metrics`] returns.
//!
//! Counters only grow. They belong to the board and are kept by server name, so they survive a server that is removed, restarted, or started
//! anew for each view.
//!
//! [`Pegboard::metrics`]: crate::Pegboard::metrics

mod board_counters;
mod counters;
mod histogram;
mod labels;
mod load;
mod prometheus;
mod snapshot;

pub(crate) use board_counters::BoardCounters;
pub(crate) use counters::{ServerCounters, SumCounters, ViewCounters};
pub use histogram::{Bucket, Histogram};
pub use labels::MetricLabels;
pub use load::{BoardLoad, BreakerCounts, ServerLoad};
// For the daemon, which adds metrics of its own to those of its board.
#[doc(hidden)]
pub use prometheus::{
    BOARD_FAMILIES, Family, FamilyType, MetricsPage, MetricsSink, PageBucket, PageFormat, PageHistogram, number,
    write_metrics, write_status,
};
pub use snapshot::{AuditMetrics, CallMetrics, CallSums, Metrics, ServerMetrics, ViewMetrics};
