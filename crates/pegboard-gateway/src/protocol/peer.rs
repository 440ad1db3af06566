//! [`Peer`]: the server's end of a legacy session or of a bidirectional connection.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use pegboard_base::sync::Mutex;
use pegboard_protocol::{RequestId, RpcError, Version, code, method::notification};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{
    client::Client,
    early_end::EarlyEnd,
    events,
    exchange::ExchangeState,
    limits::Limits,
    log_level::{LogLevel, LowestLevel},
    message::Notification,
    outgoing::Outgoing,
    parked::ParkedCalls,
    questions::Questions,
    service::{Event, Filter, Service},
};
use crate::door::Caller;

/// The capacity of the outbox. When it is full requests and events wait, so that a client that does not read delays only itself.
const OUTBOX: usize = 64;

/// The limit on subscribed resources per client.
const MAX_SUBSCRIPTIONS: usize = 256;

static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The server's end of a legacy session or of a connection. Before `initialize` it has no [`Client`].
pub(crate) struct Peer {
    pub(super) number: u64,
    caller: Caller,
    service: Arc<dyn Service>,
    parked: Arc<ParkedCalls>,
    pub(super) questions: Arc<Questions>,
    level: Arc<LowestLevel>,
    limits: Limits,
    /// Locked for a lookup or an insert only, never across an await.
    state: Mutex<PeerState>,
}

#[derive(Default)]
struct PeerState {
    client: Option<Arc<Client>>,
    in_flight: HashMap<RequestId, Arc<ExchangeState>>,
    /// Sends events to the outbox, from `notifications/initialized` on.
    events: Option<AbortOnDropHandle<()>>,
    /// Sends the updates of each subscribed resource to the outbox.
    subscriptions: HashMap<String, AbortOnDropHandle<()>>,
    is_closed: bool,
}

