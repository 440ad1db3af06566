//! The questions of one legacy client: requests of ours that wait for its response.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use pegboard_base::sync::Mutex;
use pegboard_protocol::{RpcError, code, method::notification};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::outgoing::{Outgoing, to_text};

/// The limit on open questions per client: a person or a model answers them.
const MAX_OPEN: usize = 256;

type Outcome = Result<Bytes, RpcError>;

/// The open questions, and the queue for messages that belong to no request.
#[derive(Debug)]
pub(super) struct Questions {
    last_id: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
    pub(super) outbox: mpsc::Sender<Outgoing>,
}

/// A question in flight. Dropping it closes the question.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: u64,
    outcome: oneshot::Receiver<Outcome>,
    questions: Arc<Questions>,
}

impl Questions {
    pub(super) fn new(outbox: mpsc::Sender<Outgoing>) -> Self {
        Self {
            last_id: AtomicU64::new(0),
            open: Mutex::default(),
            outbox,
        }
    }

    /// Numbers the questions from somewhere else on, so that a late answer to a question of an earlier process answers none of these. Clients
    /// may read an id as a floating-point number.
    pub(super) fn number_apart(&self) {
        let mut random = [0; 4];
        // Without random numbers there are no session ids either.
        if getrandom::fill(&mut random).is_ok() {
            let first = (u64::from(u32::from_ne_bytes(random)) + 1) << 20;
            self.last_id.store(first, Ordering::Relaxed);
        }
    }

    pub(super) fn ask(self: &Arc<Self>) -> Result<Asked, RpcError> {
        let (sender, outcome) = oneshot::channel();
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            let message = format!("{MAX_OPEN} questions to this client are open");
            return Err(RpcError::new(code::BUSY, message));
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        open.insert(id, sender);
        drop(open);
        Ok(Asked {
            id,
            outcome,
            questions: self.clone(),
        })
    }

    /// Resolves the question with this id. A response to none is ignored: the question may have been cancelled.
    pub(super) fn resolve(&self, id: &str, outcome: Outcome) {
        let sender = id.parse().ok().and_then(|id: u64| self.open.lock().remove(&id));
        if let Some(sender) = sender {
            // The asker may have gone in the meantime.
            let _ = sender.send(outcome);
        }
    }
}

impl Asked {
    pub(super) async fn outcome(&mut self) -> Outcome {
        let gone = || Err(RpcError::new(code::INTERNAL_ERROR, "the client has disconnected"));
        (&mut self.outcome).await.unwrap_or_else(|_| gone())
    }

    /// The notification that cancels the question.
    pub(super) fn cancellation(&self) -> Outgoing {
        let params = json!({"requestId": self.id, "reason": "the request that asked has ended"});
        Outgoing::notification(notification::CANCELLED, to_text(&params))
    }

    /// Returns `true` if the client has not responded.
    pub(super) fn is_open(&self) -> bool {
        self.questions.open.lock().contains_key(&self.id)
    }

    /// Sends a message on the client's general stream, if there is room.
    pub(super) fn send_elsewhere(&self, message: Outgoing) {
        let _ = self.questions.outbox.try_send(message);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.questions.open.lock().remove(&self.id);
    }
}
