//! How far calls have come: what servers tell of it, and who wants to know for as long as a call, or the task it became, runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::pending_requests::PendingRequests;

/// How far a call has come, as its server tells.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, when known.
    #[serde(default)]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default)]
    pub message: Option<String>,
}

/// Where progress goes. When the channel is full, a step is left out: only the newest matters.
pub(crate) type ProgressSink = mpsc::Sender<Progress>;

/// Those who want to know how far their calls have come, by the token that the server was given.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<HashMap<u64, Listener>>);

#[derive(Debug)]
struct Listener {
    sink: ProgressSink,
    /// How far the server said last that it was.
    reached: Option<(f64, Option<f64>)>,
}

impl Listeners {
    pub(super) fn has(&self, token: u64) -> bool {
        self.lock().contains_key(&token)
    }

    pub(super) fn tell(&self, token: u64, progress: Progress) {
        if let Some(listener) = self.lock().get_mut(&token) {
            listener.reached = Some((progress.progress, progress.total));
            let _ = listener.sink.try_send(progress);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Every statement leaves the table valid, so a panic elsewhere cannot have broken it.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who wants to know how far a call has come. What the server tells under the token of the call's last request reaches it until this
/// is dropped, also after an answer that was a task.
#[derive(Debug)]
pub(crate) struct Steps {
    pending: Arc<PendingRequests>,
    token: Option<u64>,
    sink: ProgressSink,
    /// The last words about the task, so that none are said twice.
    said: Option<String>,
    /// How often words came from a server that does not say how far it is.
    count: f64,
}

impl Steps {
    pub(super) fn new(pending: &Arc<PendingRequests>, sink: ProgressSink) -> Self {
        Self {
            pending: pending.clone(),
            token: None,
            sink,
            said: None,
            count: 0.0,
        }
    }

    /// The call goes on under this token, and no longer under the one before.
    pub(super) fn rebind(&mut self, token: u64) {
        let mut listeners = self.pending.listeners().lock();
        let before = self.token.replace(token).and_then(|before| listeners.remove(&before));
        let listener = before.unwrap_or_else(|| Listener {
            sink: self.sink.clone(),
            reached: None,
        });
        listeners.insert(token, listener);
    }

    /// Passes on what a server says about the task that the call became, each word once, as far along as the server said last.
    pub(super) fn say(&mut self, words: Option<&String>) {
        if words.is_none() || words == self.said.as_ref() {
            return;
        }
        self.said = words.cloned();
        let reached = self.token.and_then(|token| {
            let listeners = self.pending.listeners().lock();
            listeners.get(&token).and_then(|listener| listener.reached)
        });
        let (progress, total) = reached.unwrap_or_else(|| {
            self.count += 1.0;
            (self.count, None)
        });
        let _ = self.sink.try_send(Progress {
            progress,
            total,
            message: self.said.clone(),
        });
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            self.pending.listeners().lock().remove(&token);
        }
    }
}