impl Peer {
    pub(super) fn open(
        caller: &Caller,
        service: Arc<dyn Service>,
        parked: Arc<ParkedCalls>,
        limits: Limits,
    ) -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        let (outbox, receiver) = mpsc::channel(OUTBOX);
        let peer = Self {
            number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed),
            caller: caller.clone(),
            service,
            parked,
            questions: Arc::new(Questions::new(outbox)),
            level: Arc::default(),
            limits,
            state: Mutex::default(),
        };
        (Arc::new(peer), receiver)
    }

    /// What the client's token allows.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The version of the handshake.
    pub(crate) fn version(&self) -> Option<Version> {
        self.state.lock().client.as_ref().map(|client| client.version())
    }

    /// Whether the version has batches.
    pub(crate) fn allows_batches(&self) -> bool {
        self.version().is_some_and(Version::has_batches)
    }

    /// The number of requests in flight.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.state.lock().in_flight.len()
    }

    /// Where the messages go that belong to no request.
    pub(crate) fn outbox(&self) -> &mpsc::Sender<Outgoing> {
        &self.questions.outbox
    }

    /// Handles a notification of the client.
    pub(crate) fn handle_notification(&self, notification: Notification) {
        match &*notification.method {
            notification::CANCELLED => {
                if let Some(id) = notification.params.field("requestId") {
                    self.cancel(&id);
                }
            }
            notification::INITIALIZED => self.send_events(),
            _ => {
                let client = self.state.lock().client.clone();
                if let Some(client) = client {
                    self.service.on_notification(&client, notification);
                }
            }
        }
    }

    /// Handles the client's response to a question.
    pub(crate) fn handle_response(&self, id: &str, outcome: Result<Bytes, RpcError>) {
        self.questions.resolve(id, outcome);
    }

    /// Ends the session: cancels what is in flight, each request with an error that names `end`, and stops its events. The wire must poll the
    /// requests, so that they are answered.
    pub(crate) fn close(&self, end: EarlyEnd) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.in_flight.values().for_each(|shared| shared.stream.end(end));
        let ended = (state.events.take(), std::mem::take(&mut state.subscriptions));
        drop(state);
        drop(ended);
        self.parked.remove_peer(self.number);
    }

    /// Whether requests are in flight that end by themselves.
    pub(crate) fn has_requests(&self) -> bool {
        self.state.lock().in_flight.values().any(|shared| !shared.is_listening)
    }

    /// Ends the requests with which the client only listens, without a response.
    pub(super) fn end_listening(&self) {
        let state = self.state.lock();
        let listening = state.in_flight.values().filter(|shared| shared.is_listening);
        let listening: Vec<Arc<ExchangeState>> = listening.cloned().collect();
        drop(state);
        listening.iter().for_each(|shared| shared.stream.cancel());
    }

    /// Polls the requests in flight again, so that they notice what has changed.
    pub(super) fn wake(&self) {
        let state = self.state.lock();
        let in_flight: Vec<Arc<ExchangeState>> = state.in_flight.values().cloned().collect();
        drop(state);
        in_flight.iter().for_each(|shared| shared.stream.wake());
    }

    /// Stores the client of a handshake. A second handshake starts anew.
    pub(super) fn set_client(&self, client: Arc<Client>) {
        self.level.set(None);
        let mut state = self.state.lock();
        state.client = Some(client);
        let ended = (state.events.take(), std::mem::take(&mut state.subscriptions));
        drop(state);
        drop(ended);
    }

    /// Takes the client of a handshake with another process. What that one has asked is not answered here, and what has changed meanwhile is
    /// not known, so the client is told to list again.
    pub(super) fn go_on(&self, client: Arc<Client>) {
        self.questions.number_apart();
        self.set_client(client);
        self.send_events();
        for event in [Event::ToolsChanged, Event::ResourcesChanged, Event::PromptsChanged] {
            // The outbox is empty.
            if let Some(message) = events::for_legacy(event, None) {
                let _ = self.outbox().try_send(message);
            }
        }
    }

    pub(super) fn client(&self) -> Option<Arc<Client>> {
        self.state.lock().client.clone()
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        self.level.set(Some(level));
    }

    pub(super) fn level(&self) -> Option<LogLevel> {
        self.level.get()
    }

    /// Lists a request as in flight. Refuses an id that is taken, and one request too many.
    pub(super) fn register(
        self: &Arc<Self>,
        id: &RequestId,
        shared: &Arc<ExchangeState>,
    ) -> Result<InFlight, RpcError> {
        let mut state = self.state.lock();
        self.check_entry(&state, id)?;
        state.in_flight.insert(id.clone(), shared.clone());
        drop(state);
        Ok(InFlight {
            peer: self.clone(),
            id: id.clone(),
        })
    }

    /// Refuses a request that [`Peer::enter`] would refuse, if it is answered at once.
    pub(super) fn check_registration(&self, id: &str) -> Result<(), RpcError> {
        self.check_entry(&self.state.lock(), id)
    }

    fn check_entry(&self, state: &PeerState, id: &str) -> Result<(), RpcError> {
        let refuse = |code, message: &str| Err(RpcError::new(code, message));
        if state.is_closed {
            return refuse(code::INVALID_REQUEST, "the session has ended; send `initialize` again");
        }
        if state.in_flight.contains_key(id) {
            let message = "this id belongs to a request that is still in flight";
            return refuse(code::INVALID_REQUEST, message);
        }
        if state.in_flight.len() >= self.limits.in_flight {
            let most = self.limits.in_flight;
            let message = format!("{most} requests are in flight; wait for a response before sending more");
            return refuse(code::BUSY, &message);
        }
        Ok(())
    }

    /// Sends a resource's updates to the outbox until [`Peer::unsubscribe`].
    pub(super) fn subscribe(&self, uri: String, updates: BoxStream<'static, Event>) -> Result<(), RpcError> {
        let mut state = self.state.lock();
        if state.subscriptions.len() >= MAX_SUBSCRIPTIONS && !state.subscriptions.contains_key(&uri) {
            let message = format!("{MAX_SUBSCRIPTIONS} resources are subscribed; unsubscribe from one first");
            return Err(RpcError::new(code::BUSY, message));
        }
        let replaced = state.subscriptions.insert(uri, self.forward(updates));
        drop(state);
        drop(replaced);
        Ok(())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        let removed = self.state.lock().subscriptions.remove(uri);
        drop(removed);
    }

    /// Cancels the request with this id. An unknown id is ignored: the response may already have been sent.
    fn cancel(&self, id: &[u8]) {
        let id = std::str::from_utf8(id).ok().and_then(|id| RequestId::parse(id).ok());
        let shared = id.and_then(|id| self.state.lock().in_flight.get(&id).cloned());
        if let Some(shared) = shared {
            shared.stream.cancel();
        }
    }

    fn send_events(&self) {
        let Some(client) = self.client() else { return };
        let filter = Filter {
            tools: true,
            resources: true,
            prompts: true,
            uris: Vec::new(),
            others: true,
        };
        let events = self.forward(self.service.listen(&client, filter));
        let mut state = self.state.lock();
        let replaced = if state.is_closed {
            Some(events)
        } else {
            state.events.replace(events)
        };
        drop(state);
        drop(replaced);
    }

    /// Sends events to the outbox in a task.
    fn forward(&self, mut events: BoxStream<'static, Event>) -> AbortOnDropHandle<()> {
        let (outbox, level) = (self.outbox().clone(), self.level.clone());
        AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if let Some(message) = events::for_legacy(event, level.get())
                    && outbox.send(message).await.is_err()
                {
                    return;
                }
            }
        }))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.parked.remove_peer(self.number);
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// A request in the list of those in flight. Dropping it frees its id.
#[derive(Debug)]
pub(super) struct InFlight {
    peer: Arc<Peer>,
    id: RequestId,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let removed = self.peer.state.lock().in_flight.remove(&self.id);
        drop(removed);
    }
}
