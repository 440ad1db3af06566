//! HTTP+SSE of 2024-11-05: the client opens an event stream, whose first event names the path for its messages. All responses are
//! sent on the stream, and the connection ends with it.

use std::{
    collections::HashMap,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode, Uri, header::ACCEPT, request::Parts};
use http_body::Body;
use pegboard_base::sync::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    accepts::Accepts,
    body_limit::BodyLimit,
    event_body::{EventBody, EventSource},
    event_frame::{self, EventId},
    response::{self, HttpResponse, method_not_allowed, problem},
    secret_id::SecretId,
};
use crate::{
    door::{Caller, PrincipalQuota, QuotaPermit},
    protocol::{Connection, EarlyEnd, Endpoint, Outgoing, Wire},
};

/// How long a message may wait for space in a connection's queue.
const RECEIVE_TIME: Duration = Duration::from_secs(10);

/// Serves HTTP+SSE for all endpoints of a gateway.
#[derive(Debug)]
pub(crate) struct SseWire {
    bodies: BodyLimit,
    streams: Arc<Streams>,
    places: Arc<PrincipalQuota>,
    /// Cancelled when no new requests are taken.
    closing: CancellationToken,
    /// Cancelled when requests in flight get no more time.
    halted: CancellationToken,
}

/// The open streams.
#[derive(Debug, Default)]
struct Streams(Mutex<HashMap<SecretId, Arc<Stream>>>);

#[derive(Debug)]
struct Stream {
    connection: Connection,
    endpoint: Arc<Endpoint>,
    caller: Caller,
    #[expect(dead_code, reason = "held until the stream is dropped")]
    place: QuotaPermit,
}

impl SseWire {
    pub(crate) fn new(max: usize, bodies: BodyLimit) -> Self {
        Self {
            bodies,
            streams: Arc::default(),
            places: PrincipalQuota::new(max),
            closing: CancellationToken::new(),
            halted: CancellationToken::new(),
        }
    }

    /// Opens a stream. `uri` is that of the stream; messages go to the path next to it.
    pub(crate) fn open(&self, parts: &Parts, uri: &Uri, endpoint: Arc<Endpoint>, caller: Caller) -> HttpResponse {
        if parts.method != Method::GET {
            return method_not_allowed("GET", "open the event stream with GET, or use /mcp");
        }
        if parts.headers.contains_key(ACCEPT) && !Accepts::parse(&parts.headers).events {
            return problem(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        let Ok(id) = SecretId::random() else {
            let detail = "there are no random numbers for a session id";
            return problem(StatusCode::INTERNAL_SERVER_ERROR, detail);
        };
        let Some(place) = self.places.try_acquire(caller.principal.as_ref()) else {
            let detail = "too many streams are open; close one or try later";
            return problem(StatusCode::SERVICE_UNAVAILABLE, detail);
        };
        let (connection, queue) = Connection::open(&endpoint, &caller, Wire::Events);
        let stream = Stream {
            connection,
            endpoint,
            caller,
            place,
        };
        let stream = Arc::new(stream);
        self.streams.0.lock().insert(id, stream.clone());
        let events = Events {
            id,
            queue,
            streams: self.streams.clone(),
            drained: Some(Box::pin(drain_when_closing(
                stream,
                self.closing.clone(),
                self.halted.clone(),
            ))),
        };
        let base = uri.path().trim_end_matches('/').strip_suffix("sse").unwrap_or_default();
        let endpoint = event_frame::endpoint(&format!("{base}messages?session={}", id.text()));
        let events = EventBody::new(Box::new(events)).first(endpoint);
        response::events(events)
    }

    /// Handles a message. Its response is sent on the stream.
    pub(crate) async fn receive<B>(
        &self,
        parts: &Parts,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        body: B,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes>,
    {
        if parts.method != Method::POST {
            return method_not_allowed("POST", "send messages with POST");
        }
        let Some(id) = parts.uri.query().and_then(session_of) else {
            let detail = "the URI names no session; use the one of the stream's `endpoint` event";
            return problem(StatusCode::BAD_REQUEST, detail);
        };
        let id = SecretId::parse(id.as_bytes());
        let stream = id.and_then(|id| self.streams.get(id, endpoint, caller));
        let Some(stream) = stream else {
            return problem(StatusCode::NOT_FOUND, "no such session; open a new stream");
        };
        let bytes = match self.bodies.read(caller.principal.as_ref(), &parts.headers, body).await {
            Ok(bytes) => bytes,
            Err(error) => return error.response(),
        };
        match tokio::time::timeout(RECEIVE_TIME, stream.connection.receive(&bytes)).await {
            Ok(()) => response::empty(StatusCode::ACCEPTED),
            Err(_) => problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "the session's stream is not being read",
            ),
        }
    }

    /// Ends each stream as soon as its requests in flight are answered. New requests are refused.
    pub(crate) fn drain(&self) {
        self.closing.cancel();
    }

    /// Gives requests in flight no more time. Their endpoints must have been halted.
    pub(crate) fn halt(&self) {
        self.halted.cancel();
    }
}

impl Streams {
    /// Finds the stream that this caller opened at this endpoint.
    fn get(&self, id: SecretId, endpoint: &Arc<Endpoint>, caller: &Caller) -> Option<Arc<Stream>> {
        let open = self.0.lock();
        let stream = open.get(&id)?;
        (stream.caller == *caller && Arc::ptr_eq(&stream.endpoint, endpoint)).then(|| stream.clone())
    }
}

/// The events of one stream. Dropping them ends the connection.
struct Events {
    id: SecretId,
    queue: mpsc::Receiver<Outgoing>,
    streams: Arc<Streams>,
    /// Completes when the server stops or the token ends, and all requests are answered; `None` afterwards.
    drained: Option<BoxFuture<'static, ()>>,
}

impl EventSource for Events {
    /// It ends by itself when its requests are answered.
    fn outlives_token(&mut self) -> bool {
        true
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Option<EventId>, Outgoing)>> {
        let message = match self.queue.poll_recv(cx) {
            Poll::Ready(message) => message,
            Poll::Pending => {
                if let Some(drained) = &mut self.drained {
                    ready!(drained.as_mut().poll(cx));
                    self.drained = None;
                }
                // Answers can have come since the queue was polled.
                self.queue.try_recv().ok()
            }
        };
        Poll::Ready(message.map(|message| (None, message)))
    }
}

/// Waits until the server stops or the token ends, and then until the requests of a stream are answered.
async fn drain_when_closing(stream: Arc<Stream>, closing: CancellationToken, halted: CancellationToken) {
    tokio::select! {
        () = closing.cancelled() => {}
        () = stream.connection.drain_after(&stream.caller.revoked) => return,
    }
    let mut drained = pin!(stream.connection.drain(EarlyEnd::Stopping));
    tokio::select! {
        () = &mut drained => return,
        () = halted.cancelled() => stream.connection.halt(),
    }
    drained.await;
}

impl Drop for Events {
    fn drop(&mut self) {
        let removed = self.streams.0.lock().remove(&self.id);
        // Outside the lock, because it cancels calls.
        drop(removed);
    }
}

/// The one session that a query names.
fn session_of(query: &str) -> Option<&str> {
    let mut ids = query.split('&').filter_map(|pair| pair.strip_prefix("session="));
    let id = ids.next();
    id.filter(|_| ids.next().is_none())
}
