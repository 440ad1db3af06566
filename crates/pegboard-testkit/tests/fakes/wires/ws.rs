//! WebSocket.

use futures_util::{SinkExt, StreamExt};
use pegboard_testkit::{FakeServer, Fault, NetHandle, Tool};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::wires::lines::{LIMIT, call};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(server: &NetHandle) -> Socket {
    let mut request = server.url().into_client_request().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", "mcp".parse().unwrap());
    let (socket, response) = connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
    socket
}

async fn next(socket: &mut Socket) -> Option<Message> {
    timeout(LIMIT, socket.next()).await.expect("a frame in time")?.ok()
}

#[tokio::test]
async fn a_message_is_a_text_frame() {
    let server = FakeServer::new("ws")
        .tool(Tool::new("t").answers_text("hi"))
        .serve_ws()
        .await
        .unwrap();
    let mut socket = connect(&server).await;
    socket
        .send(Message::text(call(1, "t", json!({})).to_string()))
        .await
        .unwrap();
    let Some(Message::Text(text)) = next(&mut socket).await else {
        panic!("no text frame")
    };
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["result"]["content"][0]["text"],
        "hi"
    );
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_dying_server_ends_the_connection() {
    let fake = FakeServer::new("ws")
        .tool(Tool::new("t"))
        .fault(Fault::DiesBeforeExecuting { code: 1 });
    let server = fake.serve_ws().await.unwrap();
    let mut socket = connect(&server).await;
    socket
        .send(Message::text(call(1, "t", json!({})).to_string()))
        .await
        .unwrap();
    assert!(next(&mut socket).await.is_none());
    assert!(connect_async(server.url()).await.is_err());
}
