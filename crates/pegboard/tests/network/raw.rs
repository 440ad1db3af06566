//! A server that writes exactly the bytes of a test, for responses that no real server sends.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc};

use pegboard_base::sync::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// One received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    whole: Vec<u8>,
}

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// One step of a response. The connection closes after the last step.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(Vec<u8>),
    /// Sends nothing more and keeps the connection open.
    Hang,
    /// Resets the connection, as a crash would.
    Reset,
    /// Forwards the request, and all that follows on its connection, to another server.
    Pass(SocketAddr),
}

/// A running server. It stops when this is dropped.
pub(crate) struct Raw {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _guard: DropGuard,
}

impl Raw {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen().iter().filter(|seen| seen.method() == method).count()
    }
}

/// Serves every request with the steps of `answer`.
pub(crate) async fn serve(answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Raw {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    let (log, answer) = (seen.clone(), Arc::new(answer));
    tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (log, answer) = (log.clone(), answer.clone());
            let serving = async move {
                // A client may disconnect at any time.
                let _ = take(stream, &log, &*answer).await;
            };
            tokio::spawn(ended.clone().run_until_cancelled_owned(serving));
        }
    }));
    Raw {
        address,
        seen,
        _guard: guard,
    }
}

async fn take(
    mut stream: TcpStream,
    log: &Mutex<Vec<Seen>>,
    answer: &(dyn Fn(&Seen) -> Vec<Step> + Send + Sync),
) -> io::Result<()> {
    let seen = read(&mut stream).await?;
    log.lock().push(seen.clone());
    for step in answer(&seen) {
        match step {
            Step::Write(bytes) => stream.write_all(&bytes).await?,
            Step::Hang => {
                let mut end = [0; 64];
                while stream.read(&mut end).await? > 0 {}
            }
            Step::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
            Step::Pass(to) => {
                let mut other = TcpStream::connect(to).await?;
                other.write_all(&seen.whole).await?;
                copy_bidirectional(&mut stream, &mut other).await?;
            }
        }
    }
    stream.shutdown().await
}

async fn read(stream: &mut TcpStream) -> io::Result<Seen> {
    let mut whole = Vec::new();
    let head_end = loop {
        if let Some(at) = whole.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut whole).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&whole[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or_default();
    while whole.len() < head_end + length {
        if stream.read_buf(&mut whole).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Seen {
        verb: first.next().unwrap_or_default(),
        path: first.next().unwrap_or_default(),
        headers,
        body: serde_json::from_slice(&whole[head_end..]).unwrap_or_default(),
        whole,
    })
}

/// A complete response.
pub(crate) fn response(status: &str, kind: &str, body: &[u8]) -> Vec<Step> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    vec![Step::Write([head.as_bytes(), body].concat())]
}

pub(crate) fn result(seen: &Seen, result: &Value) -> Vec<Step> {
    let answer = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result });
    response("200 OK", "application/json", answer.to_string().as_bytes())
}

/// The head of an event stream.
pub(crate) fn stream_head() -> Step {
    Step::Write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec())
}

/// The response of a healthy server with the one tool `hello` to everything but a call.
pub(crate) fn healthy(seen: &Seen, modern: bool) -> Vec<Step> {
    match seen.method() {
        "server/discover" if modern => result(
            seen,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "raw", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        "initialize" if !modern => result(
            seen,
            &json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "raw", "version": "1" },
            }),
        ),
        "tools/list" => result(
            seen,
            &json!({ "resultType": "complete", "tools": [{ "name": "hello", "inputSchema": { "type": "object" } }] }),
        ),
        method if method.starts_with("notifications/") => response("202 Accepted", "text/plain", b""),
        _ => response("405 Method Not Allowed", "text/plain", b""),
    }
}

/// The JSON-RPC response to a call, with the text `hi`.
pub(crate) fn hi(seen: &Seen) -> Value {
    json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": {
        "resultType": "complete", "content": [{ "type": "text", "text": "hi" }],
    } })
}
