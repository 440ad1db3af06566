//! [`Endpoint`]: a service at one path. All wires start their requests here.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pegboard::{Principal, telemetry::Telemetry};
use pegboard_protocol::{RpcError, code, method};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    client::Client,
    exchange::{self, Exchange, ExchangeState},
    handshake,
    json_fields::fields,
    kept_session,
    limits::Limits,
    log_level::LogLevel,
    message::Request,
    observed::{Observed, Wire, span_in_meta},
    outgoing::Outgoing,
    params::text,
    parked::{self, ParkedCalls, ParkedOrigin},
    peer::Peer,
    raw_result::RawResult,
    request_info::RequestInfo,
    request_meta::RequestMeta,
    request_stream::{RequestStream, Wants},
    running::{Modern, Running, is_cacheable},
    scope_check,
    sealer::{EndpointSealer, Purpose, ReplicaId, Sealer},
    service::{Answer, Filter, Service},
    subscriptions,
};
use crate::door::Caller;

/// A service at one path, for all clients on all wires.
pub(crate) struct Endpoint {
    service: Arc<dyn Service>,
    /// Receives the spans of requests.
    telemetry: Option<Arc<dyn Telemetry>>,
    sealer: Arc<EndpointSealer>,
    parked: Arc<ParkedCalls>,
    limits: Limits,
    stop: CancellationToken,
    /// Set when requests in flight get no more time.
    halt: Arc<AtomicBool>,
}

