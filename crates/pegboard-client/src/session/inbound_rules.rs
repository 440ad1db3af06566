//! [`InboundRules`]: what a server may send, and how often it has sent something else.

use pegboard_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the server may send in its era and protocol version. The handshake sets it.
#[derive(Debug)]
pub(super) struct InboundRules {
    /// Whether the server speaks the era in which it may not send requests.
    is_modern: AtomicBool,
    /// Whether the protocol version has batches.
    accepts_batches: AtomicBool,
    /// The weighted number of unexpected messages.
    unexpected: AtomicU64,
}

impl Default for InboundRules {
    fn default() -> Self {
        Self {
            is_modern: AtomicBool::new(false),
            accepts_batches: AtomicBool::new(false),
            unexpected: AtomicU64::new(0),
        }
    }
}

impl InboundRules {
    /// Sets whether the server may send requests.
    pub(super) fn accept_requests(&self, accept: bool) {
        self.is_modern.store(!accept, Ordering::Relaxed);
    }

    /// Sets whether the server may send batches.
    pub(super) fn accept_batches(&self, accept: bool) {
        self.accepts_batches.store(accept, Ordering::Relaxed);
    }

    /// Whether the server speaks the era in which it may not send requests.
    pub(super) fn is_modern(&self) -> bool {
        self.is_modern.load(Ordering::Relaxed)
    }

    /// Whether the server may send batches.
    pub(super) fn accepts_batches(&self) -> bool {
        self.accepts_batches.load(Ordering::Relaxed)
    }

    /// Counts an unexpected message. Returns the weighted number of all so far.
    pub(super) fn count_unexpected(&self, weight: u64) -> u64 {
        self.unexpected.fetch_add(weight, Ordering::Relaxed) + weight
    }
}
