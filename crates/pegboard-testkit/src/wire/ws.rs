//! WebSocket: subprotocol `mcp`, one message per text frame.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{
        State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    http::HeaderMap,
    response::Response,
    routing::get,
};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    http::begin,
    peer::{Peer, header_map},
};
use crate::{
    log::Received,
    play::Stage,
    server::{Frame, Server},
};

/// The capacity of a connection's output queue.
const QUEUE: usize = 64;

pub(crate) fn router(server: &Arc<Server>, dead: &CancellationToken) -> Router {
    Router::new()
        .route("/mcp", get(upgrade))
        .with_state((Arc::clone(server), dead.clone()))
}

async fn upgrade(
    State((server, dead)): State<(Arc<Server>, CancellationToken)>,
    headers: HeaderMap,
    socket: WebSocketUpgrade,
) -> Response {
    if let Err(response) = begin(&server, "GET", &headers) {
        return *response;
    }
    socket
        .protocols(["mcp"])
        .max_message_size(usize::MAX)
        .max_frame_size(usize::MAX)
        .on_upgrade(move |socket| {
            let (frames, outgoing) = mpsc::channel(QUEUE);
            let peer = Peer::new(Stage::new(server, frames, dead.clone()));
            let headers = header_map(&headers);
            serve(socket, (peer, headers), outgoing, dead)
        })
}

/// A client, and the headers of its upgrade request.
type Client = (Peer, BTreeMap<String, String>);

async fn serve(socket: WebSocket, client: Client, outgoing: mpsc::Receiver<Frame>, dead: CancellationToken) {
    let (sink, stream) = socket.split();
    // The connection ends with either direction.
    let both = async {
        tokio::select! {
            () = read(&client, stream) => {}
            () = write(outgoing, sink) => {}
        }
    };
    let _ = dead.run_until_cancelled(both).await;
    client.0.end();
}

async fn read((peer, headers): &Client, mut stream: SplitStream<WebSocket>) {
    if !peer.open().await {
        return peer.stage.frames.closed().await;
    }
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Text(text) => drop(peer.receive(text.as_bytes(), headers.clone())),
            Message::Binary(bytes) => drop(peer.receive(&bytes, headers.clone())),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => break,
        }
        if !*peer.stage.reading.borrow() {
            return peer.stage.frames.closed().await;
        }
    }
    peer.stage.server.receive(Received {
        method: "$eof".into(),
        ..Received::default()
    });
}

async fn write(mut outgoing: mpsc::Receiver<Frame>, mut sink: SplitSink<WebSocket, Message>) {
    while let Some(frame) = outgoing.recv().await {
        let sent = match frame {
            Frame::Message { text, .. } | Frame::Raw(text) => sink.send(message(&text)).await,
            Frame::Close => {
                // The client may have disconnected already.
                let _ = sink.close().await;
                return;
            }
            Frame::Reset => return,
            Frame::Mark(_) => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A text frame, or a binary frame for bytes that are not UTF-8.
fn message(text: &[u8]) -> Message {
    match std::str::from_utf8(text) {
        Ok(text) => Message::Text(text.into()),
        Err(_) => Message::Binary(text.to_vec().into()),
    }
}
