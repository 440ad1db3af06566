//! Streamable HTTP, in both eras on one path. A modern request needs no session; a legacy one belongs to a session that `initialize`
//! opens. This file tells the two apart.

mod answer;
mod batch;
mod elsewhere;
mod headers;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::Body;
use pegboard_protocol::{code, method};

use super::{
    accepts::Accepts,
    body_limit::{BodyError, BodyLimit},
    event_body::EventBody,
    event_frame::EventId,
    response::{self, HttpResponse, method_not_allowed, problem},
    secret_id::SecretId,
    session::InUse,
    session_id::SessionId,
    session_store::{NotOpened, SessionStore},
    sessions::Sessions,
};
use crate::{
    door::Caller,
    protocol::{Broken, Endpoint, Incoming, Message, Request, RequestInfo, RpcError, RunStep, Wire, parse},
    replicas::{ForwardedHead, Replicas},
};
use answer::{Refusal, receive, refuse};
use headers::{LAST_EVENT_ID, SESSION_ID};

/// The limits of the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The limit on the length of a body.
    pub(crate) body: usize,
    /// The limit on open sessions.
    pub(crate) sessions: usize,
    /// How long a session without a request or a stream is kept.
    pub(crate) session_idle: Duration,
    /// How long a call goes on after its stream broke, and how long the events of a finished one are kept.
    pub(crate) linger: Duration,
}

/// The longest sealed part of an id, which is a header of every request: proxies have limits for all headers together.
const MAX_SEALED: usize = 2048;

/// Serves streamable HTTP for all endpoints of a gateway.
#[derive(Debug)]
pub(crate) struct HttpWire {
    bodies: BodyLimit,
    sessions: Arc<dyn SessionStore>,
    /// The other processes of the gateway; `None` if it has none.
    replicas: Option<Replicas>,
}

/// A request to one endpoint.
#[derive(Clone, Copy, Debug)]
struct Visit<'a> {
    info: &'a RequestInfo,
    endpoint: &'a Arc<Endpoint>,
    caller: &'a Caller,
    head: ForwardedHead<'a>,
    headers: &'a HeaderMap,
    accepts: Accepts,
}

impl<'a> Visit<'a> {
    fn new(info: &'a RequestInfo, endpoint: &'a Arc<Endpoint>, caller: &'a Caller, head: ForwardedHead<'a>) -> Self {
        Self {
            info,
            endpoint,
            caller,
            head,
            headers: head.headers,
            accepts: Accepts::parse(head.headers),
        }
    }

    /// How the request came.
    fn wire(self) -> Wire<'a> {
        Wire::Http {
            info: self.info,
            headers: self.headers,
            session: self.headers.get(SESSION_ID).map(HeaderValue::as_bytes),
        }
    }
}

impl HttpWire {
    pub(crate) fn new(limits: Limits, bodies: BodyLimit, replicas: Option<Replicas>) -> Self {
        Self {
            bodies,
            sessions: Sessions::new(limits.sessions, limits.session_idle, limits.linger),
            replicas,
        }
    }

