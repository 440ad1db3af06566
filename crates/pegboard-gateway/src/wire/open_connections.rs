//! [`OpenConnections`]: the long-lived connections of a wire, and how they end.

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The connections of a wire that upgrades requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenConnections {
    /// Their tasks.
    pub(super) tasks: TaskTracker,
    /// Cancelled when no new requests are taken.
    pub(super) closing: CancellationToken,
    /// Cancelled when requests in flight get no more time.
    pub(super) halted: CancellationToken,
}

impl OpenConnections {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Ends each connection as soon as its requests in flight are answered. New requests are refused.
    pub(crate) fn drain(&self) {
        self.closing.cancel();
        self.tasks.close();
    }

    /// Gives requests in flight no more time. Their endpoints must have been halted.
    pub(crate) fn halt(&self) {
        self.halted.cancel();
    }

    /// Waits until all connections have ended.
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }
}
