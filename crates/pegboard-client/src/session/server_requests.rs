//! The server's own requests to us that are in flight. While there are any, the server is not idle, and it may cancel them.

use std::sync::Arc;

use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{calls_in_flight::Attribution, clock::Clock};
use pegboard_base::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

/// A request from the server.
#[derive(Debug)]
pub(super) struct ServerRequest {
    /// The id as the server wrote it, for the response.
    pub(super) id: String,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// Who answers it, if a user or a model has to.
    pub(super) attribution: Attribution,
    /// Dropped after the response has been sent.
    pub(super) guard: ServerRequestGuard,
}

/// The server's requests that are in flight.
#[derive(Debug, Default)]
pub(super) struct ServerRequests {
    in_flight: AtomicU64,
    /// When a request last ended, by the connection's clock.
    last_response: AtomicU64,
    table: Mutex<RequestTable>,
}

/// The requests in flight. The request queues bound their number.
#[derive(Debug, Default)]
struct RequestTable {
    last_number: u64,
    entries: Vec<OpenRequest>,
}

#[derive(Debug)]
struct OpenRequest {
    /// Our own key: a careless server may use an id twice.
    number: u64,
    id: String,
    cancelled: CancellationToken,
}

/// Keeps one request of the server in the table until it is dropped.
#[derive(Debug)]
pub(super) struct ServerRequestGuard {
    requests: Arc<ServerRequests>,
    clock: Clock,
    number: u64,
    cancelled: CancellationToken,
}

impl ServerRequests {
    /// Adds a request with this id. It is in flight until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>, clock: Clock, id: &str) -> ServerRequestGuard {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let cancelled = CancellationToken::new();
        let mut table = self.table.lock();
        table.last_number += 1;
        let number = table.last_number;
        table.entries.push(OpenRequest {
            number,
            id: canonical_id(id),
            cancelled: cancelled.clone(),
        });
        drop(table);
        ServerRequestGuard {
            requests: self.clone(),
            clock,
            number,
            cancelled,
        }
    }

    /// Cancels the requests with this id. Returns `false` if there is none.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let id = canonical_id(id);
        let table = self.table.lock();
        let mut matching = table.entries.iter().filter(|entry| entry.id == id).peekable();
        let is_in_flight = matching.peek().is_some();
        matching.for_each(|entry| entry.cancelled.cancel());
        is_in_flight
    }

    pub(super) fn are_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// When a request last ended, with a response or cancelled, by the connection's clock.
    pub(super) fn last_response(&self) -> u64 {
        self.last_response.load(Ordering::Relaxed)
    }
}

impl ServerRequestGuard {
    /// Waits until the server cancels the request.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for ServerRequestGuard {
    fn drop(&mut self) {
        let requests = &self.requests;
        requests
            .table
            .lock()
            .entries
            .retain(|entry| entry.number != self.number);
        requests.last_response.store(self.clock.now(), Ordering::Relaxed);
        requests.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Normalises the JSON of an id: a string can be escaped in several ways.
fn canonical_id(id: &str) -> String {
    serde_json::from_str::<Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}
