//! Servers that were removed from the board and are closing.

use futures_util::future::join_all;
use tokio::task::JoinHandle;

/// Servers that were removed from the board. Servers with calls in flight accept no new calls and close when those calls have completed, at the
/// latest after the server's limit for a call. The others close at once, and [`Retirement::wait`] waits for them.
#[must_use = "idle servers should be closed before their replacements start"]
pub(crate) struct Retirement {
    pub(super) count: usize,
    /// The tasks that close servers without calls in flight.
    pub(super) idle: Vec<JoinHandle<()>>,
}

impl Retirement {
    /// Whether no server was removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Waits until the servers without calls in flight are closed.
    pub(crate) async fn wait(self) {
        join_all(self.idle).await;
    }
}
