//! Clients of three protocols that call tools and tell what became of each call. All of them use the same ids.

use std::{io, net::SocketAddr};

use serde_json::{Value, json};

use crate::gateway_soak::http::Http;

/// The protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP+SSE of 2024-11-05.
    Sse,
    /// Streamable HTTP with a session.
    Legacy,
    /// Streamable HTTP without one.
    Modern,
}

/// What became of a call.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The text of the result.
    Done(String),
    /// It failed, and did not run.
    NotRun,
    /// It failed, and may have run.
    MayHaveRun,
}

/// One client with its connections.
pub(crate) struct Caller {
    protocol: Protocol,
    http: Http,
    /// The event stream of the oldest protocol, and the path for its messages.
    events: Option<(Http, String)>,
    buffer: String,
    session: Option<String>,
    next_id: u64,
}

impl Caller {
    /// Connects and shakes hands.
    pub(crate) async fn connect(protocol: Protocol, address: SocketAddr) -> io::Result<Self> {
        let mut caller = Self {
            protocol,
            http: Http::connect(address).await?,
            events: None,
            buffer: String::new(),
            session: None,
            next_id: 0,
        };
        if protocol == Protocol::Sse {
            caller.open_events(address).await?;
        }
        if protocol != Protocol::Modern {
            caller.initialize().await?;
        }
        Ok(caller)
    }

    async fn open_events(&mut self, address: SocketAddr) -> io::Result<()> {
        let mut events = Http::connect(address).await?;
        let head = events.send("GET", "/sse", &[], "").await?;
        assert_eq!(head.status, 200);
        let path = loop {
            let Some(event) = next_event(&mut events, &mut self.buffer).await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            if !event.is_empty() {
                break event;
            }
        };
        self.events = Some((events, path));
        Ok(())
    }

    async fn initialize(&mut self) -> io::Result<()> {
        let version = match self.protocol {
            Protocol::Sse => "2024-11-05",
            _ => "2025-11-25",
        };
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"},
        });
        let answer = self.request("initialize", params).await?;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.notify("notifications/initialized").await
    }

    /// Calls a tool with a nonce, which the result repeats.
    pub(crate) async fn call(&mut self, tool: &str, nonce: &str, delay_ms: u64) -> io::Result<Outcome> {
        let params = json!({"name": tool, "arguments": {"nonce": nonce, "delay_ms": delay_ms}});
        let answer = self.request("tools/call", params).await?;
        Ok(outcome(&answer))
    }

    async fn notify(&mut self, method: &str) -> io::Result<()> {
        let message = json!({"jsonrpc": "2.0", "method": method});
        let head = self.post(method, "", &message.to_string()).await?;
        self.http.message(&head).await.map(|_| ())
    }

    async fn request(&mut self, method: &str, mut params: Value) -> io::Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        if self.protocol == Protocol::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let head = self.post(method, &name, &message.to_string()).await?;
        let mut text = self.http.message(&head).await?;
        if let Some(session) = head.session {
            self.session = Some(session);
        }
        if self.events.is_some() && head.status == 202 {
            text = self.awaited().await?;
        }
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{} {text}", head.status));
        assert_eq!(answer["id"], id, "an answer to another request: {answer}");
        Ok(answer)
    }

    async fn post(&mut self, method: &str, name: &str, body: &str) -> io::Result<crate::gateway_soak::http::Head> {
        let session = self.session.clone().unwrap_or_default();
        match (&self.events, self.protocol) {
            (Some((_, path)), _) => self.http.send("POST", path, &[], body).await,
            (None, Protocol::Modern) => {
                let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
                if !name.is_empty() {
                    headers.push(("Mcp-Name", name));
                }
                self.http.send("POST", "/mcp", &headers, body).await
            }
            (None, _) if session.is_empty() => self.http.send("POST", "/mcp", &[], body).await,
            (None, _) => {
                let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-11-25")];
                self.http.send("POST", "/mcp", &headers, body).await
            }
        }
    }

    /// The next message on the event stream that is no notification.
    async fn awaited(&mut self) -> io::Result<String> {
        let Some((events, _)) = &mut self.events else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        loop {
            let Some(event) = next_event(events, &mut self.buffer).await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            if !event.is_empty() && !event.contains("\"method\"") {
                return Ok(event);
            }
        }
    }
}

/// The data of the next event; `None` at the end of the stream.
async fn next_event(events: &mut Http, buffer: &mut String) -> io::Result<Option<String>> {
    loop {
        if let Some((event, rest)) = buffer.split_once("\n\n") {
            let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            let data = data.join("\n").trim().to_owned();
            *buffer = rest.to_owned();
            return Ok(Some(data));
        }
        match events.chunk().await? {
            Some(chunk) => buffer.push_str(&chunk),
            None => return Ok(None),
        }
    }
}

fn outcome(answer: &Value) -> Outcome {
    let result = &answer["result"];
    if result["isError"] == json!(false) || (result.is_object() && result["isError"].is_null()) {
        return Outcome::Done(result["content"][0]["text"].as_str().unwrap_or_default().to_owned());
    }
    if answer["error"].is_object() {
        return Outcome::NotRun;
    }
    match result["_meta"]["pegboard/may_have_executed"].as_bool() {
        Some(false) => Outcome::NotRun,
        _ => Outcome::MayHaveRun,
    }
}
