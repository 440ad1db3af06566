//! Links without leases whose connections are closing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio_util::task::TaskTracker;

/// The tasks of links without leases whose connections are closing. Shutdown waits for them.
#[derive(Debug, Default)]
pub(crate) struct ClosingLinks(Mutex<Vec<TaskTracker>>);

impl ClosingLinks {
    pub(super) fn watch(&self, tasks: &TaskTracker) {
        let mut closing = self.lock();
        closing.retain(|tasks| !tasks.is_empty());
        closing.push(tasks.clone());
    }

    /// Waits until all links that are closing now have closed. The limits of each server bound how long that takes.
    pub(crate) async fn wait(&self) {
        let closing = std::mem::take(&mut *self.lock());
        join_all(closing.iter().map(TaskTracker::wait)).await;
    }

    /// How many links are closing.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().iter().filter(|tasks| !tasks.is_empty()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TaskTracker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
