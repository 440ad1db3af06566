//! The desk where answers are handed out: which requests wait, what progress they make, and what else the server says.

mod slot;

pub(super) use slot::{Late, Place};

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    json_rpc::{self, Incoming},
    notifications::Notifications,
    progress::{Listeners, Progress},
    response::Response,
    server_requests::{ServerRequestGuard, ServerRequests, millis_since},
    trace,
};
use crate::{
    mask::{LONG, ServerMasker},
    name::ServerName,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    transport::{ByteBudget, Delivery, EndReason, FailureKind, Inbox, NoRoom, RpcError, Sent, WireEnd, WireFailure},
};

/// After this many messages that fit nothing, the server is not worth listening to.
const MAX_STRAYS: u64 = 100;
/// A request in the era that knows none from servers is a graver fault: ten of them are enough.
const MODERN_REQUEST: u64 = MAX_STRAYS / 10;
/// The code of what was given up.
const GIVEN_UP: i64 = -32800;

/// The requests that wait for an answer, and the way to the rest of the session.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    state: Mutex<State>,
    /// Who wants to know how far a call has come.
    listeners: Listeners,
    next_id: AtomicU64,
    opened: Instant,
    strays: AtomicU64,
    /// When the server last said anything, in milliseconds since the desk was opened.
    heard: AtomicU64,
    /// Whether the server speaks the era in which it may not ask anything.
    is_modern: AtomicBool,
    /// Whether the protocol version has batches.
    takes_batches: AtomicBool,
    /// Requests of the server. Bounded: a flood is answered late or not at all, but never kept.
    requests: mpsc::Sender<ServerRequest>,
    /// How many of them are being answered. A server that waits for us is not idle.
    asks: Arc<ServerRequests>,
    /// Where other notifications go.
    notifications: OnceLock<Arc<Notifications>>,
    /// The server's catalogue has changed.
    pub(super) changed: Notify,
    /// Set once, when the wire is gone.
    end: watch::Sender<Option<WireEnd>>,
    /// Whose words they are, for logs.
    server: ServerName,
    /// What stands before everything that the server says beside its results.
    masker: ServerMasker,
    /// The budget for the messages of all connections of the board.
    budget: ByteBudget,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, Slot>,
    ended: Option<WireEnd>,
}

#[derive(Debug)]
struct Slot {
    answer: oneshot::Sender<Result<Response, Unanswered>>,
    /// Whether the server may end it by a notification, as it may a stream of notifications.
    is_stream: bool,
    /// Its signs of life are told in milliseconds since the desk was opened.
    delivery: Arc<Delivery>,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unanswered {
    /// The server answered with an error.
    Error(RpcError),
    /// The answer came, and cannot be understood.
    Unreadable(String),
    /// No answer can come any more.
    Wire(WireFailure),
    /// The whole wire is gone.
    Ended { end: WireEnd, sent: Sent },
}

/// A request of the server.
#[derive(Debug)]
pub(super) struct ServerRequest {
    /// The id as it came, to be sent back like that.
    pub(super) id: String,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// Dropped when it has been answered.
    pub(super) asking: ServerRequestGuard,
}

impl PendingRequests {
    #[cfg(test)]
    pub(super) fn new() -> (Arc<Self>, mpsc::Receiver<ServerRequest>) {
        let name = ServerName::parse("one").expect("a name");
        Self::behind(name, ServerMasker::default(), ByteBudget::default())
    }

    /// A desk for a server whose words are masked.
    pub(super) fn behind(
        server: ServerName,
        masker: ServerMasker,
        budget: ByteBudget,
    ) -> (Arc<Self>, mpsc::Receiver<ServerRequest>) {
        let (requests, heard) = mpsc::channel(64);
        let pending = Self {
            state: Mutex::default(),
            listeners: Listeners::default(),
            next_id: AtomicU64::new(1),
            opened: Instant::now(),
            strays: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            is_modern: AtomicBool::new(false),
            takes_batches: AtomicBool::new(false),
            requests,
            asks: Arc::default(),
            notifications: OnceLock::new(),
            changed: Notify::new(),
            end: watch::Sender::new(None),
            server,
            masker,
            budget,
        };
        (Arc::new(pending), heard)
    }

    /// Takes a place for a new request. A wire that has ended takes none, so no request can be left behind.
    pub(super) fn place(&self) -> Result<Place, Unanswered> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let delivery = Arc::new(Delivery::alive_at(self.now()));
        let slot = Slot {
            answer: sender,
            is_stream: false,
            delivery: delivery.clone(),
        };
        let mut state = self.lock();
        if let Some(end) = &state.ended {
            return Err(Unanswered::Ended {
                end: end.clone(),
                sent: Sent::No,
            });
        }
        state.waiting.insert(id, slot);
        drop(state);
        Ok(Place {
            id,
            delivery,
            answer,
            asks: self.asks.clone(),
            opened: self.opened,
        })
    }

