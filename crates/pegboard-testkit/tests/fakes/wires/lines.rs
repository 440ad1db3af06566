//! A raw client for transports with one message per line.

use std::time::Duration;

use pegboard_protocol::meta;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    time::timeout,
};

/// The timeout of a step.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Lines<R, W> {
    reader: BufReader<R>,
    writer: Option<W>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        Self {
            reader: BufReader::new(reader),
            writer: Some(writer),
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let writer = self.writer.as_mut().expect("the input is still open");
        writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        writer.flush().await.unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.writer = None;
    }

    /// One raw line without its newline; empty at the end.
    pub(crate) async fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        timeout(LIMIT, self.reader.read_until(b'\n', &mut line))
            .await
            .expect("a line in time")
            .unwrap();
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        line
    }

    pub(crate) async fn message(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_slice(&line).unwrap_or_else(|_| panic!("not JSON: {:?}", String::from_utf8_lossy(&line)))
    }

    /// Returns `true` if no line arrives for a while, which takes no real time when tokio's clock is paused.
    pub(crate) async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(300), self.reader.fill_buf())
            .await
            .is_err()
    }

    /// All lines until the end.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        timeout(LIMIT, self.reader.read_to_end(&mut rest))
            .await
            .expect("the end in time")
            .unwrap();
        rest
    }

    pub(crate) async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(request(id, method, params)).await;
        self.message().await
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        let answer = self.request(0, "initialize", initialize_params("2025-06-18")).await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        answer
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

pub(crate) fn initialize_params(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } })
}

/// Parameters with the `_meta` of the modern era.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        meta::PROTOCOL_VERSION: "2026-07-28",
        meta::CLIENT_INFO: { "name": "raw", "version": "1" },
        meta::CLIENT_CAPABILITIES: {},
    });
    params
}
