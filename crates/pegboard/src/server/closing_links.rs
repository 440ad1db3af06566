//! Links without leases whose connections are closing.

use futures_util::future::join_all;
use pegboard_base::sync::Mutex;
use tokio_util::task::TaskTracker;

/// The tasks of links without leases whose connections are closing. Shutdown waits for them.
#[derive(Debug, Default)]
pub(crate) struct ClosingLinks(Mutex<Vec<TaskTracker>>);

impl ClosingLinks {
    pub(super) fn watch(&self, tasks: &TaskTracker) {
        let mut closing = self.0.lock();
        closing.retain(|tasks| !tasks.is_empty());
        closing.push(tasks.clone());
    }

    /// Waits until all links that are closing now have closed. The limits of each server bound how long that takes.
    pub(crate) async fn wait(&self) {
        let closing = std::mem::take(&mut *self.0.lock());
        join_all(closing.iter().map(TaskTracker::wait)).await;
    }

    /// How many links are closing.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.lock().iter().filter(|tasks| !tasks.is_empty()).count()
    }
}