    /// The request asks for a stream of notifications, which the server may end.
    pub(super) fn expect_stream(&self, id: u64) {
        if let Some(slot) = self.lock().waiting.get_mut(&id) {
            slot.is_stream = true;
        }
    }

    /// Gives a place up. Its answer, should it still come, is dropped.
    pub(super) fn leave(&self, id: u64) {
        self.lock().waiting.remove(&id);
    }

    /// Waits for the end of the wire.
    pub(super) async fn until_ended(&self) -> WireEnd {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_else(|| WireEnd::new(EndReason::Closed)),
            Err(_) => WireEnd::new(EndReason::Closed),
        }
    }

    /// How long the server has said nothing.
    pub(super) fn quiet_for(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.heard.load(Ordering::Relaxed)))
    }

    fn resolve(&self, id: u64, answer: Result<Response, Unanswered>) -> bool {
        let Some(slot) = self.lock().waiting.remove(&id) else {
            return false;
        };
        let why = match answer {
            Ok(answer) => return slot.answer.send(Ok(answer)).is_ok(),
            Err(why) => why,
        };
        if let Unanswered::Error(error) = &why
            && error.is_longer_than(LONG)
        {
            // The caller waits for it within its own deadline, and the wire reads on.
            let masker = self.masker.clone();
            tokio::task::spawn_blocking(move || slot.answer.send(Err(hidden(why, &masker))));
            return true;
        }
        // Fails if the caller has just dropped its receiver; the response is then discarded.
        slot.answer.send(Err(hidden(why, &self.masker))).is_ok()
    }

    /// What stands before everything that the server says.
    pub(super) fn server(&self) -> &ServerName {
        &self.server
    }

    pub(super) fn masker(&self) -> &ServerMasker {
        &self.masker
    }

    /// Reads the messages of a batch. A batch inside a batch is no message: following it down would cost the stack.
    fn read_batch(&self, batch: &Bytes, from: Origin) -> Option<u64> {
        let parts: Vec<&RawValue> = match serde_json::from_slice(batch) {
            Ok(parts) => parts,
            Err(error) => return self.unreadable(batch, &error.to_string(), from),
        };
        let answered = parts
            .iter()
            .map(|part| self.read(&batch.slice_ref(part.get().as_bytes()), from));
        answered.fold(None, Option::or)
    }

    /// Refuses a batch where the protocol version has none. The calls whose answers are in it fail at once instead of waiting for their
    /// time-out. Returns one of them.
    fn refuse_batch(&self, batch: &Bytes, from: Origin) -> Option<u64> {
        self.stray("a batch, which this protocol version does not have");
        let parts: Vec<&RawValue> = serde_json::from_slice(batch).ok()?;
        let answered = parts.into_iter().filter_map(|part| {
            let incoming: Incoming<'_> = serde_json::from_str(part.get()).ok()?;
            let id = incoming
                .our_id()
                .filter(|id| incoming.method.is_none() && from.may_answer(*id))?;
            let why = "it came in a batch, which this protocol version does not have";
            self.resolve(id, Err(unreadable(why))).then_some(id)
        });
        answered.fold(None, |first, id| first.or(Some(id)))
    }

    /// Reads one message. Returns the request that it answers.
    fn read(&self, message: &Bytes, from: Origin) -> Option<u64> {
        match message.first() {
            Some(b'{') => {}
            Some(b'[') => {
                self.stray("a batch inside a batch");
                return None;
            }
            _ => return self.unreadable(message, "it is no object", from),
        }
        if let Some((id, answer)) = Response::guess(message) {
            return self.hand_out(id, Ok(answer), from);
        }
        let incoming: Incoming<'_> = match serde_json::from_slice(message) {
            Ok(incoming) => incoming,
            Err(error) => return self.unreadable(message, &error.to_string(), from),
        };
        match (&incoming.method, incoming.id) {
            (Some(method), Some(id)) => {
                self.request(id, method, incoming.params);
                None
            }
            (Some(method), None) => {
                self.notification(method, incoming.params, from);
                None
            }
            (None, _) => self.answer(message, &incoming, from),
        }
    }

    fn answer(&self, message: &Bytes, incoming: &Incoming<'_>, from: Origin) -> Option<u64> {
        let Some(id) = incoming.our_id() else {
            self.stray("an answer without an id of ours");
            return None;
        };
        let result = incoming.outcome();
        self.hand_out(
            id,
            result.map(|result| Response::proven_in(message, result.get())),
            from,
        )
    }

    fn hand_out(&self, id: u64, answer: Result<Response, Unanswered>, from: Origin) -> Option<u64> {
        if !from.may_answer(id) {
            self.misplaced(id);
            return None;
        }
        if !self.resolve(id, answer) {
            if (1..self.next_id.load(Ordering::Relaxed)).contains(&id) {
                // Late because we gave up, or the second of two: no reason to leave, however often it happens.
                tracing::debug!(server = %self.server, id, "an answer that nobody waits for any more");
            } else {
                self.stray("an answer to a request that was never made");
            }
        }
        Some(id)
    }

    /// A response to one request that came in the response to another. The request that it names keeps waiting for its own.
    fn misplaced(&self, id: u64) {
        tracing::warn!(server = %self.server, id, "ignored a response on the stream of another request");
        self.stray("a response on the stream of another request");
    }

    /// A message that is no JSON-RPC costs the call whose answer it seems to be, and nothing else.
    fn unreadable(&self, message: &[u8], why: &str, from: Origin) -> Option<u64> {
        match json_rpc::lenient_id(message) {
            Some(id) if from.may_answer(id) && self.resolve(id, Err(unreadable(why))) => Some(id),
            _ => {
                self.stray("a message that cannot be read");
                None
            }
        }
    }

    fn notification(&self, method: &str, params: Option<&RawValue>, from: Origin) {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/cancelled" => self.cancelled(params, from),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.changed.notify_one(),
            _ => match self.notifications.get() {
                Some(notifications) => notifications.hear(method, params),
                None => {
                    tracing::debug!(server = %self.server, method = %self.masker.text(method).escape_debug(), "notification")
                }
            },
        }
    }

    /// Sets where other notifications go.
    pub(super) fn set_notifications(&self, notifications: Arc<Notifications>) {
        let _ = self.notifications.set(notifications);
    }

    pub(super) fn notifications(&self) -> Option<&Arc<Notifications>> {
        self.notifications.get()
    }

    /// How many requests wait for an answer.
    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.lock().waiting.len()
    }

    fn progress(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "progressToken")]
            token: u64,
        }
        let Some(params) = params.map(RawValue::get) else {
            return;
        };
        let Ok(Params { token }) = serde_json::from_str(params) else {
            return;
        };
        if let Some(slot) = self.lock().waiting.get(&token) {
            slot.delivery.note_life(self.now());
        }
        if self.listeners.has(token)
            && let Ok(mut progress) = serde_json::from_str::<Progress>(params)
        {
            self.masker.hide_in(&mut progress.message);
            self.listeners.tell(token, progress);
        }
    }

    /// Those who want to know how far their calls have come.
    pub(super) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// The server takes back a question of its own. In the era in which it has none, it ends a stream that we asked for. It cannot end a call
    /// like that: what it answers to one counts.
    fn cancelled(&self, params: Option<&RawValue>, from: Origin) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        let Some(Ok(Params { id })) = params.map(|params| serde_json::from_str(params.get())) else {
            return;
        };
        let is_known = if self.is_modern.load(Ordering::Relaxed) {
            let ended = RpcError {
                code: GIVEN_UP,
                message: "the server ended it".to_owned(),
                data: None,
                masked: None,
            };
            let ours = id.get().parse().ok().filter(|id| from.may_answer(*id));
            let is_stream = |id: &u64| self.lock().waiting.get(id).is_some_and(|slot| slot.is_stream);
            let ours = ours.filter(is_stream);
            ours.is_some_and(|id| self.resolve(id, Err(Unanswered::Error(ended))))
        } else {
            self.asks.take_back(id.get())
        };
        tracing::debug!(server = %self.server, is_known, "the server takes a request back");
    }

    /// Whether the server may ask anything from now on.
    pub(super) fn expect_requests(&self, expected: bool) {
        self.is_modern.store(!expected, Ordering::Relaxed);
    }

    /// Whether messages may come in batches from now on.
    pub(super) fn expect_batches(&self, expected: bool) {
        self.takes_batches.store(expected, Ordering::Relaxed);
    }

    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        if self.is_modern.load(Ordering::Relaxed) {
            return self.stray_of("a request, which this era does not have", MODERN_REQUEST);
        }
        let request = ServerRequest {
            id: id.get().to_owned(),
            method: method.to_owned(),
            params: params.map(RawValue::to_owned),
            asking: ServerRequests::begin(&self.asks, self.opened, id.get()),
        };
        if self.requests.try_send(request).is_err() {
            self.stray("more requests than are answered at once");
        }
    }

    /// Counts a message that fits nothing. Too many of them end the conversation.
    fn stray(&self, what: &str) {
        self.stray_of(what, 1);
    }

    fn stray_of(&self, what: &str, weight: u64) {
        let strays = self.strays.fetch_add(weight, Ordering::Relaxed) + weight;
        tracing::debug!(server = %self.server, strays, what, "a message that fits nothing");
        if strays >= MAX_STRAYS {
            let text = format!("it sent too many messages that fit nothing; the last was {what}");
            self.ended(WireEnd::new(EndReason::Protocol(text)));
        }
    }

    fn now(&self) -> u64 {
        millis_since(self.opened)
    }

    /// Every statement leaves the state valid, so a panic elsewhere cannot have broken it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a message came from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A wire or stream that carries the responses to all requests.
    Anywhere,
    /// The response to this one request.
    ResponseTo(u64),
}

