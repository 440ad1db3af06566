//! WebSocket with the subprotocol `mcp`: one message per text frame.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::extract::{
    FromRequestParts,
    ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream::SplitSink};
use http::{
    HeaderMap, StatusCode,
    header::{SEC_WEBSOCKET_PROTOCOL, UPGRADE},
    request::Parts,
};
use pegboard::Principal;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};

use super::{
    body_limit::BodyLimit,
    open_connections::OpenConnections,
    response::{HttpResponse, problem},
    response_body::ResponseBody,
};
use crate::{
    door::{Caller, PrincipalQuota, QuotaPermit},
    protocol::{Connection, EarlyEnd, Endpoint, Outgoing, Wire},
};

/// The timeout of writing one frame.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// How long a client may take to answer the close frame.
const CLOSE_TIME: Duration = Duration::from_millis(500);

/// The interval of pings. A client that sends nothing for [`MISSED_PINGS`] of them is gone.
const PING_TIME: Duration = Duration::from_secs(30);
const MISSED_PINGS: u32 = 3;

/// Serves WebSocket for all endpoints of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct WebSocketWire {
    places: Arc<PrincipalQuota>,
    pub(crate) connections: OpenConnections,
    max_message: usize,
    messages: BodyLimit,
}

/// Returns `true` if a request is a WebSocket handshake.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

impl WebSocketWire {
    /// Allows `max` open sockets, and messages up to `max_message` bytes, which share `messages` with the bodies of requests.
    pub(crate) fn new(max: usize, max_message: usize, messages: BodyLimit) -> Self {
        Self {
            places: PrincipalQuota::new(max),
            connections: OpenConnections::default(),
            max_message,
            messages,
        }
    }

    /// Answers a handshake.
    pub(crate) async fn upgrade(&self, parts: &mut Parts, endpoint: Arc<Endpoint>, caller: Caller) -> HttpResponse {
        if !offers_mcp(&parts.headers) {
            return problem(StatusCode::BAD_REQUEST, "offer the subprotocol `mcp`");
        }
        let Some(place) = self.places.try_acquire(caller.principal.as_ref()) else {
            let detail = "too many sockets are open; close one or try later";
            return problem(StatusCode::SERVICE_UNAVAILABLE, detail);
        };
        let upgrade = match WebSocketUpgrade::from_request_parts(parts, &()).await {
            Ok(upgrade) => upgrade,
            Err(rejection) => return problem(rejection.status(), &rejection.body_text()),
        };
        let wire = self.clone();
        // Tracked before the upgrade is confirmed, so that shutdown waits for every socket.
        let open = self.connections.tasks.token();
        let response = upgrade
            .protocols(["mcp"])
            .max_message_size(self.max_message)
            .max_frame_size(self.max_message)
            .on_upgrade(move |socket| async move {
                wire.serve(socket, &endpoint, caller, place).await;
                drop(open);
            });
        response.map(ResponseBody::other)
    }

