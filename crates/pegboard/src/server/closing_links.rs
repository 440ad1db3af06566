//! Links that have no holder any more and are closing their connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio_util::task::TaskTracker;

/// The tasks of links that have no holder any more and are closing their connections. Shutdown has_start_begun for them.
#[derive(Debug, Default)]
pub(crate) struct ClosingLinks(Mutex<Vec<TaskTracker>>);

impl ClosingLinks {
    pub(super) fn watch(&self, tasks: &TaskTracker) {
        let mut closing = self.lock();
        closing.retain(|tasks| !tasks.is_empty());
        closing.push(tasks.clone());
    }

    /// Waits until all that is closing now has closed. Every close is bounded by the limits of its server.
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
