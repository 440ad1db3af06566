//! The queue of outgoing messages of a wire that writes to one stream. Callers push; the writer takes batches.

use std::collections::VecDeque;

use tokio::sync::Notify;

#[cfg(test)]
use super::byte_budget::ByteBudget;
use super::{
    byte_budget::{self, FREE_BYTES, Permit, Quota},
    delivery::Sent,
    outgoing::Outgoing,
    request_failure::{FailureKind, WireFailure},
    wire::Inbox,
};
use pegboard_base::sync::Mutex;

/// How many bytes may be queued. If the server reads nothing, requests fail instead of filling memory.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// How many bytes of messages are handed to the writer at once. A single larger message is a batch of its own.
pub(super) const MAX_BATCH: usize = 128 << 10;

/// The queue of outgoing messages of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    /// Bounds the queued bytes by the board's byte budget.
    quota: Quota,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Outgoing>,
    bytes: usize,
    /// The bytes of the batch that the writer took last.
    writing: usize,
    /// The permit for the bytes that are queued and being written, as far as they exceed [`FREE_BYTES`].
    permit: Option<Permit>,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            quota,
        }
    }

    /// Queues a message in program order. A message that exceeds a bound fails at once. For a request after [`close`](Self::close) nothing
    /// is reported here: the end of the wire follows and carries the reason.
    pub(super) fn push(&self, message: Outgoing, inbox: &dyn Inbox) {
        let refused = self.queue.lock().push(message, &self.quota);
        match refused {
            None => self.filled.notify_one(),
            Some((message, Refusal::Closed)) => {
                message.delivery.abandon();
                let failure = WireFailure::new(FailureKind::ConnectionLost, Sent::No, "the connection is closed");
                if let Some(taken) = message.taken {
                    let _ = taken.send(Err(failure));
                }
            }
            Some((message, Refusal::Full(text))) => {
                let failure = WireFailure::new(FailureKind::Busy, Sent::No, text);
                if let Some(taken) = message.taken {
                    let _ = taken.send(Err(failure.clone()));
                }
                if let Some(id) = message.id {
                    inbox.report_failure(id, failure);
                }
            }
        }
    }

    /// Waits for messages and moves as many as fit one batch into `batch`. Returns `false` once the outbox is closed and empty.
    pub(super) async fn next_batch(&self, batch: &mut Vec<Outgoing>) -> bool {
        loop {
            {
                let mut queue = self.queue.lock();
                queue.finish_batch();
                if !queue.messages.is_empty() {
                    queue.take_batch(batch);
                    return true;
                }
                if queue.closed {
                    return false;
                }
            }
            // A push in between leaves a notification, so this does not miss it.
            self.filled.notified().await;
        }
    }

    /// Refuses further messages. The queued ones are still written.
    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.filled.notify_one();
    }

    /// Drops the messages that were not written, because nobody writes them any more. Whoever waits for one of them is woken.
    pub(super) fn clear(&self) {
        let mut queue = self.queue.lock();
        let dropped = std::mem::take(&mut queue.messages);
        queue.bytes = 0;
        queue.finish_batch();
        drop(queue);
        drop(dropped);
    }

    #[cfg(all(test, feature = "explore"))]
    pub(super) fn queued_bytes(&self) -> usize {
        self.queue.lock().bytes
    }
}

#[cfg(test)]
impl Default for Outbox {
    fn default() -> Self {
        Self::new(ByteBudget::default().quota(pegboard_config::Limits::default().max_message))
    }
}

/// Why a message was not queued.
enum Refusal {
    Closed,
    Full(String),
}

impl Queue {
    /// Queues a message, or returns it with the reason why not.
    fn push(&mut self, message: Outgoing, quota: &Quota) -> Option<(Outgoing, Refusal)> {
        let bytes = message.body.len();
        if self.closed {
            return Some((message, Refusal::Closed));
        }
        if self.bytes + bytes > MAX_QUEUED_BYTES {
            let text = format!("more than {MAX_QUEUED_BYTES} bytes wait to be read by the server");
            return Some((message, Refusal::Full(text)));
        }
        let held = self.bytes + self.writing + bytes;
        if let Err(no_room) = quota.try_grow(&mut self.permit, held.saturating_sub(FREE_BYTES)) {
            return Some((message, Refusal::Full(no_room.to_string())));
        }
        self.bytes += bytes;
        self.messages.push_back(message);
        None
    }

    /// Releases the permit of the batch that was taken last.
    fn finish_batch(&mut self) {
        self.writing = 0;
        byte_budget::shrink(&mut self.permit, self.bytes.saturating_sub(FREE_BYTES));
    }

    fn take_batch(&mut self, batch: &mut Vec<Outgoing>) {
        while let Some(message) = self.messages.front() {
            let bytes = message.body.len();
            if !batch.is_empty() && self.writing + bytes > MAX_BATCH {
                break;
            }
            self.writing += bytes;
            self.bytes -= bytes;
            batch.extend(self.messages.pop_front());
        }
    }
}
