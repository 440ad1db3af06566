//! Call counters of a server that one view owns.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::status::CallCounts;
use pegboard_tools::outcome::{Kind, Reply, millis};

/// Counts the calls of a server that one view owns.
#[derive(Debug, Default)]
pub(super) struct ViewCalls {
    total: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
}

impl ViewCalls {
    /// Counts a completed call.
    pub(super) fn record(&self, reply: &Reply) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if reply.outcome.kind() != Kind::Ok {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(reply.latency.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn status(&self) -> CallCounts {
        let total = self.total.load(Ordering::Relaxed);
        let spent = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        CallCounts {
            total,
            failed: self.failed.load(Ordering::Relaxed),
            avg_ms: spent
                .checked_div(u32::try_from(total).unwrap_or(u32::MAX))
                .map_or(0.0, millis),
        }
    }
}