    /// Handles a request to an endpoint.
    pub(crate) async fn handle<B>(
        &self,
        info: &RequestInfo,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        head: ForwardedHead<'_>,
        body: B,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes>,
    {
        let visit = Visit::new(info, endpoint, caller, head);
        match *head.method {
            Method::POST => self.post(visit, body).await,
            Method::GET => match self.answer_elsewhere(visit).await {
                Some(response) => response,
                None => self.get(visit),
            },
            Method::DELETE => match self.answer_elsewhere(visit).await {
                Some(response) => response,
                None => self.delete(visit).await,
            },
            _ => method_not_allowed("GET, POST, DELETE", "send messages with POST"),
        }
    }

    /// The response to a posted message that is refused whatever its body is.
    pub(crate) fn refuse_post(&self, headers: &HeaderMap, length: usize) -> Option<HttpResponse> {
        let refused = Accepts::parse(headers).refuse_post();
        refused.or_else(|| self.bodies.check(headers, length).err().map(BodyError::response))
    }

    /// Handles a message that was posted to an endpoint, and has been read.
    pub(crate) async fn handle_message(
        &self,
        info: &RequestInfo,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        head: ForwardedHead<'_>,
        body: Bytes,
    ) -> HttpResponse {
        let visit = Visit::new(info, endpoint, caller, head);
        if let Some(refused) = visit.accepts.refuse_post() {
            return refused;
        }
        let checked = self.bodies.check(visit.headers, body.len());
        match checked.and_then(|()| self.bodies.hold(caller.principal.as_ref(), body)) {
            Ok(bytes) => self.handle_body(visit, bytes).await,
            Err(error) => error.response(),
        }
    }

    /// Reads a request that another replica has sealed. `None` if it did not come whole or in time.
    pub(crate) async fn read_sealed<B>(&self, body: B) -> Option<Bytes>
    where
        B: Body<Data = Bytes>,
    {
        self.bodies.read_sealed(body).await.ok()
    }

    /// Ends the streams on which clients only listen. Requests in flight go on.
    pub(crate) fn end_listening(&self) {
        self.sessions.end_listening();
    }

    /// Ends all sessions and their calls.
    pub(crate) fn end(&self) {
        self.sessions.end_all();
    }

    /// Ends the sessions whose tokens were revoked.
    pub(crate) fn end_revoked(&self) {
        self.sessions.end_revoked();
    }

    /// The number of open sessions.
    pub(crate) fn open_sessions(&self) -> usize {
        self.sessions.len()
    }

    async fn post<B>(&self, visit: Visit<'_>, body: B) -> HttpResponse
    where
        B: Body<Data = Bytes>,
    {
        if let Some(refused) = visit.accepts.refuse_post() {
            return refused;
        }
        match self
            .bodies
            .read(visit.caller.principal.as_ref(), visit.headers, body)
            .await
        {
            Ok(bytes) => self.handle_body(visit, bytes).await,
            Err(error) => error.response(),
        }
    }

    async fn handle_body(&self, visit: Visit<'_>, bytes: Bytes) -> HttpResponse {
        let incoming = parse(&bytes);
        if let Some(replicas) = self.replicas.as_ref().filter(|_| !visit.info.stays_here)
            && let Ok(incoming) = &incoming
        {
            // Boxed, so that requests of a gateway without replicas do not carry its size.
            if let Some(response) = Box::pin(self.forward_message(replicas, visit, incoming, &bytes)).await {
                return response;
            }
        }
        match incoming {
            Ok(Incoming::One(Message::Request(request))) => self.request(visit, request).await,
            Ok(Incoming::One(message)) => match self.session_if_any(visit) {
                Ok(Some(session)) => {
                    receive(&session.0, message);
                    response::empty(StatusCode::ACCEPTED)
                }
                // A modern client has nothing to say outside of requests, but may say it.
                Ok(None) => response::empty(StatusCode::ACCEPTED),
                Err(refusal) => refuse(None, refusal),
            },
            Ok(Incoming::Batch(batch)) => match self.session_for_requests(visit) {
                Ok(session) => batch::answer(session, batch, visit.accepts, visit.wire()).await,
                Err(refusal) => refuse(None, refusal),
            },
            Err(Broken { id, error }) => refuse(id.as_deref(), (StatusCode::BAD_REQUEST, error)),
        }
    }

    async fn request(&self, visit: Visit<'_>, request: Request) -> HttpResponse {
        let id = request.id.clone();
        let outcome = if headers::is_modern(visit.headers, &request) {
            handle_modern(visit, request).await
        } else if &*request.method == method::INITIALIZE {
            self.initialize(visit, request).await
        } else {
            self.handle_legacy(visit, request).await
        };
        outcome.unwrap_or_else(|refusal| refuse(Some(&id), refusal))
    }

    async fn handle_legacy(&self, visit: Visit<'_>, request: Request) -> Result<HttpResponse, Refusal> {
        let session = self.session_for_requests(visit)?;
        let running = visit
            .endpoint
            .start(&session.0.peer, request, visit.wire())
            .map_err(|error| (response::status_of(error.code, false), error))?;
        Ok(answer::answer_legacy(running, session, visit.accepts).await)
    }

    /// Opens a session, unless the endpoint refuses the handshake.
    async fn initialize(&self, visit: Visit<'_>, request: Request) -> Result<HttpResponse, Refusal> {
        let (peer, outbox) = visit.endpoint.open(visit.caller);
        let mut running = visit
            .endpoint
            .start(&peer, request, visit.wire())
            .map_err(|error| (StatusCode::BAD_REQUEST, error))?;
        // A client that has no session yet cannot answer.
        running.mute();
        let answer = loop {
            if let RunStep::Done(answer) = running.next().await {
                break answer;
            }
        };
        let Some(answer) = answer else {
            return Ok(response::empty(StatusCode::ACCEPTED));
        };
        if answer.error_code().is_some() {
            return Ok(response::message(&answer, false));
        }
        let opened = self.sessions.open(visit.endpoint, visit.caller, (peer.clone(), outbox));
        let secret = opened.map_err(not_opened)?;
        let mut sealed = visit.endpoint.seal_session(&peer, &secret.text());
        if let Some(replicas) = &self.replicas {
            // What is too long for the id of the session is kept for it.
            let long = sealed.take_if(|sealed| sealed.len() > MAX_SEALED);
            Box::pin(replicas.note_session(&secret.text(), long)).await;
        }
        sealed = sealed.filter(|sealed| sealed.len() <= MAX_SEALED);
        if let Some(session) = self.sessions.enter(secret, visit.caller, visit.endpoint) {
            session.0.set_sealed(sealed.as_deref());
            session.0.note_own(self.replicas.as_ref().map_or(0, Replicas::lapses));
        }
        let id = SessionId {
            secret,
            sealed: sealed.as_deref(),
        };
        let mut response = answer::single(answer, visit.accepts);
        if let Some(id) = id.header() {
            response.headers_mut().insert(SESSION_ID, id);
        }
        Ok(response)
    }

    fn get(&self, visit: Visit<'_>) -> HttpResponse {
        let session = match self.session_if_any(visit) {
            Ok(Some(session)) => session,
            Ok(None) => return method_not_allowed("POST", "only POST works without a session"),
            Err((status, error)) if visit.headers.contains_key(LAST_EVENT_ID) => {
                return response::lost_problem(status, &format!("{}. {STREAM_GONE}", error.message));
            }
            Err((status, error)) => return problem(status, &error.message),
        };
        if !visit.accepts.events {
            return problem(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        let reader = match visit.headers.get(LAST_EVENT_ID) {
            None => session.0.read_general(),
            Some(last) => {
                let last = last.to_str().ok().and_then(EventId::parse);
                let Some(reader) = last.and_then(|last| session.0.resume(last)) else {
                    let detail = format!("the stream of this Last-Event-ID is no longer kept. {STREAM_GONE}");
                    return response::lost_problem(StatusCode::BAD_REQUEST, &detail);
                };
                reader
            }
        };
        let mut response = response::events(EventBody::new(Box::new(reader)));
        response.body_mut().held_mut().session = Some(session);
        response
    }

    async fn delete(&self, visit: Visit<'_>) -> HttpResponse {
        let Some(id) = visit.headers.get(SESSION_ID) else {
            return method_not_allowed("POST", "only POST works without a session");
        };
        let id = SessionId::parse(id.as_bytes());
        // One that is known only to its client is noted as ended too.
        let session = id.and_then(|id| self.enter(id, visit).ok());
        drop(session);
        if let Some(id) = id.filter(|id| self.sessions.end(id.secret, visit.caller, visit.endpoint)) {
            if let Some(replicas) = &self.replicas
                && let Err(error) = Box::pin(replicas.note_end_of_session(&id.secret.text())).await
            {
                let detail = format!("the session has ended here, and other replicas do not know that: {error}");
                return problem(StatusCode::SERVICE_UNAVAILABLE, &detail);
            }
            response::empty(StatusCode::NO_CONTENT)
        } else {
            problem(StatusCode::NOT_FOUND, NO_SESSION)
        }
    }

    /// The session that a legacy request names.
    fn session_for_requests(&self, visit: Visit<'_>) -> Result<InUse, Refusal> {
        let session = self.session_if_any(visit)?.ok_or_else(|| {
            let message = "the Mcp-Session-Id header is missing; send `initialize` first";
            (StatusCode::BAD_REQUEST, RpcError::new(code::INVALID_REQUEST, message))
        })?;
        match session.0.is_revoked() {
            // It only lasts until its requests in flight are answered.
            true => Err(no_session()),
            false => Ok(session),
        }
    }

    /// The session with this id: one of this process, or one that goes on here as its client describes it.
    fn enter(&self, id: SessionId<'_>, visit: Visit<'_>) -> Result<InUse, Refusal> {
        if let Some(session) = self.sessions.enter(id.secret, visit.caller, visit.endpoint) {
            return match session.0.is_sealed_as(id.sealed) {
                true => Ok(session),
                false => Err(no_session()),
            };
        }
        let sealed = id
            .sealed
            .filter(|_| !self.sessions.is_over(id.secret))
            .ok_or_else(no_session)?;
        self.reopen(id.secret, sealed, id.sealed, visit)
    }

    /// Goes on with a session that was opened elsewhere. `shown` is the sealed part of the id as the client has it.
    fn reopen(&self, secret: SecretId, sealed: &str, shown: Option<&str>, visit: Visit<'_>) -> Result<InUse, Refusal> {
        let opened = visit.endpoint.reopen(visit.caller, &secret.text(), sealed);
        let opened = opened.ok_or_else(no_session)?;
        let session = self.sessions.reopen(secret, visit.endpoint, visit.caller, opened);
        let session = session.map_err(not_opened)?;
        session.0.set_sealed(shown);
        session.0.note_own(self.replicas.as_ref().map_or(0, Replicas::lapses));
        Ok(session)
    }

    fn session_if_any(&self, visit: Visit<'_>) -> Result<Option<InUse>, Refusal> {
        let mut ids = visit.headers.get_all(SESSION_ID).iter();
        let Some(id) = ids.next() else { return Ok(None) };
        let id = SessionId::parse(id.as_bytes()).filter(|_| ids.next().is_none());
        let session = self.enter(id.ok_or_else(no_session)?, visit)?;
        headers::check_version(visit.headers).map_err(|error| (StatusCode::BAD_REQUEST, error))?;
        Ok(Some(session))
    }
}

fn not_opened(why: NotOpened) -> Refusal {
    match why {
        NotOpened::OfOther => no_session(),
        NotOpened::Full => {
            let error = RpcError::new(code::BUSY, "too many sessions are in use; end one or try later");
            (StatusCode::SERVICE_UNAVAILABLE, error)
        }
        NotOpened::NoId => {
            let error = RpcError::new(code::INTERNAL_ERROR, "there are no random numbers for a session id");
            (StatusCode::INTERNAL_SERVER_ERROR, error)
        }
    }
}

async fn handle_modern(visit: Visit<'_>, mut request: Request) -> Result<HttpResponse, Refusal> {
    let mirrored = headers::check(visit.headers, &request).map_err(|error| (StatusCode::BAD_REQUEST, error))?;
    request.mirrored = Some(mirrored);
    let running = visit
        .endpoint
        .start_modern(visit.caller, request, visit.wire())
        .map_err(|error| {
            match response::status_of(error.code, true) {
                // A request that cannot be started is a bad one, also if its error is one of params.
                StatusCode::OK => (StatusCode::BAD_REQUEST, error),
                status => (status, error),
            }
        })?;
    Ok(answer::answer_modern(running, visit.accepts).await)
}

fn no_session() -> Refusal {
    (StatusCode::NOT_FOUND, RpcError::new(code::INVALID_REQUEST, NO_SESSION))
}

const NO_SESSION: &str = "no such session; send `initialize` again";

/// What a client is told that comes back for a stream too late for everything.
const STREAM_GONE: &str = "The request that it answered may have taken effect, so check that before you send it again";