impl Endpoint {
    /// Creates an endpoint. `path` tells it apart from the others: what is sealed at one is of no use at another.
    pub(crate) fn new(path: &str, service: Arc<dyn Service>, sealer: Arc<Sealer>, limits: Limits) -> Arc<Self> {
        let replica = sealer.replica();
        Arc::new(Self {
            telemetry: service.telemetry(),
            service,
            sealer: Arc::new(EndpointSealer {
                sealer,
                endpoint: path.into(),
            }),
            parked: Arc::new(ParkedCalls::new(limits.clone(), replica)),
            limits,
            stop: CancellationToken::new(),
            halt: Arc::default(),
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Opens a legacy session or a bidirectional connection. The receiver yields the messages that belong to no request.
    pub(crate) fn open(&self, caller: &Caller) -> (Arc<Peer>, mpsc::Receiver<Outgoing>) {
        Peer::open(caller, self.service.clone(), self.parked.clone(), self.limits.clone())
    }

    /// What goes into the id of a session, so that its client can go on with it elsewhere. `id` is the secret part. `None` if the client has
    /// said too much about itself.
    pub(crate) fn seal_session(&self, peer: &Peer, id: &str) -> Option<String> {
        let client = peer.client()?;
        let kept = kept_session::write(&client, id, self.sealer.sealer.replica())?;
        self.sealer.seal(client.principal(), Purpose::Session, &kept).ok()
    }

    /// The process in which the same caller has opened a session with this id at this endpoint. `None` if it has not, and `Some(None)` if it was opened before
    /// ids said that.
    pub(crate) fn opener_of(&self, caller: &Caller, id: &str, sealed: &str) -> Option<Option<ReplicaId>> {
        match self.sealer.open(caller.principal(), sealed) {
            Ok((Purpose::Session, kept)) => kept_session::opener(&kept, id, caller),
            Ok(_) | Err(_) => None,
        }
    }

    /// Opens a session again of which only its client knows: that of another process with the same key, or of this one before it was restarted
    /// or the session was idle for long. `None` if the same caller has not opened it at this endpoint.
    pub(crate) fn reopen(
        &self,
        caller: &Caller,
        id: &str,
        sealed: &str,
    ) -> Option<(Arc<Peer>, mpsc::Receiver<Outgoing>)> {
        let (Purpose::Session, kept) = self.sealer.open(caller.principal(), sealed).ok()? else {
            return None;
        };
        let client = kept_session::read(&kept, id, caller)?;
        let (peer, outbox) = self.open(caller);
        peer.go_on(Arc::new(client));
        Some((peer, outbox))
    }

    /// The process in which the call waits that a modern request continues. `None` if it continues none.
    pub(crate) fn replica_of(&self, caller: &Caller, request: &Request) -> Option<ReplicaId> {
        let state = request.params.text("requestState")?;
        match self.sealer.open(caller.principal(), &state).ok()? {
            (Purpose::ParkedCall, state) => parked::replica_of(&state),
            (Purpose::Service | Purpose::Session, _) => None,
        }
    }

    /// Cancels the calls of a principal that wait for answers of its clients, because its token was withdrawn.
    pub(crate) fn end_calls_of(&self, principal: Option<&Principal>) {
        self.parked.remove_principal(principal);
    }

    /// Ends the subscriptions of modern clients with a result. Other requests go on.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Cancels the requests in flight: each gets an error the next time it is polled. The wire must poll them.
    pub(crate) fn halt(&self) {
        self.halt.store(true, Ordering::Release);
    }

    /// The number of calls that wait for their client.
    #[cfg(test)]
    pub(super) fn parked_calls(&self) -> usize {
        self.parked.len()
    }

    /// Starts a request of a session or connection, of whichever era it is.
    pub(crate) fn start(&self, peer: &Arc<Peer>, request: Request, wire: Wire<'_>) -> Result<Running, RpcError> {
        self.observe(request, wire, |request, info| {
            self.start_unobserved(peer, request, info)
        })
    }

    /// Starts a modern request that belongs to no connection.
    pub(crate) fn start_modern(&self, caller: &Caller, request: Request, wire: Wire<'_>) -> Result<Running, RpcError> {
        self.observe(request, wire, |request, info| {
            self.start_modern_unobserved(caller, request, info)
        })
    }

    /// Starts a request, which has a span if it is sampled.
    fn observe(
        &self,
        mut request: Request,
        wire: Wire<'_>,
        start: impl FnOnce(Request, &RequestInfo) -> Result<Running, RpcError>,
    ) -> Result<Running, RpcError> {
        let begun = self
            .telemetry
            .as_ref()
            .and_then(|telemetry| Observed::begin(telemetry, &request, wire));
        let mut info = wire.info();
        info.tag = info.tag.within(span_in_meta(&request.params).as_ref());
        info.note_message(&request, begun.as_ref().and_then(|(observed, _)| observed.span()));
        let observed = begun.map(|(observed, parent)| {
            request.parent = parent;
            observed
        });
        let started = {
            let _entered = info.tag.enter();
            start(request, &info)
        };
        match (started, observed) {
            (Ok(running), Some(observed)) => Ok(running.observed_by(observed)),
            (Ok(running), None) => Ok(running),
            (Err(error), observed) => {
                info.note_error(&error);
                if let Some(observed) = observed {
                    observed.fail(&error);
                }
                Err(error)
            }
        }
    }

    fn start_unobserved(&self, peer: &Arc<Peer>, request: Request, info: &RequestInfo) -> Result<Running, RpcError> {
        if &*request.method == method::INITIALIZE {
            return self.initialize(peer, request, info);
        }
        let meta = RequestMeta::read(&request.params);
        if meta.is_modern() || &*request.method == method::SERVER_DISCOVER {
            let (client, wants) = meta.into_modern_client(peer.caller())?;
            let client = self.authorize(Arc::new(client), &request)?;
            return self.modern((client, wants), request, Some(peer), info);
        }
        self.start_legacy(peer, meta, request, info)
    }

    fn start_modern_unobserved(
        &self,
        caller: &Caller,
        request: Request,
        info: &RequestInfo,
    ) -> Result<Running, RpcError> {
        let (client, wants) = RequestMeta::read(&request.params).into_modern_client(caller)?;
        let client = self.authorize(Arc::new(client), &request)?;
        self.modern((client, wants), request, None, info)
    }

    /// Returns the client if its scopes allow the request.
    fn authorize(&self, client: Arc<Client>, request: &Request) -> Result<Arc<Client>, RpcError> {
        match scope_check::authorize(client.caller().scopes, &request.method) {
            Ok(()) => Ok(client),
            Err(error) => {
                self.service.note_refusal(&client, request, &error.message);
                Err(error)
            }
        }
    }

    fn initialize(&self, peer: &Arc<Peer>, request: Request, info: &RequestInfo) -> Result<Running, RpcError> {
        peer.check_registration(&request.id)?;
        let client = Arc::new(handshake::client(peer.caller(), &request.params)?);
        // Stored before the response is ready, so that a request right behind finds it.
        peer.set_client(client.clone());
        let shared = self.new_exchange((client.clone(), Wants::default()), &request, Some(peer), info);
        let entry = peer.register(&request.id, &shared)?;
        let service = self.service.clone();
        let work = async move {
            let description = service.describe(&client).await?;
            handshake::welcome(client.version(), description)
        };
        Ok(Running::here(request.id, shared, Box::pin(work), None, Some(entry)).until(&self.halt))
    }

    fn start_legacy(
        &self,
        peer: &Arc<Peer>,
        meta: RequestMeta,
        request: Request,
        info: &RequestInfo,
    ) -> Result<Running, RpcError> {
        let client = match (peer.client(), &*request.method) {
            (client, method::PING) => {
                peer.check_registration(&request.id)?;
                drop(client);
                return Ok(Running::from_answer(request.id, empty()));
            }
            (None, _) => {
                let message = "send `initialize` first, or name a protocol version in `_meta`";
                return Err(RpcError::new(code::INVALID_REQUEST, message));
            }
            (Some(_), method::LOGGING_SET_LEVEL) => {
                peer.check_registration(&request.id)?;
                let outcome = set_level(peer, &request);
                return Ok(Running::from_answer(request.id, outcome));
            }
            (Some(_), method::SUBSCRIPTIONS_LISTEN) => return Err(RpcError::method_not_found(&request.method)),
            (Some(client), _) => self.authorize(client, &request)?,
        };
        let shared = self.new_exchange((client, meta.wants(peer.level())), &request, Some(peer), info);
        let entry = peer.register(&request.id, &shared)?;
        let (id, service, exchange) = (request.id.clone(), self.service.clone(), Exchange(shared.clone()));
        let work: BoxFuture<'static, Answer> = match &*request.method {
            method::RESOURCES_SUBSCRIBE => Box::pin(subscribe(service, peer.clone(), request, exchange)),
            method::RESOURCES_UNSUBSCRIBE => Box::pin(unsubscribe(service, peer.clone(), request, exchange)),
            _ => service.handle(request, exchange),
        };
        Ok(Running::here(id, shared, work, None, Some(entry)).until(&self.halt))
    }

    fn modern(
        &self,
        (client, wants): (Arc<Client>, Wants),
        request: Request,
        peer: Option<&Arc<Peer>>,
        info: &RequestInfo,
    ) -> Result<Running, RpcError> {
        let modern = Modern {
            parked: self.parked.clone(),
            peer: peer.map(|peer| peer.number),
            method: request.method.clone(),
            params: request.params.clone(),
        };
        if let Some(state) = request.params.field("requestState")
            && let Some(parked) = self.parked_call(&client, &state)?
        {
            return self.resume(&client, wants, &parked, request, modern, peer);
        }
        let shared = self.new_exchange((client, wants), &request, None, info);
        if let Some(answers) = request.params.field("inputResponses") {
            shared.stream.give(answers_of(&answers).collect());
        }
        let entry = peer.map(|peer| peer.register(&request.id, &shared)).transpose()?;
        let (id, service, exchange) = (request.id.clone(), self.service.clone(), Exchange(shared.clone()));
        let work: BoxFuture<'static, Answer> = match &*request.method {
            method::SERVER_DISCOVER => {
                Box::pin(async move { handshake::discovery(service.describe(exchange.client()).await?) })
            }
            method::SUBSCRIPTIONS_LISTEN => {
                Box::pin(subscriptions::listen(service, request, exchange, self.stop.clone()))
            }
            method::INITIALIZE
            | method::PING
            | method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE => {
                return Err(RpcError::method_not_found(&request.method));
            }
            _ => service.handle(request, exchange),
        };
        Ok(Running::here(id, shared, work, Some(modern), entry).until(&self.halt))
    }

    /// Opens the `requestState` of a request. Returns what names a parked call; a state of the service is left to the service.
    fn parked_call(&self, client: &Client, state: &[u8]) -> Result<Option<Vec<u8>>, RpcError> {
        let Some(state) = text(state) else {
            return Err(RpcError::invalid_params("`requestState` must be a string"));
        };
        match self.sealer.open(client.principal(), &state)? {
            (Purpose::ParkedCall, parked) => Ok(Some(parked)),
            (Purpose::Service, _) => Ok(None),
            (Purpose::Session, _) => Err(RpcError::invalid_params("`requestState` is the id of a session")),
        }
    }

    /// Continues a parked call with the client's answers.
    fn resume(
        &self,
        client: &Client,
        wants: Wants,
        parked: &[u8],
        request: Request,
        modern: Modern,
        peer: Option<&Arc<Peer>>,
    ) -> Result<Running, RpcError> {
        let origin = ParkedOrigin::new(modern.peer, &request.method, &request.params);
        let call = self.parked.attach(parked, client, &origin, wants)?;
        let entry = match peer.map(|peer| peer.register(&request.id, &call.shared)).transpose() {
            Ok(entry) => entry,
            Err(error) => {
                // The state stays good for a request with a free id.
                call.release();
                return Err(error);
            }
        };
        if let Some(answers) = request.params.field("inputResponses") {
            for (key, answer) in answers_of(&answers) {
                // An answer to a question that was withdrawn is of no use.
                call.shared.stream.answer(&key, answer);
            }
        }
        Ok(Running::from_parked(request.id, call, modern, entry).until(&self.halt))
    }

    /// `peer` is the one that is asked questions: that of a legacy request.
    fn new_exchange(
        &self,
        (client, wants): (Arc<Client>, Wants),
        request: &Request,
        peer: Option<&Arc<Peer>>,
        info: &RequestInfo,
    ) -> Arc<ExchangeState> {
        Arc::new(ExchangeState {
            client,
            stream: RequestStream::new(wants),
            sealer: self.sealer.clone(),
            questions: peer.map(|peer| peer.questions.clone()),
            question_time: self.limits.question_time,
            effect: AtomicU8::new(match only_reads(&request.method) {
                true => exchange::NONE,
                false => exchange::UNKNOWN,
            }),
            is_listening: &*request.method == method::SUBSCRIPTIONS_LISTEN,
            parent: request.parent.clone(),
            info: info.clone(),
            failure: OnceLock::new(),
        })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("path", &self.sealer.endpoint)
            .finish_non_exhaustive()
    }
}

/// The answers in `inputResponses`. What is no object can be none: its question stays open.
fn answers_of(answers: &Bytes) -> impl Iterator<Item = (String, Bytes)> {
    fields(answers).filter_map(|field| {
        let answer = answers.slice(field.value.clone());
        let key = field.key()?;
        answer.starts_with(b"{").then_some((key, answer))
    })
}

/// Whether a request changes nothing, however often it is sent.
pub(crate) fn only_reads(method: &str) -> bool {
    method == method::INITIALIZE || method == method::SUBSCRIPTIONS_LISTEN || is_cacheable(method)
}

fn empty() -> Answer {
    Ok(RawResult::from_text(Bytes::from_static(b"{}"), false))
}

fn set_level(peer: &Peer, request: &Request) -> Answer {
    let level = request
        .params
        .text("level")
        .and_then(|level| level.parse::<LogLevel>().ok());
    let Some(level) = level else {
        return Err(RpcError::invalid_params("`level` must be one of debug … emergency"));
    };
    peer.set_level(level);
    empty()
}

/// Lets the service refuse a resource, then sends its updates.
async fn subscribe(service: Arc<dyn Service>, peer: Arc<Peer>, request: Request, exchange: Exchange) -> Answer {
    let uri = uri_of(&request)?;
    let filter = Filter {
        uris: vec![uri.clone()],
        ..Filter::default()
    };
    // Before the service agrees, so that no update after that is missed.
    let updates = service.listen(exchange.client(), filter);
    let result = service.handle(request, exchange).await?;
    peer.subscribe(uri, updates)?;
    Ok(result)
}

async fn unsubscribe(service: Arc<dyn Service>, peer: Arc<Peer>, request: Request, exchange: Exchange) -> Answer {
    peer.unsubscribe(&uri_of(&request)?);
    service.handle(request, exchange).await
}

fn uri_of(request: &Request) -> Result<String, RpcError> {
    let uri = request.params.text("uri").map(Cow::into_owned);
    uri.ok_or_else(|| RpcError::invalid_params("`uri` is missing or not a string"))
}
