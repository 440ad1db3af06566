//! Routes unsolicited task status notifications to the callers that poll those tasks.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use tokio::sync::watch;

use super::task_state::TaskState;
use pegboard_base::sync::Mutex;
use pegboard_mask::ServerMasker;

/// The last reported state of each task that is being polled, by task id. Notifications about other tasks are dropped.
#[derive(Debug, Default)]
pub(super) struct TaskUpdates(Mutex<Senders>);

type Senders = HashMap<String, watch::Sender<Option<TaskState>>>;

/// The params of a task status notification.
#[derive(Deserialize)]
struct TaskStatusParams {
    #[serde(rename = "taskId")]
    id: String,
    #[serde(flatten)]
    state: TaskState,
}

impl TaskUpdates {
    /// Receives the params of a task status notification.
    pub(super) fn receive(&self, params: &str, masker: &ServerMasker) {
        let Ok(TaskStatusParams { id, mut state }) = serde_json::from_str(params) else {
            return;
        };
        if let Some(sender) = self.0.lock().get(&id) {
            masker.hide_in(&mut state.message);
            sender.send_replace(Some(state));
        }
    }

    /// Subscribes to the notifications about a task from now on.
    pub(super) fn subscribe(self: &Arc<Self>, id: &str) -> TaskUpdateReceiver {
        let mut senders = self.0.lock();
        let sender = senders.entry(id.to_owned()).or_insert_with(|| watch::Sender::new(None));
        let mut receiver = sender.subscribe();
        receiver.mark_unchanged();
        drop(senders);
        TaskUpdateReceiver {
            updates: self.clone(),
            id: id.to_owned(),
            receiver,
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

/// A subscription to the notifications about one task.
#[derive(Debug)]
pub(super) struct TaskUpdateReceiver {
    updates: Arc<TaskUpdates>,
    id: String,
    receiver: watch::Receiver<Option<TaskState>>,
}

impl TaskUpdateReceiver {
    /// Waits for the next notification. Only the newest is kept.
    pub(super) async fn next(&mut self) -> TaskState {
        // The sender stays in the table while there is a receiver, so the channel never closes.
        while self.receiver.changed().await.is_ok() {
            if let Some(state) = self.receiver.borrow_and_update().clone() {
                return state;
            }
        }
        std::future::pending().await
    }
}

impl Drop for TaskUpdateReceiver {
    fn drop(&mut self) {
        let mut senders = self.updates.0.lock();
        // The count includes this receiver.
        if senders.get(&self.id).is_some_and(|sender| sender.receiver_count() <= 1) {
            senders.remove(&self.id);
        }
    }
}
