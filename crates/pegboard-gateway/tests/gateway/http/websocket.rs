//! WebSocket on the paths of streamable HTTP.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::http::{
    client::{modern_call, text_of},
    service::{Running, start, start_with},
};

pub(crate) async fn connect(server: &Running) -> WebSocketStream<TcpStream> {
    connect_with(server, &[]).await
}

/// Connects with further headers.
pub(crate) async fn connect_with(
    server: &Running,
    headers: &[(&'static str, &'static str)],
) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut request = format!("ws://{}/mcp", server.address).into_client_request().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", "mcp".parse().unwrap());
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, response) = client_async(request, stream).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
    socket
}

pub(crate) async fn next(socket: &mut WebSocketStream<TcpStream>) -> Option<Value> {
    while let Some(Ok(frame)) = socket.next().await {
        if let Message::Text(text) = frame {
            return Some(serde_json::from_str(&text).unwrap());
        }
    }
    None
}

#[tokio::test]
async fn messages_are_text_frames() {
    let server = start().await;
    let mut socket = connect(&server).await;
    socket.send(Message::text(modern_call(1, "steps"))).await.unwrap();
    for step in 1..=3 {
        assert_eq!(next(&mut socket).await.unwrap()["params"]["step"], step);
    }
    assert_eq!(text_of(&next(&mut socket).await.unwrap()), "stepped");
    socket.send(Message::binary(vec![0])).await.unwrap();
    assert_eq!(next(&mut socket).await, None, "binary frames are refused");
}

#[tokio::test]
async fn closing_the_socket_cancels_its_calls() {
    let server = start().await;
    let mut socket = connect(&server).await;
    socket.send(Message::text(modern_call(1, "wait"))).await.unwrap();
    server.probe.until_waiting(1).await;
    drop(socket);
    server.probe.until_waiting(0).await;
}

#[tokio::test]
async fn sockets_are_bounded_and_closed_at_shutdown() {
    let server = start_with(|builder| builder.max_sessions(1)).await;
    let mut socket = connect(&server).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let refused = client_async(format!("ws://{}/mcp", server.address), stream).await;
    assert!(refused.is_err());
    let stopped = tokio::spawn(server.stop());
    assert_eq!(next(&mut socket).await, None);
    stopped.await.unwrap();
}

#[tokio::test]
async fn an_error_in_what_was_sent_is_told_in_the_close_frame() {
    // A masked text frame: final, with its length and the mask 0.
    let text = |length: u8| [&[0x81, 0x80 | length, 0, 0, 0, 0][..], &vec![0xff; usize::from(length)]].concat();
    let reserved = vec![0xf1, 0x80, 0, 0, 0, 0];
    let unmasked = vec![0x81, 0x01, b'x'];
    for (sent, code) in [
        (reserved, 1002_u16),
        (unmasked, 1002),
        (text(4), 1007),
        (text(101), 1009),
    ] {
        let server = start_with(|builder| builder.max_body(100)).await;
        let mut stream = connect(&server).await.into_inner();
        stream.write_all(&sent).await.unwrap();
        let mut frame = [0; 4];
        stream.read_exact(&mut frame).await.unwrap();
        assert_eq!(
            (frame[0], u16::from_be_bytes([frame[2], frame[3]])),
            (0x88, code),
            "{sent:?}"
        );
    }
}
