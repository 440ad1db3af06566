//! HTTP+SSE of 2024-11-05: the client opens an event stream at `/sse`, whose first event names the endpoint for POST.
//! All responses are sent on the stream.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::http::body;
use super::listen::{self, KEEP_ALIVE};
use super::secret_id::secret_id;
use crate::demo::connection::Connection;
use crate::demo::protocol::Demo;

/// The limit on open streams: far more than local clients need.
const MAX_SESSIONS: usize = 256;

/// How long a message may wait for space in a session's queue.
const RECEIVE_TIME: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
struct Sessions {
    demo: Arc<Demo>,
    open: Arc<Mutex<HashMap<String, Arc<Connection>>>>,
    stop: CancellationToken,
}

pub(in crate::demo) async fn serve(demo: Arc<Demo>, listen: SocketAddr, stop: CancellationToken) -> anyhow::Result<()> {
    let sessions = Sessions {
        demo,
        open: Arc::default(),
        stop: stop.clone(),
    };
    let router = Router::new()
        .route("/sse", get(open))
        .route("/messages", post(receive))
        .with_state(sessions);
    listen::serve(listen, "http", "/sse", router, &stop).await
}

async fn open(State(sessions): State<Sessions>) -> Response {
    let Ok(id) = secret_id() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "no random numbers for a session id\n").into_response();
    };
    let stop = sessions.stop.clone();
    let Some((session, queue)) = sessions.register(id) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open\n").into_response();
    };
    let endpoint = Event::default()
        .event("endpoint")
        .data(format!("/messages?session={}", session.id));
    let events = stream::iter([Ok(endpoint)])
        .chain(messages(session, queue))
        .take_until(stop.cancelled_owned());
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

/// The event stream. It owns the session, which ends when the client closes the stream.
fn messages(session: Session, queue: mpsc::Receiver<String>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((session, queue), |(session, mut queue)| async {
        let message = queue.recv().await?;
        Some((Ok(Event::default().event("message").data(message)), (session, queue)))
    })
}

#[derive(Debug, Deserialize)]
struct Address {
    session: String,
}

async fn receive(
    State(sessions): State<Sessions>,
    Query(address): Query<Address>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(connection) = sessions.open().get(&address.session).cloned() else {
        return (StatusCode::NOT_FOUND, "no such session; open a new one at /sse\n").into_response();
    };
    let bytes = match body::read(&headers, body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    match tokio::time::timeout(RECEIVE_TIME, connection.receive(&bytes)).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the session's stream is not being read\n",
        )
            .into_response(),
    }
}

/// An open session. Dropping it removes it from the list, which cancels its requests in flight.
struct Session {
    id: String,
    sessions: Sessions,
}

impl Sessions {
    fn register(self, id: String) -> Option<(Session, mpsc::Receiver<String>)> {
        let (connection, queue) = Connection::open(self.demo.clone(), &self.stop);
        let mut open = self.open();
        if open.len() >= MAX_SESSIONS {
            return None;
        }
        open.insert(id.clone(), Arc::new(connection));
        drop(open);
        Some((Session { id, sessions: self }, queue))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.sessions.open().remove(&self.id);
    }
}
