//! Progress of calls: routes progress notifications to the callers that subscribed, until the call, or the task that it became, ends.

use std::{collections::HashMap, sync::Arc};

use pegboard_base::sync::Mutex;
pub use pegboard_tools::tool_call::Progress;
use tokio::sync::mpsc;

/// Receives the progress of a call. When the channel is full, a report is dropped.
pub(crate) type ProgressSink = mpsc::Sender<Progress>;

/// The subscribers to progress, by progress token.
#[derive(Debug, Default)]
pub(super) struct ProgressSubscribers(Mutex<HashMap<u64, Subscriber>>);

#[derive(Debug)]
struct Subscriber {
    sink: ProgressSink,
    /// The last reported progress and total.
    reached: Option<(f64, Option<f64>)>,
}

impl ProgressSubscribers {
    pub(super) fn has(&self, token: u64) -> bool {
        self.0.lock().contains_key(&token)
    }

    /// Passes a progress notification on to its subscriber.
    pub(super) fn publish(&self, token: u64, progress: Progress) {
        if let Some(subscriber) = self.0.lock().get_mut(&token) {
            subscriber.reached = Some((progress.progress, progress.total));
            let _ = subscriber.sink.try_send(progress);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

/// A subscription to the progress of one call, under the token of the call's last request. It ends when it is dropped, so it can outlive the
/// response if that is a task.
#[derive(Debug)]
pub(crate) struct ProgressSubscription {
    subscribers: Arc<ProgressSubscribers>,
    token: Option<u64>,
    sink: ProgressSink,
    /// The last status message of the task; each is reported once.
    last_message: Option<String>,
    /// Stands in for the progress of a server that reports only messages.
    message_count: f64,
}

impl ProgressSubscription {
    pub(super) fn new(subscribers: &Arc<ProgressSubscribers>, sink: ProgressSink) -> Self {
        Self {
            subscribers: subscribers.clone(),
            token: None,
            sink,
            last_message: None,
            message_count: 0.0,
        }
    }

    /// Moves the subscription to the token of the call's next request.
    pub(super) fn rebind(&mut self, token: u64) {
        let mut subscribers = self.subscribers.0.lock();
        let before = self.token.replace(token).and_then(|before| subscribers.remove(&before));
        let subscriber = before.unwrap_or_else(|| Subscriber {
            sink: self.sink.clone(),
            reached: None,
        });
        subscribers.insert(token, subscriber);
    }

    /// Reports a new status message of the task that the call became, with the last known progress.
    pub(super) fn report_message(&mut self, message: Option<&String>) {
        if message.is_none() || message == self.last_message.as_ref() {
            return;
        }
        self.last_message = message.cloned();
        let reached = self.token.and_then(|token| {
            let subscribers = self.subscribers.0.lock();
            subscribers.get(&token).and_then(|subscriber| subscriber.reached)
        });
        let (progress, total) = reached.unwrap_or_else(|| {
            self.message_count += 1.0;
            (self.message_count, None)
        });
        let _ = self.sink.try_send(Progress {
            progress,
            total,
            message: self.last_message.clone(),
        });
    }
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            self.subscribers.0.lock().remove(&token);
        }
    }
}
