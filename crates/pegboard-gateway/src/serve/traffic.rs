//! [`Traffic`]: counts connections, so that a program can end when no client needs it any more.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// The connections of a gateway at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficCounts {
    /// How many are open.
    pub open: usize,
    /// How many were accepted so far.
    pub accepted: u64,
}

/// Counts connections.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    open: AtomicUsize,
    accepted: AtomicU64,
}

impl Traffic {
    /// Counts a connection that is open until the returned value is dropped.
    pub(super) fn opened(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }

    pub(super) fn counts(&self) -> TrafficCounts {
        TrafficCounts {
            open: self.open.load(Ordering::Relaxed),
            accepted: self.accepted.load(Ordering::Relaxed),
        }
    }
}

/// A connection that counts as open.
#[derive(Debug)]
pub(super) struct OpenConnection(Arc<Traffic>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