    async fn serve(self, socket: WebSocket, endpoint: &Arc<Endpoint>, caller: Caller, place: QuotaPermit) {
        let (mut sink, mut source) = socket.split();
        let (connection, mut queue) = Connection::open(endpoint, &caller, Wire::WebSocket);
        let (revoked, principal) = (caller.revoked, caller.principal);
        let seen = AtomicBool::new(true);
        let drained = async {
            self.connections.closing.cancelled().await;
            let mut drained = pin!(connection.drain(EarlyEnd::Stopping));
            tokio::select! {
                () = &mut drained => return,
                () = self.connections.halted.cancelled() => connection.halt(),
            }
            drained.await;
        };
        let mut pings = tokio::time::interval_at(Instant::now() + PING_TIME, PING_TIME);
        // Concurrently: a reader that waits for the queue must not block the writer.
        let read = async {
            while let Some(frame) = source.next().await {
                seen.store(true, Ordering::Relaxed);
                let frame = match frame {
                    Ok(frame) => frame,
                    Err(error) => return goodbye(error),
                };
                match frame {
                    Message::Text(text) => self.receive(&connection, principal.as_ref(), text.into()).await,
                    Message::Binary(_) => return Some((close_code::UNSUPPORTED, "messages are text frames")),
                    Message::Close(_) => return None,
                    Message::Ping(_) | Message::Pong(_) => {}
                }
            }
            None
        };
        let write = async {
            let mut missed = 0;
            let mut over = pin!(async {
                tokio::select! {
                    () = connection.drain_after(&revoked) => (close_code::POLICY, "the token is no longer valid"),
                    () = drained => (close_code::AWAY, "the server stops"),
                }
            });
            loop {
                let frame = tokio::select! {
                    biased;
                    message = queue.recv() => match message.and_then(frame) {
                        Some(frame) => frame,
                        None => return None,
                    },
                    goodbye = &mut over => {
                        // Answers can have come since the queue was polled.
                        while let Some(frame) = queue.try_recv().ok().and_then(frame) {
                            if !send(&mut sink, frame).await {
                                return None;
                            }
                        }
                        return Some(goodbye);
                    }
                    _ = pings.tick() => {
                        missed = if seen.swap(false, Ordering::Relaxed) { 0 } else { missed + 1 };
                        if missed >= MISSED_PINGS {
                            return None;
                        }
                        Message::Ping(Bytes::new())
                    }
                };
                if !send(&mut sink, frame).await {
                    return None;
                }
            }
        };
        let late = async {
            self.connections.halted.cancelled().await;
            tokio::time::sleep(CLOSE_TIME).await;
        };
        let goodbye = tokio::select! {
            biased;
            goodbye = read => goodbye,
            goodbye = write => goodbye,
            // The client does not read.
            () = late => return,
        };
        drop(connection);
        if let Some((code, reason)) = goodbye {
            let reason = reason.into();
            send(&mut sink, Message::Close(Some(CloseFrame { code, reason }))).await;
            // Pending input is read first. Closing with unread data would send a reset, which can discard the close frame.
            let _ = tokio::time::timeout(CLOSE_TIME, async { while let Some(Ok(_)) = source.next().await {} }).await;
        }
        drop(place);
    }
}

impl WebSocketWire {
    async fn receive(&self, connection: &Connection, principal: Option<&Principal>, message: Bytes) {
        match self.messages.hold(principal, message.clone()) {
            Ok(message) => connection.receive(&message).await,
            Err(error) => connection.refuse_busy(&message, &error.to_string()).await,
        }
    }
}

/// Returns `true` if the client offers `mcp`, or no subprotocol at all: many simple clients cannot offer one.
fn offers_mcp(headers: &HeaderMap) -> bool {
    let mut offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().peekable();
    offers.peek().is_none()
        || offers
            .filter_map(|offer| offer.to_str().ok())
            .flat_map(|offer| offer.split(','))
            .any(|name| name.trim() == "mcp")
}

/// What the client is told of an error in what it sent; `None` if the connection is gone.
fn goodbye(error: axum::Error) -> Option<(u16, &'static str)> {
    match error.into_inner().downcast_ref::<tungstenite::Error>()? {
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        tungstenite::Error::Protocol(_) => Some((close_code::PROTOCOL, "what was sent is no WebSocket frame")),
        tungstenite::Error::Utf8(_) => Some((close_code::INVALID, "a text frame is not UTF-8")),
        tungstenite::Error::Capacity(_) => Some((close_code::SIZE, "the message is too long")),
        _ => None,
    }
}

/// The frame of a message; `None` if it is no UTF-8, which JSON always is.
fn frame(message: Outgoing) -> Option<Message> {
    message.into_bytes().try_into().ok().map(Message::Text)
}

/// Sends a frame. Returns `false` if that fails or times out.
async fn send(sink: &mut SplitSink<WebSocket, Message>, frame: Message) -> bool {
    matches!(tokio::time::timeout(WRITE_TIME, sink.send(frame)).await, Ok(Ok(())))
}
