//! A WebSocket server that exposes pings, pongs and close frames.

use futures_util::{SinkExt, StreamExt};
use pegboard::Kind;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_tungstenite::{
    accept_async,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::{fixtures::*, support::*};

/// Answers like a healthy legacy server and writes the messages of `act` after a call. Reports every message that it receives.
async fn serve(act: fn(&Value) -> Vec<Message>) -> (String, mpsc::Receiver<Message>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/mcp", listener.local_addr().unwrap());
    let (tell, heard) = mpsc::channel(100);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut socket) = accept_async(stream).await else {
                continue;
            };
            while let Some(Ok(message)) = socket.next().await {
                let _ = tell.send(message.clone()).await;
                let Ok(text) = message.into_text() else { continue };
                let message: Value = serde_json::from_str(&text).unwrap_or_default();
                let answers = match message["method"].as_str() {
                    Some("initialize") => vec![result(
                        &message,
                        &json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}}),
                    )],
                    Some("tools/list") => {
                        let tool = json!({"name": "hello", "inputSchema": {"type": "object"}});
                        vec![result(&message, &json!({"tools": [tool]}))]
                    }
                    Some("tools/call") => act(&message),
                    _ => Vec::new(),
                };
                for answer in answers {
                    let _ = socket.send(answer).await;
                }
            }
        }
    });
    (url, heard)
}

fn result(request: &Value, result: &Value) -> Message {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    Message::text(answer.to_string())
}

fn hi(request: &Value) -> Message {
    result(request, &json!({"content": [{"type": "text", "text": "hi"}]}))
}

async fn heard(from: &mut mpsc::Receiver<Message>, wanted: impl Fn(&Message) -> bool) -> Message {
    let waiting = async {
        loop {
            let message = from.recv().await.expect("the server lives");
            if wanted(&message) {
                return message;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("heard in time")
}

#[tokio::test]
async fn a_shutdown_says_goodbye_and_does_not_wait_for_long() {
    let (url, mut from) = serve(|request| vec![hi(request)]).await;
    let board = board(ws(&url));
    assert_greets(&board.toolset(), "before").await;
    tokio::time::timeout(PATIENCE, board.shutdown()).await.expect("bounded");
    let Message::Close(Some(frame)) = heard(&mut from, Message::is_close).await else {
        panic!("a goodbye without a code");
    };
    assert_eq!(frame.code, CloseCode::Normal);
}

#[tokio::test]
async fn a_ping_is_answered_and_binary_messages_are_read() {
    let (url, mut from) = serve(|request| {
        let text = hi(request).into_data();
        vec![
            Message::Ping(b"there?".as_slice().into()),
            Message::Pong(Default::default()),
            Message::Binary(text),
        ]
    })
    .await;
    let board = board(ws(&url));
    assert_greets(&board.toolset(), "with a ping before").await;
    let pong = heard(&mut from, Message::is_pong).await;
    assert_eq!(pong.into_data(), b"there?".as_slice());
}

#[tokio::test]
async fn the_servers_goodbye_loses_the_call_and_says_why() {
    let (url, _from) = serve(|_| {
        vec![Message::Close(Some(CloseFrame {
            code: CloseCode::Restart,
            reason: "back in a minute".into(),
        }))]
    })
    .await;
    let board = board(ws(&url));
    let tools = board.toolset();
    let text = lost(&hello(&tools).await, Kind::Transport);
    assert!(text.contains("back in a minute") && text.contains("1012"), "{text}");
    until_lost(&board).await;
    // The server comes back, and the board reconnects.
    assert!(tools.list(PATIENCE).await.unavailable.is_empty());
}
