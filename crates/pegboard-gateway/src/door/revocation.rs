//! [`Revocation`]: notifies all that was opened with a token when the token is good no longer.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

/// Notifies all that was opened with a token when the token is good no longer. Clones are of the same token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revocation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notice: CancellationToken,
    has_expired: AtomicBool,
}

impl Revocation {
    /// Says that the token was removed or withdrawn, or has other rights.
    pub(crate) fn cancel(&self) {
        self.0.notice.cancel();
    }

    /// Says that the time of the token is over.
    pub(crate) fn expire(&self) {
        if !self.is_cancelled() {
            // Before the notice, so that nobody takes this for a removal.
            self.0.has_expired.store(true, Ordering::Release);
            self.cancel();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.notice.is_cancelled()
    }

    /// Whether the token is no longer good only because its time is over.
    pub(crate) fn has_expired(&self) -> bool {
        self.0.has_expired.load(Ordering::Acquire)
    }

    /// Completes when the token is good no longer.
    pub(crate) fn cancelled(&self) -> impl Future<Output = ()> + '_ {
        self.0.notice.cancelled()
    }

    pub(crate) fn notice(&self) -> &CancellationToken {
        &self.0.notice
    }
}
