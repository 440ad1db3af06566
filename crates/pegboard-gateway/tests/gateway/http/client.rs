//! A small HTTP/1.1 client that can break every rule, and the messages of both eras.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

pub(crate) const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// The limit on every wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
}

/// The head of a response, and its body unless it is an event stream.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The text of a tool's result.
    pub(crate) fn text(&self) -> String {
        text_of(&self.json())
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type") == "text/event-stream"
    }
}

/// The text of a tool's result in a message.
pub(crate) fn text_of(message: &Value) -> String {
    let text = message["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{message}")).to_owned()
}

/// An event of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let stream = BufReader::new(stream);
        Self { stream }
    }

    /// Sends these bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends a request.
    pub(crate) async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += "host: localhost\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n{body}", body.len());
        self.write(head.as_bytes()).await;
    }

    /// Sends a request and reads its response.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        self.send(method, path, headers, body).await;
        self.response().await
    }

    /// Reads a response.
    pub(crate) async fn response(&mut self) -> Response {
        let line = self.line().await.expect("a response");
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await.unwrap();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        if let Ok(length) = response.header("content-length").parse() {
            response.body.resize(length, 0);
            timeout(PATIENCE, self.stream.read_exact(&mut response.body))
                .await
                .unwrap()
                .unwrap();
        }
        response
    }

    /// Reads the next event of a stream, without comments; `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        let (mut id, mut data, mut is_event) = (None, String::new(), false);
        loop {
            // Chunk headers and the ends of chunks are lines of their own, because each event is one chunk.
            let line = self.line().await?;
            if let Some(text) = line.strip_prefix("data: ") {
                data += text;
                is_event = true;
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.to_owned());
            } else if line.is_empty() && is_event {
                return Some(Event { id, data });
            } else if line == "0" {
                self.line().await;
                return None;
            }
        }
    }

    /// Reads a line; `None` if the connection has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.stream.read_line(&mut line))
            .await
            .expect("a line in time");
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
        }
    }
}

/// A request.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A call of a tool.
pub(crate) fn call(id: u64, tool: &str) -> String {
    request(id, "tools/call", &json!({"name": tool, "arguments": {}}))
}

/// A modern call of a tool.
pub(crate) fn modern_call(id: u64, tool: &str) -> String {
    request(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": {}, "_meta": modern_meta()}),
    )
}

pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}
    })
}

/// The headers of a modern call.
pub(crate) fn modern_headers(tool: &str) -> [(&str, &str); 5] {
    [
        BOTH,
        JSON,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ]
}

/// Opens a session. Returns its id.
pub(crate) async fn initialize(http: &mut Http, version: &str, more: &[(&str, &str)]) -> String {
    let params = json!({
        "protocolVersion": version,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"}
    });
    let headers = [&[BOTH, JSON], more].concat();
    let response = http
        .ask("POST", "/mcp", &headers, &request(0, "initialize", &params))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json()["result"]["protocolVersion"], version);
    let id = response.header("mcp-session-id").to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let headers = [&headers[..], &[("mcp-session-id", &*id)]].concat();
    let response = http.ask("POST", "/mcp", &headers, &initialized).await;
    assert_eq!(response.status, 202);
    id
}
