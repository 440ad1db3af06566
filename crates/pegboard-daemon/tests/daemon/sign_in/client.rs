//! An MCP client of one person.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpStream,
};

use crate::sign_in::{
    browser::{PATIENCE, send},
    fixture::{Site, secret},
};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// An MCP client of one person.
pub(crate) struct Client<'a> {
    site: &'a Site,
    pub(crate) who: &'a str,
    path: &'a str,
    capabilities: Value,
    /// The session of a legacy client.
    session: Option<String>,
}

impl<'a> Client<'a> {
    pub(crate) fn modern(site: &'a Site, who: &'a str, capabilities: Value) -> Self {
        Self::modern_at(site, "/mcp", who, capabilities)
    }

    pub(crate) fn modern_at(site: &'a Site, path: &'a str, who: &'a str, capabilities: Value) -> Self {
        Self {
            site,
            who,
            path,
            capabilities,
            session: None,
        }
    }

    pub(crate) async fn legacy(site: &'a Site, who: &'a str, capabilities: Value) -> Self {
        Self::legacy_at(site, "/mcp", who, capabilities).await
    }

    pub(crate) async fn legacy_at(site: &'a Site, path: &'a str, who: &'a str, capabilities: Value) -> Self {
        let mut client = Self::modern_at(site, path, who, Value::Null);
        let params = json!({"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let (session, welcome) = client.post(&request, &[]).await;
        assert_eq!(welcome["result"]["protocolVersion"], LEGACY, "{welcome}");
        client.session = session;
        client.notify("notifications/initialized").await;
        client
    }

    /// Calls the tool of the server that needs a sign-in.
    pub(crate) async fn hello(&self, more: Value) -> Value {
        let mut params = json!({"name": "fx__hello", "arguments": {}});
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            params[key] = value;
        }
        self.request("tools/call", params).await
    }

    /// Calls a tool without arguments.
    pub(crate) async fn call(&self, name: &str) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": {}})).await
    }

    /// The names of the tools that it sees.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let listed = self.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Sends a request. Returns the response.
    pub(crate) async fn request(&self, method: &str, mut params: Value) -> Value {
        let mut headers = vec![("mcp-protocol-version", LEGACY)];
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            });
            headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
            headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
        }
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&request, &headers).await.1
    }

    /// Opens the stream of notifications of a legacy client.
    pub(crate) async fn listen(&self) -> Notifications {
        let url = &self.site.url;
        let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let mut stream = TcpStream::connect(&host).await.unwrap();
        let request = format!(
            "GET {} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\nmcp-protocol-version: {LEGACY}\r\n\
             mcp-session-id: {}\r\n\r\n",
            self.path,
            secret(self.who),
            self.session.as_deref().unwrap()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut notifications = Notifications(BufReader::new(stream).lines());
        let status = notifications.line().await;
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        // The stream is open when the headers are there.
        while !notifications.line().await.is_empty() {}
        notifications
    }

    async fn notify(&self, method: &str) {
        let authorization = format!("Bearer {}", secret(self.who));
        let headers = [
            ("authorization", authorization.as_str()),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", LEGACY),
            ("mcp-session-id", self.session.as_deref().unwrap()),
        ];
        let message = json!({"jsonrpc": "2.0", "method": method}).to_string();
        let answer = send("POST", &self.site.at(self.path), &headers, &message).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
    }

    async fn post(&self, message: &Value, headers: &[(&str, &str)]) -> (Option<String>, Value) {
        let authorization = format!("Bearer {}", secret(self.who));
        let mut all = vec![
            ("authorization", authorization.as_str()),
            ("accept", "application/json"),
            ("content-type", "application/json"),
        ];
        all.extend_from_slice(headers);
        if let Some(session) = &self.session {
            all.push(("mcp-session-id", session));
        }
        let answer = send("POST", &self.site.at(self.path), &all, &message.to_string()).await;
        let session = answer.header("mcp-session-id").map(str::to_owned);
        (session, serde_json::from_str(&answer.body).unwrap())
    }
}

/// The notifications that a legacy client gets.
pub(crate) struct Notifications(Lines<BufReader<TcpStream>>);

impl Notifications {
    /// Waits for a notification of a method. Returns its params.
    pub(crate) async fn next(&mut self, method: &str) -> Value {
        let mut seen = Vec::new();
        let found = async {
            loop {
                let line = self.line().await;
                let message = line.strip_prefix("data:").map(serde_json::from_str::<Value>);
                if let Some(Ok(message)) = message
                    && message["method"] == method
                {
                    return message["params"].clone();
                }
                seen.push(line);
            }
        };
        // Comments keep the stream open, so the limit is not one on each line.
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("no {method}: {seen:?}"))
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.0.next_line()).await.unwrap();
        line.unwrap().unwrap().trim_end().to_owned()
    }
}

pub(crate) fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_default()
}
