//! [`Dispatcher`]: parses the envelope of each inbound message, and routes responses, requests and notifications.

mod origin;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pegboard_protocol::{
    code,
    method::{self, notification},
    rpc::Envelope,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};

use super::{
    calls_in_flight::{Attribution, CallsInFlight},
    clock::Clock,
    events::{Audience, ListKind},
    fault::Fault,
    inbound_rules::InboundRules,
    json_rpc,
    liveness::Liveness,
    notifications::{NotificationSource, Notifications},
    pending_requests::PendingRequests,
    progress::{Progress, ProgressSubscribers},
    response::Response,
    server_requests::{ServerRequest, ServerRequests},
    trace,
};
use crate::transport::{ByteBudget, EndReason, FailureKind, Inbox, NoRoom, Sent, ServerError, WireEnd, WireFailure};
use origin::MessageOrigin;
use pegboard_base::name::ServerName;
use pegboard_mask::ServerMasker;

/// After this many unexpected messages the connection is closed.
const MAX_UNEXPECTED: u64 = 100;
/// The weight of a request in the era in which servers send none: ten of them close the connection.
const MODERN_REQUEST: u64 = MAX_UNEXPECTED / 10;
/// How many requests of the server may be queued. Further ones are dropped.
const REQUEST_QUEUE: usize = 64;

/// Routes the inbound messages of one connection.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pending: PendingRequests,
    progress: Arc<ProgressSubscribers>,
    calls: Arc<CallsInFlight>,
    liveness: Liveness,
    rules: InboundRules,
    /// The queue of the server's requests.
    requests: mpsc::Sender<ServerRequest>,
    server_requests: Arc<ServerRequests>,
    /// Receives the notifications that are neither progress, cancellations nor list changes.
    notifications: OnceLock<Arc<Notifications>>,
    /// Notified when the server's tools, resources or prompts have changed.
    pub(super) list_changed: Notify,
    /// For logs.
    server: ServerName,
    /// Masks everything from the server except results, which are masked where they are presented.
    masker: ServerMasker,
    /// The byte budget of the board's connections.
    budget: ByteBudget,
}

impl Dispatcher {
    #[cfg(any(test, feature = "explore"))]
    pub(super) fn for_tests() -> (Arc<Self>, mpsc::Receiver<ServerRequest>) {
        let name = ServerName::parse("one").expect("a name");
        Self::new(name, ServerMasker::default(), ByteBudget::default())
    }

    /// Creates a dispatcher and the receiver of the server's requests.
    pub(super) fn new(
        server: ServerName,
        masker: ServerMasker,
        budget: ByteBudget,
    ) -> (Arc<Self>, mpsc::Receiver<ServerRequest>) {
        let (requests, receiver) = mpsc::channel(REQUEST_QUEUE);
        let clock = Clock::start();
        let server_requests = Arc::<ServerRequests>::default();
        let dispatcher = Self {
            pending: PendingRequests::new(clock, server_requests.clone(), masker.clone()),
            progress: Arc::default(),
            calls: Arc::new(CallsInFlight::new(clock)),
            liveness: Liveness::new(clock),
            rules: InboundRules::default(),
            requests,
            server_requests,
            notifications: OnceLock::new(),
            list_changed: Notify::new(),
            server,
            masker,
            budget,
        };
        (Arc::new(dispatcher), receiver)
    }

    pub(super) fn pending_requests(&self) -> &PendingRequests {
        &self.pending
    }

    /// Whether a message of the board waits for room in the byte budget.
    pub(super) fn is_held_up(&self) -> bool {
        self.budget.is_short()
    }

    pub(super) fn progress(&self) -> &Arc<ProgressSubscribers> {
        &self.progress
    }

    pub(super) fn calls(&self) -> &Arc<CallsInFlight> {
        &self.calls
    }

    pub(super) fn server_name(&self) -> &ServerName {
        &self.server
    }

    pub(super) fn masker(&self) -> &ServerMasker {
        &self.masker
    }

    /// When the server was last heard of.
    pub(super) fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// What the server may send.
    pub(super) fn rules(&self) -> &InboundRules {
        &self.rules
    }

