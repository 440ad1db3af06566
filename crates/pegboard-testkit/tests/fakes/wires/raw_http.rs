//! A raw HTTP client: one request per connection, with the whole response.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The response up to its end or the reader's timeout.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body is complete.
    pub(crate) complete: bool,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    /// The data of the `message` events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

/// The timeout for responses that never end.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

pub(crate) async fn send(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
    patience: Duration,
) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let mut request = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut bytes = Vec::new();
    // What arrived before a reset or the timeout is kept.
    let _ = timeout(patience, stream.take(4 << 20).read_to_end(&mut bytes)).await;
    parse(&bytes)
}

pub(crate) async fn post(address: SocketAddr, headers: &[(&str, &str)], message: &Value) -> Reply {
    try_post(address, headers, message).await.expect("an HTTP answer")
}

pub(crate) async fn try_post(address: SocketAddr, headers: &[(&str, &str)], message: &Value) -> Option<Reply> {
    let mut all = vec![
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    all.extend_from_slice(headers);
    send(address, "POST /mcp", &all, &message.to_string(), Duration::from_secs(1)).await
}

fn parse(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut reply = Reply {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
        complete: false,
    };
    if reply.header("transfer-encoding") == Some("chunked") {
        (reply.body, reply.complete) = unchunk(&reply.body);
    } else {
        let length: usize = reply
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        reply.complete = reply.body.len() == length;
    }
    Some(reply)
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let chunk = &rest[end + 2..];
        body.extend_from_slice(&chunk[..size.min(chunk.len())]);
        let Some(next) = chunk.get(size + 2..) else { break };
        rest = next;
    }
    (body, false)
}
