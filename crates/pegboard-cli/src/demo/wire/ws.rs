//! WebSocket at `/`, subprotocol `mcp`: one message per text frame.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listen;
use crate::demo::connection::Connection;
use crate::demo::message::MAX_MESSAGE;
use crate::demo::protocol::Demo;

/// The limit on open sockets: far more than local clients need.
const MAX_SOCKETS: usize = 256;

/// The timeout of writing one frame.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// How long a client may take to answer the close frame.
const CLOSE_TIME: Duration = Duration::from_millis(500);

/// How long sockets may take to close at shutdown.
const SHUTDOWN_TIME: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
struct Sockets {
    demo: Arc<Demo>,
    permits: Arc<Semaphore>,
    open: TaskTracker,
    stop: CancellationToken,
}

pub(in crate::demo) async fn serve(demo: Arc<Demo>, listen: SocketAddr, stop: CancellationToken) -> anyhow::Result<()> {
    let permits = Arc::new(Semaphore::new(MAX_SOCKETS));
    let sockets = Sockets {
        demo,
        permits,
        open: TaskTracker::new(),
        stop: stop.clone(),
    };
    let router = Router::new().route("/", get(upgrade)).with_state(sockets.clone());
    listen::serve(listen, "ws", "/", router, &stop).await?;
    sockets.open.close();
    let _ = tokio::time::timeout(SHUTDOWN_TIME, sockets.open.wait()).await;
    Ok(())
}

async fn upgrade(State(sockets): State<Sockets>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    if !offers_mcp(&headers) {
        return (StatusCode::BAD_REQUEST, "offer the subprotocol `mcp`\n").into_response();
    }
    let Ok(permit) = sockets.permits.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many sockets are open\n").into_response();
    };
    // Tracked before the upgrade is confirmed, so that shutdown waits for every socket.
    let open = sockets.open.token();
    upgrade
        .protocols(["mcp"])
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(move |socket| async move {
            sockets.serve(socket, permit).await;
            drop(open);
        })
}

/// Returns `true` if the client offers `mcp`, or no subprotocol at all: many simple clients cannot offer one.
fn offers_mcp(headers: &HeaderMap) -> bool {
    let mut offers = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().peekable();
    offers.peek().is_none()
        || offers
            .filter_map(|offer| offer.to_str().ok())
            .flat_map(|offer| offer.split(','))
            .any(|name| name.trim() == "mcp")
}

impl Sockets {
    async fn serve(self, socket: WebSocket, permit: OwnedSemaphorePermit) {
        let (mut sink, mut source) = socket.split();
        let (connection, mut queue) = Connection::open(self.demo, &self.stop);
        // Concurrently: a reader that waits for the queue must not block the writer.
        let read = async {
            while let Some(Ok(frame)) = source.next().await {
                match frame {
                    Message::Text(text) => connection.receive(text.as_bytes()).await,
                    Message::Binary(_) => return Some((close_code::UNSUPPORTED, "messages are text frames")),
                    Message::Close(_) => return None,
                    Message::Ping(_) | Message::Pong(_) => {}
                }
            }
            None
        };
        let write = async {
            while let Some(message) = queue.recv().await {
                if !send(&mut sink, Message::text(message)).await {
                    return;
                }
            }
        };
        let goodbye = tokio::select! {
            biased;
            () = self.stop.cancelled() => Some((close_code::AWAY, "the server stops")),
            goodbye = read => goodbye,
            () = write => None,
        };
        drop(connection);
        if let Some((code, reason)) = goodbye {
            send(
                &mut sink,
                Message::Close(Some(CloseFrame {
                    code,
                    reason: reason.into(),
                })),
            )
            .await;
            // Pending input is read first. Closing with unread data would send a reset, which can discard the close frame.
            let _ = tokio::time::timeout(CLOSE_TIME, async { while let Some(Ok(_)) = source.next().await {} }).await;
        }
        drop(permit);
    }
}

/// Sends a frame. Returns `false` if that fails or times out.
async fn send(sink: &mut SplitSink<WebSocket, Message>, frame: Message) -> bool {
    matches!(tokio::time::timeout(WRITE_TIME, sink.send(frame)).await, Ok(Ok(())))
}