    /// Sets the receiver of other notifications.
    pub(super) fn set_notifications(&self, notifications: Arc<Notifications>) {
        let _ = self.notifications.set(notifications);
    }

    pub(super) fn notifications(&self) -> Option<&Arc<Notifications>> {
        self.notifications.get()
    }

    /// Dispatches a message or a batch. Returns the id of the request that it completes.
    fn dispatch(&self, message: &Bytes, origin: MessageOrigin) -> Option<u64> {
        self.liveness.note_message();
        if trace::is_enabled() {
            trace::log_received(&self.server, &self.masker, message);
        }
        match message.first() {
            Some(b'[') if self.rules.accepts_batches() => self.dispatch_batch(message, origin),
            Some(b'[') => self.reject_batch(message, origin),
            _ => self.dispatch_one(message, origin),
        }
    }

    /// Dispatches the messages of a batch. Nested batches are rejected: recursion would be unbounded.
    fn dispatch_batch(&self, batch: &Bytes, origin: MessageOrigin) -> Option<u64> {
        let parts: Vec<&RawValue> = match serde_json::from_slice(batch) {
            Ok(parts) => parts,
            Err(error) => return self.fail_malformed(batch, &error.to_string(), origin),
        };
        let completed = parts
            .iter()
            .map(|part| self.dispatch_one(&batch.slice_ref(part.get().as_bytes()), origin));
        completed.fold(None, Option::or)
    }

    /// Rejects a batch in a protocol version without batches. The requests that it responds to fail at once instead of timing out. Returns
    /// the first of them.
    fn reject_batch(&self, batch: &Bytes, origin: MessageOrigin) -> Option<u64> {
        self.note_unexpected("a batch, which this protocol version does not have");
        let parts: Vec<&RawValue> = serde_json::from_slice(batch).ok()?;
        let failed = parts.into_iter().filter_map(|part| {
            let incoming = json_rpc::parse(part.get().as_bytes()).ok()?;
            let id =
                json_rpc::our_id(&incoming).filter(|id| incoming.method.is_none() && origin.may_respond_to(*id))?;
            let why = "it came in a batch, which this protocol version does not have";
            self.pending.resolve(id, Err(Fault::unreadable(why))).then_some(id)
        });
        failed.fold(None, |first, id| first.or(Some(id)))
    }

    /// Dispatches one message. Returns the id of the request that it completes.
    fn dispatch_one(&self, message: &Bytes, origin: MessageOrigin) -> Option<u64> {
        match message.first() {
            Some(b'{') => {}
            Some(b'[') => {
                self.note_unexpected("a batch inside a batch");
                return None;
            }
            _ => return self.fail_malformed(message, "it is no object", origin),
        }
        if let Some((id, response)) = Response::recognize(message) {
            return self.complete(id, Ok(response), origin);
        }
        let incoming = match json_rpc::parse(message) {
            Ok(incoming) => incoming,
            Err(error) => return self.fail_malformed(message, &error.to_string(), origin),
        };
        if incoming.method.is_some() && (incoming.result.is_some() || incoming.error.is_some()) {
            return self.fail_malformed(message, "it is a request and a response at once", origin);
        }
        match (&incoming.method, incoming.id) {
            (Some(method), Some(id)) => {
                self.request(id, method, incoming.params, origin);
                None
            }
            (Some(method), None) => {
                self.notification(method, incoming.params, origin);
                None
            }
            (None, _) => self.response(message, &incoming, origin),
        }
    }

    fn response(&self, message: &Bytes, incoming: &Envelope<'_>, origin: MessageOrigin) -> Option<u64> {
        let Some(id) = json_rpc::our_id(incoming) else {
            self.note_unexpected("an answer without an id of ours");
            return None;
        };
        let result = json_rpc::outcome(incoming);
        self.complete(
            id,
            result.map(|result| Response::from_verified(message, result.get())),
            origin,
        )
    }

