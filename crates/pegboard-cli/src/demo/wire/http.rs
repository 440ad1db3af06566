//! Streamable HTTP at `/mcp`, in both eras. A modern request needs no session; a legacy one belongs to a session that
//! `initialize` opens. This file tells the two apart; [`exchange`] runs them.

pub(super) mod body;
mod exchange;
mod headers;
mod session;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::listen::{self, KEEP_ALIVE};
use crate::demo::connection::cancelled_id;
use crate::demo::message::{self, Broken, Fault, Incoming, Message, Request};
use crate::demo::protocol::{Demo, Peer, version_of};
use crate::demo::version::Version;
use exchange::{Accepted, Exchange, Refusal};
use headers::Accepts;
use session::{Session, Sessions};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

#[derive(Debug)]
struct Server {
    demo: Arc<Demo>,
    sessions: Sessions,
    stop: CancellationToken,
}

pub(in crate::demo) async fn serve(demo: Arc<Demo>, listen: SocketAddr, stop: CancellationToken) -> anyhow::Result<()> {
    let server = Arc::new(Server {
        demo,
        sessions: Sessions::new(stop.clone()),
        stop: stop.clone(),
    });
    let router = Router::new()
        .route("/mcp", get(open_stream).post(post).delete(end_session))
        .with_state(server);
    listen::serve(listen, "http", "/mcp", router, &stop).await
}

async fn post(State(server): State<Arc<Server>>, headers: HeaderMap, body: Body) -> Response {
    let accepts = Accepts::of(&headers);
    if !accepts.json && !accepts.events {
        return (
            StatusCode::NOT_ACCEPTABLE,
            "accept application/json and text/event-stream\n",
        )
            .into_response();
    }
    let bytes = match body::read(&headers, body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    match message::parse(&bytes) {
        Ok(Incoming::One(Message::Request(request))) => server.request(request, &headers, accepts).await,
        Ok(Incoming::One(Message::Notification { method, params })) => match server.session_if_any(&headers) {
            Ok(session) => {
                if let (Some(session), Some(id)) = (session, cancelled_id(&method, &params)) {
                    session.in_flight.cancel(&id);
                }
                StatusCode::ACCEPTED.into_response()
            }
            Err((status, fault)) => refuse(status, message::answer(None, &Err(fault))),
        },
        Ok(Incoming::One(Message::Response)) => StatusCode::ACCEPTED.into_response(),
        Ok(Incoming::Batch(batch)) => server.batch(batch, &headers).await,
        Err(Broken { id, fault }) => refuse(StatusCode::BAD_REQUEST, message::answer(id.as_ref(), &Err(fault))),
    }
}

impl Server {
    async fn request(&self, request: Request, headers: &HeaderMap, accepts: Accepts) -> Response {
        let id = request.id.clone();
        let outcome = if request.method == "initialize" {
            self.initialize(request).await
        } else if headers::is_modern(headers, &request) {
            self.modern(request, headers, accepts).await
        } else {
            self.legacy(request, headers, accepts).await
        };
        outcome.unwrap_or_else(|(status, fault)| refuse(status, message::answer(Some(&id), &Err(fault))))
    }

    async fn modern(&self, request: Request, headers: &HeaderMap, accepts: Accepts) -> Result<Response, Refusal> {
        let bad = |fault| (StatusCode::BAD_REQUEST, fault);
        headers::check(headers, &request).map_err(bad)?;
        let peer = Arc::new(Session::stateless(&self.stop));
        let version = version_of(&request, &peer.peer).map_err(bad)?;
        let accepted = Accepted {
            demo: self.demo.clone(),
            version,
            request,
            session: peer,
        };
        Exchange::start(accepted).map_err(bad)?.respond(accepts).await
    }

    async fn legacy(&self, request: Request, headers: &HeaderMap, accepts: Accepts) -> Result<Response, Refusal> {
        let session = self.session(headers)?;
        let version = version_of(&request, &session.peer).map_err(|fault| (StatusCode::BAD_REQUEST, fault))?;
        let accepted = Accepted {
            demo: self.demo.clone(),
            version,
            request,
            session,
        };
        Exchange::start(accepted)
            .map_err(|fault| (StatusCode::OK, fault))?
            .respond(accepts)
            .await
    }

    async fn initialize(&self, request: Request) -> Result<Response, Refusal> {
        let version = version_of(&request, &Peer::default()).map_err(|fault| (StatusCode::BAD_REQUEST, fault))?;
        let (id, session) = self
            .sessions
            .open()
            .map_err(|fault| (StatusCode::SERVICE_UNAVAILABLE, fault))?;
        session.peer.settle(version);
        let accepted = Accepted {
            demo: self.demo.clone(),
            version,
            request,
            session,
        };
        let only_json = Accepts {
            json: true,
            events: false,
        };
        let mut response = Exchange::start(accepted)
            .map_err(|fault| (StatusCode::OK, fault))?
            .respond(only_json)
            .await?;
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION_ID, value);
        }
        Ok(response)
    }

    /// Handles a batch, which only 2025-03-26 has. Its responses are sent together, without notifications.
    async fn batch(&self, batch: Vec<Result<Message, Broken>>, headers: &HeaderMap) -> Response {
        let refuse_whole = |(status, fault)| refuse(status, message::answer(None, &Err(fault)));
        let session = match self.session(headers) {
            Ok(session) if session.peer.version() == Some(Version::V2025_03_26) => session,
            Ok(_) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "this protocol version has no batches");
                return refuse_whole((StatusCode::BAD_REQUEST, fault));
            }
            Err(refusal) => return refuse_whole(refusal),
        };
        let mut answers = Vec::new();
        for item in batch {
            match item {
                Ok(Message::Request(request)) => {
                    let id = request.id.clone();
                    let outcome = self.one_of_batch(request, &session).await;
                    answers.extend(outcome.map(|outcome| message::answer(Some(&id), &outcome)));
                }
                Ok(Message::Notification { method, params }) => {
                    if let Some(id) = cancelled_id(&method, &params) {
                        session.in_flight.cancel(&id);
                    }
                }
                Ok(Message::Response) => {}
                Err(Broken { id, fault }) => answers.push(message::answer(id.as_ref(), &Err(fault))),
            }
        }
        if answers.is_empty() {
            StatusCode::ACCEPTED.into_response()
        } else {
            Json(answers).into_response()
        }
    }

    async fn one_of_batch(&self, request: Request, session: &Arc<Session>) -> Option<Result<Value, Fault>> {
        let version = match version_of(&request, &session.peer) {
            Ok(version) => version,
            Err(fault) => return Some(Err(fault)),
        };
        let accepted = Accepted {
            demo: self.demo.clone(),
            version,
            request,
            session: session.clone(),
        };
        match Exchange::start(accepted) {
            Ok(exchange) => exchange.outcome().await,
            Err(fault) => Some(Err(fault)),
        }
    }

    /// The session that a legacy request names.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
        let Some(id) = headers.get(SESSION_ID) else {
            let fault = Fault::new(
                Fault::INVALID_REQUEST,
                "the Mcp-Session-Id header is missing; send `initialize` first",
            );
            return Err((StatusCode::BAD_REQUEST, fault));
        };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id));
        session.ok_or_else(|| {
            (
                StatusCode::NOT_FOUND,
                Fault::new(Fault::INVALID_REQUEST, "no such session; send `initialize` again"),
            )
        })
    }

    fn session_if_any(&self, headers: &HeaderMap) -> Result<Option<Arc<Session>>, Refusal> {
        if headers.contains_key(SESSION_ID) {
            self.session(headers).map(Some)
        } else {
            Ok(None)
        }
    }
}

