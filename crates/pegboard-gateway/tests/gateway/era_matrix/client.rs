//! A client of either era that writes raw messages, over HTTP or on a connection as that of `pegboard mcp`.

use std::{collections::VecDeque, time::Duration};

use pegboard_gateway::InMemory;
use serde_json::{Map, Value, json};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinHandle},
    time::timeout,
};

use crate::era_matrix::http::{self, PATIENCE, Response};

/// The protocol era of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// The version without a handshake.
const MODERN: &str = "2026-07-28";

/// What a request brought.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The response: `result` or `error`.
    pub(crate) response: Value,
    /// The notifications that came with it.
    pub(crate) notifications: Vec<Value>,
    /// The methods of the questions that were answered.
    pub(crate) questions: Vec<String>,
    /// The `_meta` of the questions that came as requests. Their answers have it too.
    pub(crate) question_metas: Vec<Value>,
}

impl Outcome {
    pub(crate) fn result(&self) -> &Value {
        assert!(self.response.get("error").is_none(), "{}", self.response);
        &self.response["result"]
    }

    pub(crate) fn error(&self) -> &Value {
        assert!(self.response.get("error").is_some(), "{}", self.response);
        &self.response["error"]
    }

    /// The text of all blocks of a tool's result.
    pub(crate) fn text(&self) -> String {
        let blocks = self.result()["content"].as_array().cloned().unwrap_or_default();
        blocks.iter().filter_map(|block| block["text"].as_str()).collect()
    }

    pub(crate) fn notified(&self, method: &str) -> Vec<&Value> {
        let all = self.notifications.iter();
        all.filter(|message| message["method"] == method)
            .map(|message| &message["params"])
            .collect()
    }
}

/// Where the messages of a client go.
enum Wire {
    /// Each request to this path of this address, in a connection of its own.
    Http { address: String, path: String },
    /// One connection for everything.
    Connection(InMemory),
}

/// Where the response to a request comes from.
enum Replies {
    Http(Response),
    Connection,
}

/// A client of a gateway.
pub(crate) struct Client {
    pub(crate) era: Era,
    wire: Wire,
    token: Option<String>,
    capabilities: Value,
    session: Option<String>,
    /// What the server declares in its handshake with a legacy client.
    pub(crate) declared: Value,
    /// Further headers of every request.
    pub(crate) more_headers: Vec<(&'static str, String)>,
    /// Fields of `_meta` in every request.
    pub(crate) meta: Map<String, Value>,
    /// Over HTTP, messages of the stream that belongs to no request.
    general: mpsc::Receiver<Value>,
    /// Notifications that were read while others were waited for.
    seen: VecDeque<Value>,
    reader: Option<AbortHandle>,
    last_id: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

impl Client {
    /// Connects with these capabilities: a legacy client shakes hands and opens its general stream.
    pub(crate) async fn connect(address: &str, path: &str, era: Era, capabilities: Value) -> Self {
        Self::connect_as(address, path, era, capabilities, None).await
    }

    pub(crate) async fn connect_as(
        address: &str,
        path: &str,
        era: Era,
        capabilities: Value,
        token: Option<&str>,
    ) -> Self {
        let wire = Wire::Http {
            address: address.to_owned(),
            path: path.to_owned(),
        };
        Self::open(wire, era, capabilities, token).await
    }

    /// Connects in memory, as the host of `pegboard mcp` does over stdio.
    pub(crate) async fn connect_directly(connection: InMemory, era: Era, capabilities: Value) -> Self {
        Self::open(Wire::Connection(connection), era, capabilities, None).await
    }

    async fn open(wire: Wire, era: Era, capabilities: Value, token: Option<&str>) -> Self {
        let mut client = Self {
            era,
            wire,
            token: token.map(str::to_owned),
            capabilities,
            session: None,
            declared: Value::Null,
            more_headers: Vec::new(),
            meta: Map::new(),
            general: mpsc::channel(1).1,
            seen: VecDeque::new(),
            reader: None,
            last_id: 0,
        };
        if era == Era::Legacy {
            client.shake_hands().await;
        }
        client
    }

    async fn shake_hands(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": self.capabilities,
            "clientInfo": {"name": "matrix", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params});
        let mut replies = self.send(&request, &self.headers(None)).await;
        if let Replies::Http(response) = &replies {
            self.session = response.header("mcp-session-id").map(str::to_owned);
        }
        let mut welcome = self.next(&mut replies).await;
        assert!(welcome["result"]["protocolVersion"].is_string(), "{welcome}");
        self.declared = welcome["result"]["capabilities"].take();
        self.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        if let Wire::Http { address, path } = &self.wire {
            let stream = http::send(address, "GET", path, &self.headers(None), "").await;
            assert_eq!(stream.status, 200);
            self.read(stream);
        }
    }

    /// Sends a request.
    async fn send(&self, request: &Value, headers: &[(&str, String)]) -> Replies {
        match &self.wire {
            Wire::Http { address, path } => {
                Replies::Http(http::send(address, "POST", path, headers, &request.to_string()).await)
            }
            Wire::Connection(connection) => {
                connection.send(request).await;
                Replies::Connection
            }
        }
    }

    /// The next message about a request.
    async fn next(&mut self, replies: &mut Replies) -> Value {
        match (replies, &mut self.wire) {
            (Replies::Http(response), _) => response.next().await.expect("a response"),
            (Replies::Connection, Wire::Connection(connection)) => receive(connection).await,
            (Replies::Connection, Wire::Http { .. }) => unreachable!("HTTP has responses"),
        }
    }

    /// Sends a notification or a response.
    pub(crate) async fn tell(&self, message: &Value) {
        if let Replies::Http(response) = self.send(message, &self.headers(None)).await {
            assert_eq!(response.status, 202);
        }
    }

    /// Reads a stream in the background.
    fn read(&mut self, mut stream: Response) {
        let (sender, receiver) = mpsc::channel(64);
        self.general = receiver;
        let reading = tokio::spawn(async move {
            loop {
                // No limit: this stream is quiet most of the time.
                let Some(message) = stream.next_or_wait().await else {
                    return;
                };
                if sender.send(message).await.is_err() {
                    return;
                }
            }
        });
        self.reader = Some(reading.abort_handle());
    }

    /// Sends a request over HTTP. Returns its id and the response.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> (Value, Response) {
        let (request, headers) = self.request(method, params);
        match self.send(&request, &headers).await {
            Replies::Http(response) => (request["id"].clone(), response),
            Replies::Connection => unreachable!("the client has no HTTP"),
        }
    }

