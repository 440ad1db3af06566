//! An HTTP/1 server and a WebSocket server that send exactly the bytes of a case, for responses that no real server sends.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream, accept_async,
    tungstenite::{
        Message,
        protocol::frame::{
            Frame,
            coding::{Data, OpCode},
        },
    },
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::matrix::case::Era;

/// One step of a response. The connection closes after the last step.
pub(crate) enum Step {
    Write(Vec<u8>),
    /// Writes one byte at a time, with a pause after each.
    Drip(Vec<u8>, Duration),
    /// Writes these bytes repeatedly without end, with short pauses.
    Flood(Vec<u8>),
    /// Sends nothing more and keeps the connection open.
    Hang,
    Reset,
}

/// A server with the tool `pay`. It appends each call to its ledger, the file of executed calls, before it answers.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) era: Era,
    pub(crate) ledger: PathBuf,
}

impl Server {
    /// The response of a healthy server to everything but a call; `None` for a notification.
    fn healthy(&self, message: &Value) -> Option<Value> {
        let result = match (message["method"].as_str()?, self.era) {
            ("server/discover", Era::Modern) => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "raw", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
            }),
            ("initialize", Era::Legacy) => json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "raw", "version": "1" },
            }),
            ("tools/list", _) => json!({
                "resultType": "complete",
                "tools": [{ "name": "pay", "inputSchema": { "type": "object" } }],
            }),
            ("ping", _) => json!({}),
            _ => {
                let error = json!({ "code": -32601, "message": "no such method" });
                message.get("id")?;
                return Some(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
            }
        };
        Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }

    /// Records the execution of a call and returns the right answer to it.
    fn execute(&self, message: &Value) -> String {
        let nonce = message["params"]["arguments"]["nonce"].as_str().unwrap_or_default();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.ledger);
        io::Write::write_all(&mut file.unwrap(), format!("executed {nonce}\n").as_bytes()).unwrap();
        let content = json!([{ "type": "text", "text": nonce }]);
        let result = json!({ "resultType": "complete", "content": content });
        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
    }
}

/// A complete HTTP response with these additional headers.
pub(crate) fn response(head: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let rest = "content-type: application/json\r\nconnection: close";
    format!("HTTP/1.1 200 OK\r\n{rest}\r\n{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// The head of a JSON response with these additional headers.
pub(crate) fn head(more: &str) -> String {
    head_of("application/json", more)
}

/// The head of an event stream with these additional headers.
pub(crate) fn event_stream(more: &str) -> String {
    head_of("text/event-stream", more)
}

fn head_of(content_type: &str, more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n{more}\r\n")
}

/// Serves the path `/mcp`. The first call gets the steps of `act`, which is given the right answer; later calls get the right answer.
pub(crate) async fn http(server: Server, act: fn(&str) -> Vec<Step>) -> (SocketAddr, DropGuard) {
    let first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    listen(move |stream| {
        let (server, first) = (server.clone(), first.clone());
        async move { drop(take(stream, &server, &first, act).await) }
    })
    .await
}

async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> (SocketAddr, DropGuard)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(ended.clone().run_until_cancelled_owned(serve(stream)));
        }
    }));
    (address, guard)
}

async fn take(
    mut stream: TcpStream,
    server: &Server,
    first: &std::sync::atomic::AtomicBool,
    act: fn(&str) -> Vec<Step>,
) -> io::Result<()> {
    let Some(message) = read(&mut stream).await? else {
        let refused = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return stream.write_all(refused).await;
    };
    if message["method"] == "tools/call" {
        let answer = server.execute(&message);
        if !first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return stream.write_all(&response("", &answer)).await;
        }
        return play(stream, act(&answer)).await;
    }
    let answer = match server.healthy(&message) {
        Some(answer) => response("", &answer.to_string()),
        None => b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    };
    stream.write_all(&answer).await
}

async fn play(mut stream: TcpStream, steps: Vec<Step>) -> io::Result<()> {
    for step in steps {
        match step {
            Step::Write(bytes) => stream.write_all(&bytes).await?,
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    stream.write_all(&[byte]).await?;
                    tokio::time::sleep(pause).await;
                }
            }
            Step::Flood(bytes) => loop {
                stream.write_all(&bytes).await?;
                tokio::time::sleep(Duration::from_millis(2)).await;
            },
            Step::Hang => while stream.read(&mut [0; 64]).await? > 0 {},
            Step::Reset => stream.set_zero_linger()?,
        }
    }
    Ok(())
}

/// The message of a POST; `None` for other requests.
async fn read(stream: &mut TcpStream) -> io::Result<Option<Value>> {
    let mut whole = Vec::new();
    let end = loop {
        if let Some(at) = whole.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut whole).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&whole[..end]).to_ascii_lowercase();
    if !head.starts_with("post") {
        return Ok(None);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    while whole.len() < end + length {
        if stream.read_buf(&mut whole).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(serde_json::from_slice(&whole[end..]).ok())
}

/// A frame with a part of a message.
pub(crate) fn part(text: &str, code: Data, last: bool) -> Message {
    Message::Frame(Frame::message(text.as_bytes().to_vec(), OpCode::Data(code), last))
}

/// Serves a WebSocket. The first call gets the messages of `act`, which is given the right answer; later calls get the right answer.
pub(crate) async fn socket(server: Server, act: fn(&str) -> Vec<Message>) -> (SocketAddr, DropGuard) {
    let first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    listen(move |stream| {
        let (server, first) = (server.clone(), first.clone());
        async move {
            let Ok(socket) = accept_async(stream).await else { return };
            talk(socket, &server, &first, act).await;
        }
    })
    .await
}

async fn talk(
    mut socket: WebSocketStream<TcpStream>,
    server: &Server,
    first: &std::sync::atomic::AtomicBool,
    act: fn(&str) -> Vec<Message>,
) {
    while let Some(Ok(message)) = socket.next().await {
        let Ok(text) = message.into_text() else { continue };
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        let said = if message["method"] == "tools/call" {
            let answer = server.execute(&message);
            match first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                true => act(&answer),
                false => vec![Message::text(answer)],
            }
        } else {
            let answer = server.healthy(&message);
            answer
                .map(|answer| Message::text(answer.to_string()))
                .into_iter()
                .collect()
        };
        for message in said {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    }
}
