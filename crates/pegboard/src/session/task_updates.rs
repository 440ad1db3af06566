//! What servers tell of their tasks without being asked, for those who ask after these tasks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;
use tokio::sync::watch;

use super::task::TaskState;
use crate::mask::ServerMasker;

/// The tasks that are being asked after, and what was told of each last. What is told of others is dropped.
#[derive(Debug, Default)]
pub(super) struct TaskUpdates(Mutex<HashMap<String, watch::Sender<Option<TaskState>>>>);

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "taskId")]
    id: String,
    #[serde(flatten)]
    state: TaskState,
}

impl TaskUpdates {
    /// Takes what a server tells.
    pub(super) fn hear(&self, params: &str, masker: &ServerMasker) {
        let Ok(Told { id, mut state }) = serde_json::from_str(params) else {
            return;
        };
        if let Some(told) = self.lock().get(&id) {
            masker.hide_in(&mut state.message);
            told.send_replace(Some(state));
        }
    }

    /// Listens to what is told of a task from now on.
    pub(super) fn of(self: &Arc<Self>, id: &str) -> TaskUpdateReceiver {
        let mut tasks = self.lock();
        let told = tasks.entry(id.to_owned()).or_insert_with(|| watch::Sender::new(None));
        let mut told = told.subscribe();
        told.mark_unchanged();
        drop(tasks);
        TaskUpdateReceiver {
            all: self.clone(),
            id: id.to_owned(),
            told,
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Option<TaskState>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is told of one task, for as long as this is kept.
#[derive(Debug)]
pub(super) struct TaskUpdateReceiver {
    all: Arc<TaskUpdates>,
    id: String,
    told: watch::Receiver<Option<TaskState>>,
}

impl TaskUpdateReceiver {
    /// Waits for the next that is told. Only the newest is kept.
    pub(super) async fn next(&mut self) -> TaskState {
        // The sender is kept for as long as we listen.
        while self.told.changed().await.is_ok() {
            if let Some(state) = self.told.borrow_and_update().clone() {
                return state;
            }
        }
        std::future::pending().await
    }
}

impl Drop for TaskUpdateReceiver {
    fn drop(&mut self) {
        let mut tasks = self.all.lock();
        // Ours is still among them.
        if tasks.get(&self.id).is_some_and(|told| told.receiver_count() <= 1) {
            tasks.remove(&self.id);
        }
    }
}
