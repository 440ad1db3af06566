//! Snapshots of a board's counters: plain values to print or serialise.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{histogram::Histogram, load::BoardLoad};
use pegboard_base::name::ServerName;
use pegboard_tools::outcome::Kind;

/// A snapshot of all counters of a board. See [`Pegboard::metrics`](crate::Pegboard::metrics).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Metrics {
    /// The counters of each server, by name. A server that each view starts for itself has one entry for all views. A removed
    /// server keeps its entry; the latest 1,024 of them are kept.
    pub servers: BTreeMap<ServerName, ServerMetrics>,
    /// The sum over all servers, including those that no longer have an entry.
    pub total: ServerMetrics,
    /// Calls that ended before their tool was found: unknown and ambiguous names, closed views, selections that do not fit the board.
    pub unrouted: CallMetrics,
    /// Calls of the tools that a view answers itself, such as `read_output` and `find_tools`.
    pub own_tools: CallMetrics,
    /// The calls of each principal. See [`Builder::metric_labels`](crate::Builder::metric_labels).
    pub principals: BTreeMap<String, CallSums>,
    /// The calls of the views with each label. See [`View::label`](crate::View::label).
    pub views: BTreeMap<String, ViewMetrics>,
    /// How much of its limits the board uses now.
    pub load: BoardLoad,
    /// What was written to the audit log; `None` without one.
    pub audit: Option<AuditMetrics>,
    /// Views that are open.
    pub views_open: u64,
    /// Events that slow subscribers have missed.
    pub events_lost: u64,
    /// Bytes of messages of all servers that are being read, are queued to be written, or are held for callers. The limit is
    /// [`BoardLimits::max_buffered`](pegboard_config::BoardLimits::max_buffered); messages of up to 64 KiB do not count.
    pub buffered_bytes: u64,
}

/// The counters of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerMetrics {
    /// Calls that have ended.
    pub calls: CallMetrics,
    /// The calls of each tool. See [`Builder::metric_labels`](crate::Builder::metric_labels).
    pub tools: BTreeMap<String, CallSums>,
    /// Calls in flight, including queued ones.
    pub in_flight: u64,
    /// How long calls were queued. Calls that were not queued are left out.
    pub queue_wait: Histogram,
    /// How often a call was sent to the server.
    pub attempts: u64,
    /// How many of these attempts were retries.
    pub retries: u64,
    /// Payload bytes of responses, as received.
    pub bytes_received: u64,
    /// Secrets that were masked in responses.
    pub masked: u64,
    /// Results that were too long and were truncated.
    pub truncated: u64,
    /// Replies that came from the cache.
    pub cached: u64,
    /// How long starts took, from the attempt to the first listing of tools.
    pub ready_after: Histogram,
    /// How long the last of these starts took.
    pub last_ready_after_ms: Option<f64>,
    /// Starts that failed.
    pub failed_starts: u64,
    /// How often the server was restarted after its session ended.
    pub restarts: u64,
    /// Health probes that timed out.
    pub failed_probes: u64,
}

/// Calls that have ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallMetrics {
    /// All of them.
    pub total: u64,
    /// Those whose kind is not [`Kind::Ok`].
    pub failed: u64,
    /// By kind. Kinds that did not occur are left out.
    pub by_kind: BTreeMap<Kind, u64>,
    /// The time from the call to the reply.
    pub latency: Histogram,
}

/// What was written to an audit log since the board was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditMetrics {
    /// Records that were written.
    pub written: u64,
    /// Records that could not be written.
    pub lost: u64,
    /// Whether calls are refused while it cannot be written.
    pub is_required: bool,
}

/// Calls of one tool or one principal that have ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallSums {
    /// How many, by kind. Kinds that did not occur are left out.
    pub by_kind: BTreeMap<Kind, u64>,
    /// How long all of them have taken together.
    pub sum_ms: f64,
}

/// The calls of views, routed or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ViewMetrics {
    /// Calls that have ended.
    pub calls: CallMetrics,
    /// Calls in flight.
    pub in_flight: u64,
}

impl CallMetrics {
    pub(super) fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.failed += other.failed;
        for (kind, count) in &other.by_kind {
            *self.by_kind.entry(*kind).or_default() += count;
        }
        self.latency.add(&other.latency);
    }
}

impl ServerMetrics {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls.add(&other.calls);
        self.in_flight += other.in_flight;
        self.queue_wait.add(&other.queue_wait);
        self.attempts += other.attempts;
        self.retries += other.retries;
        self.bytes_received += other.bytes_received;
        self.masked += other.masked;
        self.truncated += other.truncated;
        self.cached += other.cached;
        self.ready_after.add(&other.ready_after);
        self.failed_starts += other.failed_starts;
        self.restarts += other.restarts;
        self.failed_probes += other.failed_probes;
    }
}
