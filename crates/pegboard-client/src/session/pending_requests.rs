//! [`PendingRequests`]: the table of our requests that wait for a response.

mod response_receiver;

pub(super) use response_receiver::{ExceededLimit, ResponseReceiver};

use std::{collections::HashMap, sync::Arc};

use tokio::sync::{oneshot, watch};

use super::{
    clock::Clock,
    fault::{Fault, FaultKind},
    host::CallOwner,
    response::Response,
    server_requests::ServerRequests,
};
use crate::transport::{Delivery, EndReason, Sent, WireEnd};
use pegboard_base::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};
use pegboard_mask::{LONG, ServerMasker};

/// Our requests that wait for a response, by id, until the connection ends.
#[derive(Debug)]
pub(super) struct PendingRequests {
    state: Mutex<RequestTable>,
    next_id: AtomicU64,
    clock: Clock,
    /// While the server waits for one of our responses, the idle timeouts of our requests do not run.
    server_requests: Arc<ServerRequests>,
    /// Set once, when the connection ends.
    end: watch::Sender<Option<WireEnd>>,
    /// Masks the errors that callers get.
    masker: ServerMasker,
}

#[derive(Debug, Default)]
struct RequestTable {
    slots: HashMap<u64, Slot>,
    ended: Option<WireEnd>,
}

/// The table's half of a pending request; the caller has a [`ResponseReceiver`].
#[derive(Debug)]
struct Slot {
    response: oneshot::Sender<Result<Response, Fault>>,
    /// Whether the request opened a stream of notifications, which the server may end by a notification.
    is_stream: bool,
    /// The caller, if the server may ask for input and the request is sent for one.
    owner: Option<Arc<CallOwner>>,
    /// Holds the last sign of life, by the connection's clock.
    delivery: Arc<Delivery>,
}

impl PendingRequests {
    pub(super) fn new(clock: Clock, server_requests: Arc<ServerRequests>, masker: ServerMasker) -> Self {
        Self {
            state: Mutex::default(),
            next_id: AtomicU64::new(1),
            clock,
            server_requests,
            end: watch::Sender::new(None),
            masker,
        }
    }

    /// Adds a request without an owner.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn register(&self) -> Result<ResponseReceiver, Fault> {
        self.register_for(None)
    }

    /// Adds a request of this owner. Fails if the connection has ended, so no request can be left behind.
    pub(super) fn register_for(&self, owner: Option<Arc<CallOwner>>) -> Result<ResponseReceiver, Fault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let delivery = Arc::new(Delivery::alive_at(self.clock.now()));
        let slot = Slot {
            response: sender,
            is_stream: false,
            owner,
            delivery: delivery.clone(),
        };
        let mut state = self.state.lock();
        if let Some(end) = &state.ended {
            return Err(Fault::ended(end.clone(), Sent::No));
        }
        state.slots.insert(id, slot);
        drop(state);
        Ok(ResponseReceiver {
            id,
            delivery,
            response: receiver,
            server_requests: self.server_requests.clone(),
            clock: self.clock,
        })
    }

    /// Marks a request that opens a stream of notifications.
    pub(super) fn mark_stream(&self, id: u64) {
        if let Some(slot) = self.state.lock().slots.get_mut(&id) {
            slot.is_stream = true;
        }
    }

    pub(super) fn is_stream(&self, id: u64) -> bool {
        self.state.lock().slots.get(&id).is_some_and(|slot| slot.is_stream)
    }

    /// Returns the owner of a request. Returns `None` if the request is not pending any more.
    pub(super) fn owner_of(&self, id: u64) -> Option<Option<Arc<CallOwner>>> {
        self.state.lock().slots.get(&id).map(|slot| slot.owner.clone())
    }

    /// Restarts the idle timeout of a request. Returns `false` if the request is not pending any more.
    pub(super) fn note_life(&self, id: u64) -> bool {
        let state = self.state.lock();
        let slot = state.slots.get(&id);
        slot.inspect(|slot| slot.delivery.note_life(self.clock.now())).is_some()
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.state.lock().slots.contains_key(&id)
    }

    /// Returns `true` if a request with this id was ever registered.
    pub(super) fn has_used(&self, id: u64) -> bool {
        (1..self.next_id.load(Ordering::Relaxed)).contains(&id)
    }

    /// Removes a request. A late response to it is dropped. Returns its owner.
    pub(super) fn remove(&self, id: u64) -> Option<Arc<CallOwner>> {
        self.state.lock().slots.remove(&id)?.owner
    }

    /// Completes a request. Returns `false` if the request is not pending any more.
    pub(super) fn resolve(&self, id: u64, response: Result<Response, Fault>) -> bool {
        let Some(slot) = self.state.lock().slots.remove(&id) else {
            return false;
        };
        let fault = match response {
            Ok(response) => return slot.response.send(Ok(response)).is_ok(),
            Err(fault) => fault,
        };
        if let FaultKind::Error(error) = &fault.kind
            && error.is_longer_than(LONG)
        {
            // Masking a long text would block the reader of the wire. The caller waits within its own deadline.
            let masker = self.masker.clone();
            tokio::task::spawn_blocking(move || slot.response.send(Err(fault.into_masked(&masker))));
            return true;
        }
        // Fails if the caller has just dropped its receiver; the response is then discarded.
        slot.response.send(Err(fault.into_masked(&self.masker))).is_ok()
    }

    /// Fails all pending requests and accepts no more. Only the first call has an effect.
    pub(super) fn end(&self, mut end: WireEnd) {
        end.hide(&self.masker);
        let slots = {
            let mut state = self.state.lock();
            if state.ended.is_some() {
                return;
            }
            state.ended = Some(end.clone());
            std::mem::take(&mut state.slots)
        };
        for slot in slots.into_values() {
            // The writer may still be running. It must not begin this message any more, or a call that is reported as unsent could run.
            slot.delivery.abandon();
            let fault = Fault::ended(end.clone(), slot.delivery.sent());
            let _ = slot.response.send(Err(fault));
        }
        self.end.send_replace(Some(end));
    }

    /// Waits for the end of the connection.
    pub(super) async fn until_ended(&self) -> WireEnd {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_else(|| WireEnd::new(EndReason::Closed)),
            Err(_) => WireEnd::new(EndReason::Closed),
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.state.lock().slots.len()
    }
}