    /// Listens to these notifications. A legacy client does from the beginning on.
    pub(crate) async fn listen(&mut self, filter: Value) {
        if self.era == Era::Legacy {
            return;
        }
        let (request, headers) = self.request("subscriptions/listen", json!({ "notifications": filter }));
        let mut replies = self.send(&request, &headers).await;
        let first = self.next(&mut replies).await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        if let Replies::Http(stream) = replies {
            self.read(stream);
        }
    }

    /// Waits for a notification that belongs to no request.
    pub(crate) async fn wait_for(&mut self, method: &str) -> Value {
        if let Some(at) = self.seen.iter().position(|message| message["method"] == method) {
            return self.seen.remove(at).unwrap_or_default()["params"].take();
        }
        loop {
            let mut message = match &mut self.wire {
                Wire::Connection(connection) => receive(connection).await,
                Wire::Http { .. } => {
                    let next = timeout(PATIENCE, self.general.recv()).await;
                    next.unwrap_or_else(|_| panic!("`{method}` does not come"))
                        .expect("the stream is open")
                }
            };
            if message["method"] == method {
                return message["params"].take();
            }
            self.seen.push_back(message);
        }
    }

    /// The levels of this many log messages: those on the stream of a call, and further ones on the general stream.
    pub(crate) async fn logged(&mut self, outcome: &Outcome, count: usize) -> Vec<Value> {
        let mut levels: Vec<Value> = match self.wire {
            Wire::Http { .. } => {
                let messages = outcome.notified("notifications/message").into_iter();
                messages.map(|message| message["level"].clone()).collect()
            }
            // It has one stream.
            Wire::Connection(_) => Vec::new(),
        };
        while levels.len() < count {
            levels.push(self.wait_for("notifications/message").await["level"].take());
        }
        levels
    }

    /// The params of the notifications that have come while another one was waited for.
    pub(crate) fn seen_so_far(&self, method: &str) -> Vec<Value> {
        let seen = self.seen.iter().filter(|message| message["method"] == method);
        seen.map(|message| message["params"].clone()).collect()
    }

    /// The log messages that have come on the general stream so far.
    pub(crate) fn logs_so_far(&mut self) -> usize {
        while let Ok(message) = self.general.try_recv() {
            self.seen.push_back(message);
        }
        let is_log = |message: &&Value| message["method"] == "notifications/message";
        self.seen.iter().filter(is_log).count()
    }

    /// Waits for a notification, as long as a legacy client may have to wait for it, or for a moment.
    pub(crate) async fn wait_briefly_for(&mut self, method: &str) -> Option<Value> {
        if self.era == Era::Legacy {
            return Some(self.wait_for(method).await);
        }
        timeout(Duration::from_millis(500), self.wait_for(method)).await.ok()
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// Sends a request and answers what is asked meanwhile.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Outcome {
        let mut outcome = Outcome::default();
        let mut round = params.clone();
        loop {
            let (request, headers) = self.request(method, round);
            let mut replies = self.send(&request, &headers).await;
            self.exchange(&mut replies, &request["id"], &mut outcome).await;
            if outcome.response["result"]["resultType"] != "input_required" {
                return outcome;
            }
            round = params.clone();
            let result = &outcome.response["result"];
            if let Some(state) = result.get("requestState") {
                round["requestState"] = state.clone();
            }
            let mut answers = Map::new();
            for (key, question) in result["inputRequests"].as_object().cloned().unwrap_or_default() {
                let method = question["method"].as_str().expect("a method").to_owned();
                answers.insert(key, answer(&method));
                outcome.questions.push(method);
            }
            round["inputResponses"] = answers.into();
        }
    }

