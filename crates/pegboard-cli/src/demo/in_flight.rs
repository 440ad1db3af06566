//! The requests in flight by id, so that a client can cancel them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::message::{Fault, Id};

/// The limit on requests in flight per client: far more than clients send at once, and a bound on memory.
pub(super) const MAX_IN_FLIGHT: usize = 1024;

/// The in-flight requests of one connection or session.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    calls: Arc<Mutex<HashMap<Id, CancellationToken>>>,
    stop: CancellationToken,
}

/// A request in flight. Dropping it removes the request from the list.
#[derive(Debug)]
pub(super) struct Running {
    id: Id,
    cancelled: CancellationToken,
    owner: InFlight,
}

impl InFlight {
    /// An empty list, whose requests are cancelled when `stop` is.
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self {
            calls: Arc::default(),
            stop,
        }
    }

    pub(super) fn begin(&self, id: Id) -> Result<Running, Fault> {
        let mut calls = self.calls();
        if calls.len() >= MAX_IN_FLIGHT {
            let message = format!("{MAX_IN_FLIGHT} requests are in flight; wait for an answer before sending more");
            return Err(Fault::new(Fault::BUSY, message));
        }
        if calls.contains_key(&id) {
            return Err(Fault::new(
                Fault::INVALID_REQUEST,
                "this id belongs to a request that is still in flight",
            ));
        }
        let cancelled = self.stop.child_token();
        calls.insert(id.clone(), cancelled.clone());
        drop(calls);
        Ok(Running {
            id,
            cancelled,
            owner: self.clone(),
        })
    }

    /// Cancels the request with this id. An unknown id is ignored: the response may already have been sent.
    pub(super) fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.calls().get(id) {
            cancelled.cancel();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls().is_empty()
    }

    /// Locks the list. Held for a lookup or an insert only, never across an await.
    fn calls(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    pub(super) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.owner.calls().remove(&self.id);
        // Stops work on another thread, such as a search.
        self.cancelled.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_again_once_its_request_is_over() {
        let in_flight = InFlight::new(CancellationToken::new());
        let first = in_flight.begin(Id::Number(1)).unwrap();
        assert_eq!(in_flight.begin(Id::Number(1)).unwrap_err().code, Fault::INVALID_REQUEST);
        drop(first);
        in_flight.begin(Id::Number(1)).unwrap();
    }

    #[test]
    fn cancelling_hits_only_the_named_request() {
        let in_flight = InFlight::new(CancellationToken::new());
        let number = in_flight.begin(Id::Number(1)).unwrap();
        let text = in_flight.begin(Id::Text("1".into())).unwrap();
        in_flight.cancel(&Id::Number(2));
        in_flight.cancel(&Id::Text("1".into()));
        assert!(!number.cancelled().is_cancelled());
        assert!(text.cancelled().is_cancelled());
    }

    #[test]
    fn one_request_too_many_is_refused_as_busy() {
        let in_flight = InFlight::new(CancellationToken::new());
        let running: Vec<_> = (0..MAX_IN_FLIGHT as i64)
            .map(|id| in_flight.begin(Id::Number(id)).unwrap())
            .collect();
        assert_eq!(in_flight.begin(Id::Number(-1)).unwrap_err().code, Fault::BUSY);
        drop(running);
    }
}
