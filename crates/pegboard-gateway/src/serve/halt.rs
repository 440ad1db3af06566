//! [`Halt`]: says that requests in flight get no more time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Set when requests in flight get no more time at shutdown. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Halt(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Read at each poll of a request, which must not lock.
    is_set: AtomicBool,
    notice: CancellationToken,
}

impl Halt {
    pub(super) fn set(&self) {
        self.0.is_set.store(true, Ordering::Release);
        self.0.notice.cancel();
    }

    /// Whether it is set. Does not lock.
    pub(super) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Completes when it is set.
    pub(super) fn wait(&self) -> WaitForCancellationFuture<'_> {
        self.0.notice.cancelled()
    }
}
