//! What clients are told when the gateway stops before their requests are done.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::frame::coding::CloseCode},
};

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers, request, text_of},
    service::{Running, start, start_with},
    websocket::{connect, next},
};

/// A stream of HTTP+SSE, with the path for its messages.
async fn sse(server: &Running) -> (Http, String) {
    let (mut stream, mut http) = (Http::connect(server.address).await, Http::connect(server.address).await);
    stream.ask("GET", "/sse", &[], "").await;
    let path = stream.event().await.unwrap().data;
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    http.ask("POST", &path, &[JSON], &request(0, "initialize", &params))
        .await;
    stream.event().await.unwrap();
    (stream, path)
}

/// A WebSocket and a stream of HTTP+SSE, each with a call that waits.
async fn with_calls(server: &Running) -> (WebSocketStream<TcpStream>, Http) {
    let mut socket = connect(server).await;
    socket.send(Message::text(modern_call(1, "wait"))).await.unwrap();
    let (stream, path) = sse(server).await;
    let mut http = Http::connect(server.address).await;
    http.ask("POST", &path, &[JSON], &call(2, "wait")).await;
    server.probe.until_waiting(2).await;
    (socket, stream)
}

async fn says_goodbye(socket: &mut WebSocketStream<TcpStream>) {
    let frame = socket.next().await.unwrap().unwrap();
    let Message::Close(Some(close)) = frame else {
        panic!("{frame:?}");
    };
    assert_eq!(close.code, CloseCode::Away);
}

#[tokio::test]
async fn calls_on_websocket_and_sse_are_answered_before_their_connections_end() {
    let server = start().await;
    let (mut socket, mut stream) = with_calls(&server).await;
    let probe = server.probe.clone();
    let address = server.address;
    let stopped = tokio::spawn(server.stop());
    // The listener is closed, and nothing new is started on connections that are open.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    socket.send(Message::text(modern_call(3, "echo"))).await.unwrap();
    let refused = next(&mut socket).await.unwrap();
    assert_eq!(
        (refused["id"].as_i64(), refused["error"]["code"].as_i64()),
        (Some(3), Some(-32010))
    );
    assert!(refused["error"]["message"].as_str().unwrap().contains("not started"));
    probe.release.notify_waiters();
    assert_eq!(text_of(&next(&mut socket).await.unwrap()), "released");
    says_goodbye(&mut socket).await;
    assert_eq!(text_of(&stream.event().await.unwrap().json()), "released");
    assert_eq!(stream.event().await, None);
    stopped.await.unwrap();
}

#[tokio::test]
async fn calls_on_websocket_and_sse_that_outlast_the_shutdown_get_an_error() {
    let server = start_with(|builder| builder.drain_time(Duration::from_millis(200))).await;
    let (mut socket, mut stream) = with_calls(&server).await;
    let probe = server.probe.clone();
    let stopped = tokio::spawn(server.stop());
    let (on_socket, on_stream) = (next(&mut socket).await.unwrap(), stream.event().await.unwrap().json());
    for (answer, id) in [(on_socket, 1), (on_stream, 2)] {
        assert_eq!(
            (answer["id"].as_i64(), answer["error"]["code"].as_i64()),
            (Some(id), Some(-32010)),
            "{answer}"
        );
    }
    says_goodbye(&mut socket).await;
    assert_eq!(stream.event().await, None);
    stopped.await.unwrap();
    probe.until_waiting(0).await;
}

#[tokio::test]
async fn requests_that_outlast_the_shutdown_get_an_error() {
    let server = start_with(|builder| builder.drain_time(Duration::from_millis(200))).await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let legacy_headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    let (mut legacy, mut modern) = (Http::connect(server.address).await, Http::connect(server.address).await);
    legacy.send("POST", "/mcp", &legacy_headers, &call(1, "wait")).await;
    modern
        .send("POST", "/mcp", &modern_headers("wait"), &modern_call(2, "wait"))
        .await;
    let mut stream = Http::connect(server.address).await;
    let streamed = stream
        .ask(
            "POST",
            "/mcp",
            &modern_headers("step_and_wait"),
            &modern_call(3, "step_and_wait"),
        )
        .await;
    assert!(streamed.is_events());
    stream.event().await.unwrap();
    // The body of this one does not arrive.
    let mut half = Http::connect(server.address).await;
    half.write(
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    )
    .await;
    server.probe.until_waiting(3).await;
    let probe = server.probe.clone();
    let stopped = tokio::spawn(server.stop());
    let response = legacy.response().await;
    assert_eq!((response.status, response.json()["id"].as_i64()), (200, Some(1)));
    assert_eq!(response.json()["error"]["code"], -32010);
    let response = modern.response().await;
    assert_eq!((response.status, response.json()["id"].as_i64()), (200, Some(2)));
    assert_eq!(response.json()["error"]["code"], -32010);
    assert_eq!(response.json()["error"]["data"]["may_have_executed"], true);
    assert_eq!(response.header("retry-after"), "", "it may have run");
    let event = stream.event().await.unwrap().json();
    assert_eq!(
        (event["id"].as_i64(), event["error"]["code"].as_i64()),
        (Some(3), Some(-32010))
    );
    assert_eq!(stream.event().await, None);
    let response = half.response().await;
    assert_eq!((response.status, response.header("retry-after")), (503, "1"));
    stopped.await.unwrap();
    probe.until_waiting(0).await;
}