    fn complete(&self, id: u64, response: Result<Response, Fault>, origin: MessageOrigin) -> Option<u64> {
        if !origin.may_respond_to(id) {
            // The request with this id keeps waiting for its own response.
            tracing::warn!(server = %self.server, id, "ignored a response on the stream of another request");
            self.note_unexpected("a response on the stream of another request");
            return None;
        }
        let is_result = response.is_ok();
        if !self.pending.resolve(id, response) {
            if self.pending.has_used(id) {
                self.calls.late_response(id, is_result);
                // The caller has cancelled, or the response is a duplicate. Neither counts as unexpected.
                tracing::debug!(server = %self.server, id, "an answer that nobody waits for any more");
            } else {
                self.note_unexpected("an answer to a request that was never made");
            }
        }
        Some(id)
    }

    /// Fails the request that a malformed message seems to respond to.
    fn fail_malformed(&self, message: &[u8], why: &str, origin: MessageOrigin) -> Option<u64> {
        match json_rpc::lenient_id(message) {
            Some(id) if origin.may_respond_to(id) && self.pending.resolve(id, Err(Fault::unreadable(why))) => Some(id),
            _ => {
                self.note_unexpected("a message that cannot be read");
                None
            }
        }
    }

    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>, origin: MessageOrigin) {
        if self.rules.is_modern() {
            return self.add_unexpected("a request, which this era does not have", MODERN_REQUEST);
        }
        let request = ServerRequest {
            id: id.get().to_owned(),
            method: method.to_owned(),
            params: params.map(RawValue::to_owned),
            attribution: match method {
                method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE | method::ROOTS_LIST => {
                    self.attribute(origin)
                }
                _ => Attribution::Connection,
            },
            guard: self.server_requests.begin(self.liveness.clock, id.get()),
        };
        if self.requests.try_send(request).is_err() {
            self.note_unexpected("more requests than are answered at once");
        }
    }

    /// Returns which call a question of the server belongs to. Decided when it arrives, before a call can end meanwhile.
    fn attribute(&self, origin: MessageOrigin) -> Attribution {
        let MessageOrigin::ResponseTo(id) = origin else {
            return self.calls.attribute(None);
        };
        match self.pending.owner_of(id) {
            Some(owner) => self.calls.attribute(owner),
            None => self.calls.attribute_late(),
        }
    }

    fn notification(&self, method: &str, params: Option<&RawValue>, origin: MessageOrigin) {
        match method {
            notification::PROGRESS => self.progress_notification(params),
            notification::CANCELLED => self.cancelled_notification(params, origin),
            notification::TOOLS_LIST_CHANGED => self.note_list_changed(ListKind::Tools),
            notification::RESOURCES_LIST_CHANGED => self.note_list_changed(ListKind::Resources),
            notification::PROMPTS_LIST_CHANGED => self.note_list_changed(ListKind::Prompts),
            _ => match self.notifications.get() {
                Some(notifications) => notifications.receive(method, params, self.source(origin)),
                None => {
                    tracing::debug!(server = %self.server, method = %self.masker.text(method).escape_debug(), "notification")
                }
            },
        }
    }

    /// Returns whose a notification is: that of the call on whose response stream it came, or that of the only user of the connection.
    fn source(&self, origin: MessageOrigin) -> NotificationSource {
        let owner = match origin {
            MessageOrigin::ResponseTo(id) => self.pending.owner_of(id).flatten(),
            MessageOrigin::Shared => None,
        };
        let Some(owner) = owner else {
            let sole = self.calls.users().sole();
            return sole.map_or(NotificationSource::UNKNOWN, |principal| NotificationSource {
                call: None,
                audience: Audience::Principal(principal.clone()),
            });
        };
        let caller = owner.caller();
        let principal = caller.principal.cloned();
        NotificationSource {
            call: Some(caller.call.to_owned()),
            audience: principal.map_or(Audience::Unknown, Audience::Principal),
        }
    }

    fn note_list_changed(&self, list: ListKind) {
        self.list_changed.notify_one();
        if let Some(notifications) = self.notifications.get() {
            notifications.list_changed(list);
        }
    }

    fn progress_notification(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct ProgressParams {
            #[serde(rename = "progressToken")]
            token: u64,
        }
        let Some(params) = params.map(RawValue::get) else {
            return;
        };
        let Ok(ProgressParams { token }) = serde_json::from_str(params) else {
            return;
        };
        // The token of a call is the id of its request.
        if !self.pending.note_life(token) {
            self.calls.late_progress(token);
        }
        if self.progress.has(token)
            && let Ok(mut progress) = serde_json::from_str::<Progress>(params)
        {
            self.masker.hide_in(&mut progress.message);
            self.progress.publish(token, progress);
        }
    }

    /// Cancels a request of the server. In the era in which servers send no requests, ends one of our notification streams instead. The
    /// server cannot cancel a call this way; only its response counts.
    fn cancelled_notification(&self, params: Option<&RawValue>, origin: MessageOrigin) {
        #[derive(Deserialize)]
        struct CancelledParams<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        let Some(Ok(CancelledParams { id })) = params.map(|params| serde_json::from_str(params.get())) else {
            return;
        };
        let is_known = if self.rules.is_modern() {
            let ended = ServerError::new(code::REQUEST_CANCELLED, "the server ended it");
            let ours = id.get().parse().ok().filter(|id| origin.may_respond_to(*id));
            let stream = ours.filter(|id| self.pending.is_stream(*id));
            stream.is_some_and(|id| self.pending.resolve(id, Err(ended.into())))
        } else {
            self.server_requests.cancel(id.get())
        };
        tracing::debug!(server = %self.server, is_known, "the server takes a request back");
    }

    /// Counts an unexpected message. Too many of them end the connection.
    fn note_unexpected(&self, what: &str) {
        self.add_unexpected(what, 1);
    }

    fn add_unexpected(&self, what: &str, weight: u64) {
        let unexpected = self.rules.count_unexpected(weight);
        tracing::debug!(server = %self.server, strays = unexpected, what, "a message that fits nothing");
        if unexpected >= MAX_UNEXPECTED {
            let text = format!("it sent too many messages that fit nothing; the last was {what}");
            self.report_end(WireEnd::new(EndReason::Protocol(text)));
        }
    }

    /// Fails the request whose response the wire could not deliver, by the id in the first or last bytes of the message.
    fn fail_undeliverable(&self, head: &[u8], tail: &[u8], failure: WireFailure, what: &str) {
        let id = json_rpc::find_id(head, tail);
        if !id.is_some_and(|id| self.pending.resolve(id, Err(failure.into()))) {
            self.note_unexpected(what);
        }
    }
}

