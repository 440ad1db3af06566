//! The requests of a server that are being answered. A server that waits for us is not idle.

use std::sync::Arc;

use tokio::time::Instant;

use crate::sync::atomic::{AtomicU64, Ordering};

/// How many requests of the server are being answered, and when the last of them was, in milliseconds since the desk was opened.
#[derive(Debug, Default)]
pub(super) struct Asks {
    under_way: AtomicU64,
    answered: AtomicU64,
}

/// Counts a request of the server for as long as it is being answered.
#[derive(Debug)]
pub(super) struct Asking {
    asks: Arc<Asks>,
    opened: Instant,
}

impl Asks {
    /// The server asks something. It has been answered when what this returns is dropped.
    pub(super) fn begin(asks: &Arc<Self>, opened: Instant) -> Asking {
        asks.under_way.fetch_add(1, Ordering::Relaxed);
        Asking {
            asks: asks.clone(),
            opened,
        }
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    /// When the last one was answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.asks.answered.store(millis_since(self.opened), Ordering::Relaxed);
        self.asks.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long ago a desk was opened.
pub(super) fn millis_since(opened: Instant) -> u64 {
    u64::try_from(opened.elapsed().as_millis()).unwrap_or(u64::MAX)
}
