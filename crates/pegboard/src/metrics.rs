//! Counters and histograms of a board: atomics that calls and supervisors write, and plain values that [`Pegboard::metrics`] reads.
//!
//! Counters only grow. They belong to the board and are kept by server name, so they outlive a server that is removed, restarted, or
//! opened anew for each view.
//!
//! [`Pegboard::metrics`]: crate::Pegboard::metrics

mod histogram;
mod tallies;

pub(crate) use histogram::Timings;
pub use histogram::{Bucket, Histogram};
pub(crate) use tallies::Tallies;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::Serialize;

use crate::{
    name::ServerName,
    outcome::{Kind, Reply, millis},
};

/// All counters of a board at one moment. See [`Pegboard::metrics`](crate::Pegboard::metrics).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Metrics {
    /// The counters of each server, by name. A server that each view starts for itself has one entry for all views. A server that was
    /// removed keeps its entry; of removed servers the latest 1,024 are kept.
    pub servers: BTreeMap<ServerName, ServerMetrics>,
    /// The sum over all servers, also over those that have no entry any more.
    pub total: ServerMetrics,
    /// Calls that ended before their tool was found: unknown and ambiguous names, closed views, selections that do not fit the board.
    pub unrouted: CallMetrics,
    /// Calls of the tools that a view answers itself, such as `read_output` and `find_tools`.
    pub own_tools: CallMetrics,
    /// Views that are open.
    pub views_open: u64,
    /// Events that slow listeners have missed.
    pub events_lost: u64,
    /// Bytes of messages of all servers that are being read, wait to be written, or wait for the callers that they answer. The limit is
    /// [`BoardLimits::buffered`](crate::BoardLimits::buffered); messages of up to 64 KiB do not count.
    pub buffered_bytes: u64,
}

/// The counters of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerMetrics {
    /// Calls that have ended.
    pub calls: CallMetrics,
    /// Calls that have begun and not ended, including those that wait for a turn.
    pub in_flight: u64,
    /// How long calls waited for a turn. Calls that got one at once are left out.
    pub queue_wait: Histogram,
    /// How often a call was handed to the server.
    pub attempts: u64,
    /// How many of these attempts repeated an earlier one.
    pub retries: u64,
    /// Bytes of the payloads of answers, as they were received.
    pub bytes_received: u64,
    /// Secrets that were masked in answers.
    pub masked: u64,
    /// How long starts took, from the attempt to the first listing of tools.
    pub ready_after: Histogram,
    /// How long the last of these starts took.
    pub last_ready_after_ms: Option<f64>,
    /// Starts that failed.
    pub failed_starts: u64,
    /// How often the server was started again after its session ended.
    pub restarts: u64,
    /// Health probes that were not answered in time.
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
    /// By the kind of ending. Kinds that did not occur are left out.
    pub by_kind: BTreeMap<Kind, u64>,
    /// From the call to the reply.
    pub latency: Histogram,
}

impl CallMetrics {
    fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.failed += other.failed;
        for (kind, count) in &other.by_kind {
            *self.by_kind.entry(*kind).or_default() += count;
        }
        self.latency.add(&other.latency);
    }
}

impl ServerMetrics {
    fn add(&mut self, other: &Self) {
        self.calls.add(&other.calls);
        self.in_flight += other.in_flight;
        self.queue_wait.add(&other.queue_wait);
        self.attempts += other.attempts;
        self.retries += other.retries;
        self.bytes_received += other.bytes_received;
        self.masked += other.masked;
        self.ready_after.add(&other.ready_after);
        self.failed_starts += other.failed_starts;
        self.restarts += other.restarts;
        self.failed_probes += other.failed_probes;
    }
}

/// Counts calls that end.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_kind: [AtomicU64; Kind::ALL.len()],
    latency: Timings,
}

impl Calls {
    pub(crate) fn count(&self, kind: Kind, took: Duration) {
        self.by_kind[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.latency.record(took);
    }

    fn read(&self) -> CallMetrics {
        let counts = Kind::ALL.map(|kind| (kind, self.by_kind[kind as usize].load(Ordering::Relaxed)));
        CallMetrics {
            total: counts.iter().map(|(_, count)| count).sum(),
            failed: counts
                .iter()
                .filter(|(kind, _)| *kind != Kind::Ok)
                .map(|(_, n)| n)
                .sum(),
            by_kind: counts.into_iter().filter(|(_, count)| *count > 0).collect(),
            latency: self.latency.read(),
        }
    }
}

/// Counts what happens to one server. All servers of one name on a board share it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    calls: Calls,
    begun: AtomicU64,
    queue_wait: Timings,
    attempts: AtomicU64,
    retries: AtomicU64,
    bytes_received: AtomicU64,
    masked: AtomicU64,
    ready_after: Timings,
    /// In microseconds, plus one; zero for never.
    last_ready_after: AtomicU64,
    failed_starts: AtomicU64,
    restarts: AtomicU64,
    failed_probes: AtomicU64,
}

impl Counts {
    /// A call was routed to the server.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that was routed to the server has ended.
    pub(crate) fn end(&self, kind: Kind, took: Duration) {
        self.calls.count(kind, took);
    }

    /// What one call took, as its reply tells. A reply that is given again is counted once.
    pub(crate) fn took(&self, reply: &Reply) {
        let add = |counter: &AtomicU64, count: u64| {
            // Most calls have nothing to add to most counters.
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(&self.attempts, reply.attempts.into());
        add(&self.retries, reply.attempts.saturating_sub(1).into());
        add(&self.masked, reply.masked as u64);
        if !reply.cached {
            add(&self.bytes_received, reply.original_bytes as u64);
        }
        if !reply.queued.is_zero() {
            self.queue_wait.record(reply.queued);
        }
    }

    /// How many calls have begun and not ended.
    pub(crate) fn in_flight(&self) -> u64 {
        let begun = self.begun.load(Ordering::Relaxed);
        begun.saturating_sub(self.calls().total)
    }

    pub(crate) fn ready(&self, after: Duration) {
        self.ready_after.record(after);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.last_ready_after.store(micros.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn start_failed(&self) {
        self.failed_starts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn restarted(&self, times: u32) {
        self.restarts.fetch_add(times.into(), Ordering::Relaxed);
    }

    pub(crate) fn probe_failed(&self) {
        self.failed_probes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn calls(&self) -> CallMetrics {
        self.calls.read()
    }

    pub(crate) fn read(&self) -> ServerMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read first, so that no call seems to have ended before it began.
        let calls = self.calls.read();
        let last = get(&self.last_ready_after).checked_sub(1);
        ServerMetrics {
            in_flight: get(&self.begun).saturating_sub(calls.total),
            calls,
            queue_wait: self.queue_wait.read(),
            attempts: get(&self.attempts),
            retries: get(&self.retries),
            bytes_received: get(&self.bytes_received),
            masked: get(&self.masked),
            ready_after: self.ready_after.read(),
            last_ready_after_ms: last.map(|micros| millis(Duration::from_micros(micros))),
            failed_starts: get(&self.failed_starts),
            restarts: get(&self.restarts),
            failed_probes: get(&self.failed_probes),
        }
    }
}
