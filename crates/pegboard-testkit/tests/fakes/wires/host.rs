//! A raw client that answers the server's questions, in both eras, over lines and over HTTP.

use std::net::SocketAddr;

use pegboard_protocol::meta;
use pegboard_testkit::{Era, FakeServer, NetHandle};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf},
    net::TcpStream,
    time::timeout,
};

use crate::wires::{
    lines::{LIMIT, Lines, initialize_params, modern, request},
    raw_http::post,
};

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Lines,
    Http,
}

/// A client of one era on one wire.
pub(crate) struct Host {
    pub(crate) modern: bool,
    link: Link,
    /// Merged into the `_meta` of modern requests.
    pub(crate) meta: Value,
}

enum Link {
    Lines(Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>),
    Http(NetHandle, Option<String>),
}

/// What came of a request.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) response: Value,
    /// The methods of the questions, in order.
    pub(crate) asked: Vec<String>,
    pub(crate) notices: Vec<Value>,
}

impl Exchange {
    pub(crate) fn content(&self) -> &Value {
        &self.response["result"]["content"]
    }

    /// The notices with this method.
    pub(crate) fn notices(&self, method: &str) -> Vec<&Value> {
        self.notices
            .iter()
            .filter(|notice| notice["method"] == method)
            .collect()
    }
}

impl Host {
    /// Starts the server and connects in its era, which is one of the two.
    pub(crate) async fn connect(fake: FakeServer, over: Over) -> Self {
        let modern = fake.script().era == Era::Modern;
        let link = match over {
            Over::Lines => {
                let (stream, _) = fake.connect();
                let (reader, writer) = tokio::io::split(stream);
                Link::Lines(Lines::new(reader, writer))
            }
            Over::Http => Link::Http(fake.serve_http().await.unwrap(), None),
        };
        let mut host = Self {
            modern,
            link,
            meta: json!({}),
        };
        if !modern {
            host.initialize().await;
        }
        host
    }

    async fn initialize(&mut self) {
        match &mut self.link {
            Link::Lines(lines) => {
                lines.initialize().await;
            }
            Link::Http(server, session) => {
                let opening = request(0, "initialize", initialize_params("2025-11-25"));
                let reply = post(server.address(), &[], &opening).await;
                *session = reply.header("mcp-session-id").map(str::to_owned);
            }
        }
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Exchange {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
            .await
    }

    /// Sends a request and answers every question until its final response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Exchange {
        let mut exchange = Exchange::default();
        let mut params = params;
        loop {
            let sent = if self.modern {
                self.with_meta(params.clone())
            } else {
                params.clone()
            };
            self.once(&request(7, method, sent), &mut exchange).await;
            let result = &exchange.response["result"];
            if result["resultType"] != "input_required" {
                return exchange;
            }
            let mut responses = Map::new();
            for (key, question) in result["inputRequests"].as_object().unwrap() {
                let method = question["method"].as_str().unwrap();
                responses.insert(key.clone(), answer(method));
                exchange.asked.push(method.to_owned());
            }
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].clone();
        }
    }

    pub(crate) fn with_meta(&self, params: Value) -> Value {
        let mut params = modern(params);
        params["_meta"][meta::CLIENT_CAPABILITIES] = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
        for (key, value) in self.meta.as_object().unwrap() {
            params["_meta"][key] = value.clone();
        }
        params
    }

    /// Sends one message and reads up to its response.
    async fn once(&mut self, message: &Value, exchange: &mut Exchange) {
        match &mut self.link {
            Link::Lines(lines) => {
                lines.send(message.clone()).await;
                loop {
                    let received = lines.message().await;
                    match exchange.take(received) {
                        Some(reply) => lines.send(reply).await,
                        None if exchange.response["id"] == message["id"] => return,
                        None => {}
                    }
                }
            }
            Link::Http(server, session) => {
                let session = session.as_deref().unwrap_or_default();
                http(server.address(), session, message, exchange).await;
            }
        }
    }

    /// The next message outside of a request; for lines only.
    pub(crate) async fn message(&mut self) -> Value {
        self.lines().message().await
    }

    pub(crate) fn lines(&mut self) -> &mut Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>> {
        match &mut self.link {
            Link::Lines(lines) => lines,
            Link::Http(..) => panic!("this client is not connected by lines"),
        }
    }
}

impl Exchange {
    /// Files a message. Returns the reply if it is a question of the legacy era.
    fn take(&mut self, message: Value) -> Option<Value> {
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            self.response = message;
            return None;
        };
        if message.get("id").is_none() {
            self.notices.push(message);
            return None;
        }
        let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer(&method) });
        self.asked.push(method);
        Some(reply)
    }
}

/// This client's answer to a question.
pub(crate) fn answer(method: &str) -> Value {
    match method {
        "sampling/createMessage" => {
            json!({ "role": "assistant", "content": { "type": "text", "text": "yes" }, "model": "none" })
        }
        "roots/list" => json!({ "roots": [{ "uri": "file:///here" }] }),
        _ => json!({ "action": "accept", "content": { "colour": "red" } }),
    }
}

/// Posts a message, and answers questions on its stream with other posts.
async fn http(address: SocketAddr, session: &str, message: &Value, exchange: &mut Exchange) {
    let mut stream = open(address, session, message).await;
    let mut bytes = Vec::new();
    loop {
        let read = timeout(LIMIT, stream.read_buf(&mut bytes))
            .await
            .expect("a byte in time");
        let read = read.unwrap();
        // A JSON body is one line, and so is the data of an event.
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            let data = line.strip_prefix(b"data: ").unwrap_or(&line);
            let Some(received) = serde_json::from_slice(data).ok().filter(Value::is_object) else {
                continue;
            };
            if let Some(reply) = exchange.take(received) {
                assert_eq!(post(address, &[("mcp-session-id", session)], &reply).await.status, 202);
            } else if exchange.response["id"] == message["id"] {
                return;
            }
        }
        assert!(
            read > 0,
            "no response to {message}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

/// Sends a POST with the headers of its era and leaves the response on the stream.
pub(crate) async fn open(address: SocketAddr, session: &str, message: &Value) -> TcpStream {
    let method = message["method"].as_str().unwrap();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n"
    );
    if session.is_empty() {
        head.push_str(&format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"));
        let params = &message["params"];
        if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
            head.push_str(&format!("mcp-name: {name}\r\n"));
        }
    } else {
        head.push_str(&format!("mcp-session-id: {session}\r\n"));
    }
    let body = message.to_string();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}