impl Inbox for Dispatcher {
    fn message(&self, message: Bytes) -> Option<u64> {
        self.dispatch(&message, MessageOrigin::Shared)
    }

    fn message_for(&self, id: u64, message: Bytes) -> bool {
        self.dispatch(&message, MessageOrigin::ResponseTo(id)) == Some(id)
    }

    fn too_long(&self, head: &[u8], tail: &[u8], limit: usize) {
        let text = format!("the answer is larger than {limit} bytes");
        let failure = WireFailure::new(FailureKind::TooLarge, Sent::Maybe, text);
        self.fail_undeliverable(head, tail, failure, "a message that is too large");
    }

    fn no_room(&self, head: &[u8], tail: &[u8], no_room: NoRoom) {
        let failure = WireFailure::new(FailureKind::NoRoom, Sent::Maybe, no_room.to_string());
        self.fail_undeliverable(head, tail, failure, "a message for which there is no room");
    }

    fn budget(&self) -> ByteBudget {
        self.budget.clone()
    }

    fn waits_for(&self, id: u64) -> bool {
        self.pending.contains(id)
    }

    fn report_failure(&self, id: u64, failure: WireFailure) {
        let fault = match failure.kind {
            FailureKind::Rpc(error) => (*error).into(),
            _ => failure.into(),
        };
        self.pending.resolve(id, Err(fault));
    }

    fn mask_output(&self, text: &str) -> String {
        self.masker.text(text).into_owned()
    }

    fn server(&self) -> &str {
        self.server.as_str()
    }

    fn report_end(&self, end: WireEnd) {
        self.pending.end(end);
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