    /// Reads messages until the response.
    async fn exchange(&mut self, replies: &mut Replies, id: &Value, outcome: &mut Outcome) {
        loop {
            let message = self.next(replies).await;
            if message.get("method").is_none() {
                assert_eq!(message["id"], *id, "{message}");
                outcome.response = message;
                return;
            }
            if message.get("id").is_none() {
                if let Replies::Connection = replies {
                    // It may belong to no request.
                    self.seen.push_back(message.clone());
                }
                outcome.notifications.push(message);
                continue;
            }
            let method = message["method"].as_str().expect("a method").to_owned();
            let mut result = answer(&method);
            if let Some(meta) = message["params"].get("_meta") {
                result["_meta"] = meta.clone();
                outcome.question_metas.push(meta.clone());
            }
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            outcome.questions.push(method);
            self.tell(&answer).await;
        }
    }

    /// Polls a task until it is as wanted.
    pub(crate) async fn poll(&mut self, id: &Value, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let polled = async {
            loop {
                let status = self.ask("tasks/get", id.clone()).await;
                if is_wanted(status.result()) {
                    return status.result().clone();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, polled).await.expect("the task goes on")
    }

    /// Sends a request, and reads the first message about it.
    pub(crate) async fn first_message(&mut self, method: &str, params: Value) -> Value {
        let (request, headers) = self.request(method, params);
        let mut replies = self.send(&request, &headers).await;
        self.next(&mut replies).await
    }

    /// Sends a request, and returns the HTTP response and its body.
    pub(crate) async fn response(&mut self, method: &str, params: Value) -> (Response, Value) {
        let (request, headers) = self.request(method, params);
        let Replies::Http(mut response) = self.send(&request, &headers).await else {
            panic!("only HTTP has responses");
        };
        let body = response.next().await.expect("a body");
        (response, body)
    }

    /// Sends a request, and cancels it after `started`: a modern client over HTTP closes the stream, others send a notification.
    pub(crate) async fn cancel(&mut self, method: &str, params: Value, started: impl Future<Output = ()>) {
        let (request, headers) = self.request(method, params);
        let params = json!({"requestId": request["id"]});
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let Wire::Http { address, path } = &self.wire else {
            self.send(&request, &headers).await;
            started.await;
            return self.tell(&cancelled).await;
        };
        let sending = in_background(address.clone(), path.clone(), headers, request);
        started.await;
        match self.era {
            Era::Legacy => self.tell(&cancelled).await,
            Era::Modern => sending.abort(),
        }
    }

    pub(crate) fn session(&self) -> Option<String> {
        self.session.clone()
    }

    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> (Value, Vec<(&'static str, String)>) {
        self.last_id += 1;
        let mut meta = self.meta.clone();
        if let Value::Object(own) = params["_meta"].take() {
            meta.extend(own);
        }
        if self.era == Era::Modern {
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), MODERN.into());
            meta.insert(
                "io.modelcontextprotocol/clientCapabilities".into(),
                self.capabilities.clone(),
            );
            let info = json!({"name": "matrix", "version": "1"});
            meta.insert("io.modelcontextprotocol/clientInfo".into(), info);
        } else {
            meta.remove("io.modelcontextprotocol/logLevel");
        }
        params["_meta"] = meta.into();
        let name = match method {
            "resources/read" => params["uri"].as_str(),
            _ if method.starts_with("tasks/") => params["taskId"].as_str(),
            _ => params["name"].as_str(),
        };
        let headers = self.headers(Some((method, name)));
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        (request, headers)
    }

    fn headers(&self, request: Option<(&str, Option<&str>)>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("accept", "application/json, text/event-stream".to_owned())];
        headers.extend(self.more_headers.clone());
        if let Some(token) = &self.token {
            headers.push(("authorization", format!("Bearer {token}")));
        }
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session.clone()));
            headers.push(("mcp-protocol-version", "2025-11-25".to_owned()));
        }
        if self.era == Era::Modern {
            headers.push(("mcp-protocol-version", MODERN.to_owned()));
            if let Some((method, name)) = request {
                headers.push(("mcp-method", method.to_owned()));
                headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
            }
        }
        headers
    }
}

/// The next message of a connection.
async fn receive(connection: &mut InMemory) -> Value {
    let message = timeout(PATIENCE, connection.receive()).await;
    message.expect("a message in time").expect("the connection is open")
}

/// Sends a request over HTTP and reads its response. Aborting the task closes the connection.
fn in_background(
    address: String,
    path: String,
    headers: Vec<(&'static str, String)>,
    request: Value,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut response = http::send(&address, "POST", &path, &headers, &request.to_string()).await;
        while response.next_or_wait().await.is_some() {}
    })
}

/// What the user, the model and the host of these clients answer.
fn answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({"action": "accept", "content": {"colour": "green"}}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "forty-two"}})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
        other => panic!("a question that no server asks: {other}"),
    }
}
