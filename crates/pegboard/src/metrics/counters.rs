//! The atomic counters of calls and of one server, which calls and supervisors write.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    histogram::AtomicHistogram,
    labels::{LabelBound, LabelTable},
    snapshot::{CallMetrics, CallSums, ServerMetrics, ViewMetrics},
};
use pegboard_tools::outcome::{Kind, Reply, millis};

/// Counters of calls that have ended.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    by_kind: [AtomicU64; Kind::ALL.len()],
    latency: AtomicHistogram,
}

impl CallCounters {
    pub(crate) fn count(&self, kind: Kind, took: Duration) {
        self.by_kind[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.latency.record(took);
    }

    pub(super) fn read(&self) -> CallMetrics {
        let by_kind = read_kinds(&self.by_kind);
        let failed = by_kind.iter().filter(|(kind, _)| **kind != Kind::Ok);
        CallMetrics {
            total: by_kind.values().sum(),
            failed: failed.map(|(_, count)| count).sum(),
            by_kind,
            latency: self.latency.read(),
        }
    }
}

/// Counters of the calls of one tool or one principal.
#[derive(Debug, Default)]
pub(crate) struct SumCounters {
    by_kind: [AtomicU64; Kind::ALL.len()],
    micros: AtomicU64,
}

impl SumCounters {
    pub(crate) fn count(&self, kind: Kind, took: Duration) {
        self.by_kind[kind as usize].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> CallSums {
        CallSums {
            by_kind: read_kinds(&self.by_kind),
            sum_ms: millis(Duration::from_micros(self.micros.load(Ordering::Relaxed))),
        }
    }
}

/// Counters of the views with one label.
#[derive(Debug, Default)]
pub(crate) struct ViewCounters {
    calls: CallCounters,
    begun: AtomicU64,
}

impl ViewCounters {
    /// Counts a call that begins.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a call.
    pub(crate) fn end(&self, kind: Kind, took: Duration) {
        self.calls.count(kind, took);
    }

    pub(super) fn read(&self) -> ViewMetrics {
        // Read before `begun`, so that no call appears to have ended before it began.
        let calls = self.calls.read();
        ViewMetrics {
            in_flight: self.begun.load(Ordering::Relaxed).saturating_sub(calls.total),
            calls,
        }
    }
}

/// The counts of the kinds that have occurred.
fn read_kinds(counts: &[AtomicU64; Kind::ALL.len()]) -> BTreeMap<Kind, u64> {
    let counts = Kind::ALL.map(|kind| (kind, counts[kind as usize].load(Ordering::Relaxed)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Counters of one server. All servers of one name on a board share them.
#[derive(Debug, Default)]
pub(crate) struct ServerCounters {
    calls: CallCounters,
    /// The calls of each tool.
    tools: LabelTable<SumCounters>,
    begun: AtomicU64,
    queue_wait: AtomicHistogram,
    attempts: AtomicU64,
    retries: AtomicU64,
    bytes_received: AtomicU64,
    masked: AtomicU64,
    truncated: AtomicU64,
    cached: AtomicU64,
    ready_after: AtomicHistogram,
    /// In microseconds plus one; zero if it was never ready.
    last_ready_after: AtomicU64,
    failed_starts: AtomicU64,
    restarts: AtomicU64,
    failed_probes: AtomicU64,
}

impl ServerCounters {
    pub(super) fn new(tools: &Arc<LabelBound>) -> Self {
        Self {
            tools: LabelTable::new(tools),
            ..Self::default()
        }
    }

    /// The counters of one of its tools, if tools are counted. The server must have the tool.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<SumCounters>> {
        self.tools.find(name)
    }

    /// Counts a call that was routed to the server.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a call that was routed to the server.
    pub(crate) fn end(&self, kind: Kind, took: Duration) {
        self.calls.count(kind, took);
    }

    /// Adds the attempts, bytes and waits of one reply. The bytes of a cached reply are not counted again.
    pub(crate) fn record_reply(&self, reply: &Reply) {
        let add = |counter: &AtomicU64, count: u64| {
            // Most calls add nothing to most counters.
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(&self.attempts, reply.attempts.into());
        add(&self.retries, reply.attempts.saturating_sub(1).into());
        add(&self.masked, reply.masked as u64);
        add(&self.truncated, reply.truncated.into());
        add(&self.cached, reply.cached.into());
        if !reply.cached {
            add(&self.bytes_received, reply.original_bytes as u64);
        }
        if !reply.queued.is_zero() {
            self.queue_wait.record(reply.queued);
        }
    }

    /// How many calls are in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        // The ended calls are read first: a call that begins and ends in between is counted as in flight, never subtracted.
        let ended = self.calls().total;
        self.begun.load(Ordering::Relaxed).saturating_sub(ended)
    }

    pub(crate) fn record_ready(&self, after: Duration) {
        self.ready_after.record(after);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.last_ready_after.store(micros.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn count_failed_start(&self) {
        self.failed_starts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_restarts(&self, times: u32) {
        self.restarts.fetch_add(times.into(), Ordering::Relaxed);
    }

    pub(crate) fn count_failed_probe(&self) {
        self.failed_probes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn calls(&self) -> CallMetrics {
        self.calls.read()
    }

    pub(crate) fn read(&self) -> ServerMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read before `begun`, so that no call appears to have ended before it began.
        let calls = self.calls.read();
        let last = get(&self.last_ready_after).checked_sub(1);
        ServerMetrics {
            in_flight: get(&self.begun).saturating_sub(calls.total),
            calls,
            tools: self.tools.read(SumCounters::read),
            queue_wait: self.queue_wait.read(),
            attempts: get(&self.attempts),
            retries: get(&self.retries),
            bytes_received: get(&self.bytes_received),
            masked: get(&self.masked),
            truncated: get(&self.truncated),
            cached: get(&self.cached),
            ready_after: self.ready_after.read(),
            last_ready_after_ms: last.map(|micros| millis(Duration::from_micros(micros))),
            failed_starts: get(&self.failed_starts),
            restarts: get(&self.restarts),
            failed_probes: get(&self.failed_probes),
        }
    }
}
