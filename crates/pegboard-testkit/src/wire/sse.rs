//! The transport of 2024-11-05: GET opens the event stream, whose first event names the endpoint for POST. Responses are
//! sent on the stream.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    http::{begin, refuse_early},
    peer::{Peer, header_map},
};
use crate::{
    fault::Fault,
    play::Stage,
    server::{Frame, Server, lock},
};

/// The capacity of a stream's output queue.
const QUEUE: usize = 64;

pub(crate) fn router(server: &Arc<Server>, dead: &CancellationToken) -> Router {
    let app = App {
        server: Arc::clone(server),
        dead: dead.clone(),
        peers: Arc::default(),
        next: Arc::default(),
    };
    Router::new()
        .route("/sse", get(take_get))
        .route("/messages", post(take_post))
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

#[derive(Debug, Clone)]
struct App {
    server: Arc<Server>,
    dead: CancellationToken,
    peers: Arc<Mutex<HashMap<String, Peer>>>,
    next: Arc<AtomicU64>,
}

async fn take_get(State(app): State<App>, headers: HeaderMap) -> Response {
    let (_, faults) = match begin(&app.server, "GET", &headers) {
        Ok(begun) => begun,
        Err(response) => return *response,
    };
    let session = format!("sse-{}", app.next.fetch_add(1, Ordering::Relaxed));
    let (frames, outgoing) = mpsc::channel(QUEUE);
    let peer = Peer::new(Stage::new(Arc::clone(&app.server), frames, app.dead.clone()));
    lock(&app.peers).insert(session.clone(), peer.clone());
    let mut endpoint = Some(format!("/messages?session={session}"));
    for fault in &faults {
        match fault {
            Fault::NoEndpoint => endpoint = None,
            Fault::Endpoint { url } => endpoint = Some(url.replace("SESSION", &session)),
            _ => {}
        }
    }
    let hello = endpoint.map(|url| Ok(Bytes::from(format!("event: endpoint\ndata: {url}\n\n"))));
    let leaves = Departure {
        peers: Arc::clone(&app.peers),
        session,
    };
    let events = stream::iter(hello).chain(stream::unfold((outgoing, leaves), next_event));
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// Aborts the requests of a client when its stream is dropped.
struct Departure {
    peers: Arc<Mutex<HashMap<String, Peer>>>,
    session: String,
}

impl Drop for Departure {
    fn drop(&mut self) {
        if let Some(peer) = lock(&self.peers).remove(&self.session) {
            peer.end();
        }
    }
}

type Outgoing = (mpsc::Receiver<Frame>, Departure);

async fn next_event((mut outgoing, leaves): Outgoing) -> Option<(std::io::Result<Bytes>, Outgoing)> {
    loop {
        let piece = match outgoing.recv().await? {
            Frame::Message { text, .. } => Ok([b"event: message\ndata: ", &text[..], b"\n\n"].concat().into()),
            Frame::Raw(bytes) => Ok(bytes),
            Frame::Reset => Err(std::io::ErrorKind::ConnectionReset.into()),
            Frame::Close => return None,
            Frame::Mark(_) => continue,
        };
        return Some((piece, (outgoing, leaves)));
    }
}

async fn take_post(
    State(app): State<App>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let script = app.server.script();
    let peer = query
        .get("session")
        .and_then(|session| lock(&app.peers).get(session).cloned());
    let Some(peer) = peer else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Some(response) = refuse_early(&script, &headers, &[]) {
        return response;
    }
    let faults = peer.receive(&body, header_map(&headers));
    refuse_early(&script, &headers, &faults).unwrap_or_else(|| StatusCode::ACCEPTED.into_response())
}