impl Origin {
    fn may_answer(self, id: u64) -> bool {
        match self {
            Self::Anywhere => true,
            Self::ResponseTo(request) => request == id,
        }
    }
}

impl PendingRequests {
    fn hear(&self, message: &Bytes, from: Origin) -> Option<u64> {
        self.heard.store(self.now(), Ordering::Relaxed);
        if trace::is_wanted() {
            trace::received(&self.server, &self.masker, message);
        }
        match message.first() {
            Some(b'[') if self.takes_batches.load(Ordering::Relaxed) => self.read_batch(message, from),
            Some(b'[') => self.refuse_batch(message, from),
            _ => self.read(message, from),
        }
    }
}

/// The words of the server in it masked.
fn hidden(mut unanswered: Unanswered, masker: &ServerMasker) -> Unanswered {
    match &mut unanswered {
        Unanswered::Error(error) => error.hide(masker),
        Unanswered::Unreadable(text) => masker.hide(text),
        Unanswered::Wire(failure) => failure.hide(masker),
        Unanswered::Ended { end, .. } => end.hide(masker),
    }
    unanswered
}

impl Inbox for PendingRequests {
    fn message(&self, message: Bytes) -> Option<u64> {
        self.hear(&message, Origin::Anywhere)
    }

    fn message_for(&self, id: u64, message: Bytes) -> bool {
        self.hear(&message, Origin::ResponseTo(id)) == Some(id)
    }