/// The GET stream of a session. The demo server sends no messages of its own, so it carries only keep-alive comments.
async fn open_stream(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    let Ok(Some(session)) = server.session_if_any(&headers) else {
        return without_session(&headers);
    };
    if !Accepts::of(&headers).events {
        return (StatusCode::NOT_ACCEPTABLE, "accept text/event-stream\n").into_response();
    }
    let Some(listening) = session.listen() else {
        return (StatusCode::CONFLICT, "this session already has a stream\n").into_response();
    };
    let until = session.stop.clone().cancelled_owned();
    let quiet = stream::pending::<Result<Event, std::convert::Infallible>>().take_until(until);
    let quiet = quiet.map(move |event| {
        // Moves the permit into the stream.
        let _ = &listening;
        event
    });
    Sse::new(quiet)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

async fn end_session(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
    match id {
        Some(id) if server.sessions.end(id) => StatusCode::NO_CONTENT.into_response(),
        _ => without_session(&headers),
    }
}

/// The response to GET or DELETE without a valid session. The modern era has only POST.
fn without_session(headers: &HeaderMap) -> Response {
    if headers.contains_key(SESSION_ID) {
        return (StatusCode::NOT_FOUND, "no such session; send `initialize` again\n").into_response();
    }
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [("allow", "POST")],
        "only POST works without a session\n",
    )
        .into_response()
}

fn refuse(status: StatusCode, answer: Value) -> Response {
    (status, Json(answer)).into_response()
}
