//! The requests of a server that are being answered. A server that waits for us is not idle, and it may take back what it asked.

use std::sync::{Arc, PoisonError};

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

/// How many requests of the server are being answered, and when the last of them was, in milliseconds since the desk was opened.
#[derive(Debug, Default)]
pub(super) struct ServerRequests {
    under_way: AtomicU64,
    answered: AtomicU64,
    open: Mutex<Open>,
}

/// The requests that are being answered. There are never more than the desk takes.
#[derive(Debug, Default)]
struct Open {
    asked: u64,
    questions: Vec<OpenRequest>,
}

#[derive(Debug)]
struct OpenRequest {
    /// Which of ours it is: a careless server may use an id twice.
    number: u64,
    id: String,
    taken_back: CancellationToken,
}

/// Counts a request of the server for as long as it is being answered.
#[derive(Debug)]
pub(super) struct ServerRequestGuard {
    asks: Arc<ServerRequests>,
    opened: Instant,
    number: u64,
    taken_back: CancellationToken,
}

impl ServerRequests {
    /// The server asks something under this id. It has been answered when what this returns is dropped.
    pub(super) fn begin(asks: &Arc<Self>, opened: Instant, id: &str) -> ServerRequestGuard {
        asks.under_way.fetch_add(1, Ordering::Relaxed);
        let taken_back = CancellationToken::new();
        let mut open = asks.lock();
        open.asked += 1;
        let number = open.asked;
        open.questions.push(OpenRequest {
            number,
            id: written_once(id),
            taken_back: taken_back.clone(),
        });
        drop(open);
        ServerRequestGuard {
            asks: asks.clone(),
            opened,
            number,
            taken_back,
        }
    }

    /// The server does not want the answer any more. Whether it waits for one.
    pub(super) fn take_back(&self, id: &str) -> bool {
        let id = written_once(id);
        let open = self.lock();
        let mut fitting = open.questions.iter().filter(|question| question.id == id).peekable();
        let is_open = fitting.peek().is_some();
        fitting.for_each(|question| question.taken_back.cancel());
        is_open
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    /// When the last one was answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerRequestGuard {
    /// Waits until the server does not want the answer any more.
    pub(super) async fn taken_back(&self) {
        self.taken_back.cancelled().await;
    }
}

impl Drop for ServerRequestGuard {
    fn drop(&mut self) {
        self.asks
            .lock()
            .questions
            .retain(|question| question.number != self.number);
        self.asks.answered.store(millis_since(self.opened), Ordering::Relaxed);
        self.asks.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An id as everybody would write it: JSON has several ways for one text.
fn written_once(id: &str) -> String {
    serde_json::from_str::<Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

/// How long ago a desk was opened.
pub(super) fn millis_since(opened: Instant) -> u64 {
    u64::try_from(opened.elapsed().as_millis()).unwrap_or(u64::MAX)
}
