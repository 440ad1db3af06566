//! Counters and histograms of a board: atomics that calls and supervisors write, and the snapshot that [`Pegboard::metrics`] returns.
//!
//! Counters only grow. They belong to the board and are kept by server name, so they survive a server that is removed, restarted, or started
//! anew for each view.
//!
//! [`Pegboard::metrics`]: crate::Pegboard::metrics

mod board_counters;
mod counters;
mod histogram;
mod prometheus;
mod snapshot;

pub(crate) use board_counters::BoardCounters;
pub(crate) use counters::ServerCounters;
pub use histogram::{Bucket, Histogram};
// For the daemon, which adds metrics of its own to those of its board.
#[doc(hidden)]
pub use prometheus::{BOARD_FAMILIES, Family, FamilyType, MetricsPage, number, write_metrics, write_status};
pub use snapshot::{CallMetrics, Metrics, ServerMetrics};