    fn too_long(&self, head: &[u8], tail: &[u8], limit: usize) {
        let text = format!("the answer is larger than {limit} bytes");
        let failure = WireFailure::new(FailureKind::TooLarge, Sent::Maybe, text);
        let resolved = json_rpc::find_id(head, tail).is_some_and(|id| self.resolve(id, Err(Unanswered::Wire(failure))));
        if !resolved {
            self.stray("a message that is too large");
        }
    }

    fn no_room(&self, head: &[u8], tail: &[u8], no_room: NoRoom) {
        let failure = WireFailure::new(FailureKind::NoRoom, Sent::Maybe, no_room.to_string());
        let resolved = json_rpc::find_id(head, tail).is_some_and(|id| self.resolve(id, Err(Unanswered::Wire(failure))));
        if !resolved {
            self.stray("a message for which there is no room");
        }
    }

    fn budget(&self) -> ByteBudget {
        self.budget.clone()
    }

    fn waits_for(&self, id: u64) -> bool {
        self.lock().waiting.contains_key(&id)
    }

    fn failed(&self, id: u64, failure: WireFailure) {
        self.resolve(
            id,
            Err(match failure.kind {
                FailureKind::Rpc(error) => Unanswered::Error(error),
                _ => Unanswered::Wire(failure),
            }),
        );
    }

    fn shown(&self, text: &str) -> String {
        self.masker.text(text).into_owned()
    }

    fn server(&self) -> &str {
        self.server.as_str()
    }

    fn ended(&self, mut end: WireEnd) {
        end.hide(&self.masker);
        let waiting = {
            let mut state = self.lock();
            if state.ended.is_some() {
                return;
            }
            state.ended = Some(end.clone());
            std::mem::take(&mut state.waiting)
        };
        for slot in waiting.into_values() {
            // The writer may still be at work. What it has not begun it must leave, or a call reported as unsent would run.
            slot.delivery.abandon();
            let sent = slot.delivery.sent();
            let end = end.clone();
            let _ = slot.answer.send(Err(Unanswered::Ended { end, sent }));
        }
        self.end.send_replace(Some(end));
    }
}

fn unreadable(why: &str) -> Unanswered {
    Unanswered::Unreadable(why.to_owned())
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
