//! [`Client`]: one session with the server under test, on a connection of its own.

use std::{collections::VecDeque, time::Duration};

use pegboard_protocol::{
    Era, code, meta,
    method::{self, notification},
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::{
    incoming::Incoming,
    stdio::StdioWire,
    stop::{Stop, fail, skip},
    transcript::{Transcript, shorten},
    wire::{Target, Wire},
};

/// How long the first response may take at least: the server is still starting.
pub(super) const START: Duration = Duration::from_secs(60);
/// How many times as long as other responses that of a tool may take.
const CALL_WAITS: u32 = 3;
/// How many messages that no case has asked for yet are kept.
const STASH: usize = 20_000;

/// A session with the server under test.
#[derive(Debug)]
pub(super) struct Client {
    wire: Wire,
    pub(super) era: Era,
    /// How long a response may take.
    pub(super) wait: Duration,
    /// How long the first response may take over stdio.
    pub(super) start: Duration,
    transcript: Transcript,
    next_id: i64,
    /// Whether messages are sent that the case is not about.
    is_aside: bool,
    /// Whether anything has arrived.
    has_started: bool,
    /// Messages that arrived while another was awaited.
    stash: VecDeque<Value>,
    /// Lines that are not JSON.
    pub(super) noise: Vec<String>,
    /// The result of the handshake.
    pub(super) greeting: Value,
}

/// A response.
#[derive(Debug)]
pub(super) enum Reply {
    Result(Value),
    Error { code: Option<i64>, message: String },
}

impl Reply {
    fn new(mut message: Value) -> Self {
        match message.get_mut("error").map(Value::take) {
            Some(error) => Self::Error {
                code: error.get("code").and_then(Value::as_i64),
                message: error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            },
            None => Self::Result(message.get_mut("result").map(Value::take).unwrap_or_default()),
        }
    }

    /// The result, or a failure that names the request.
    pub(super) fn result(self, of: &str) -> Result<Value, Stop> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error { code, message } => {
                fail(format!("`{of}` got the error {}: {message}", code.unwrap_or_default()))
            }
        }
    }

    /// Fails unless it is an error with one of these codes.
    pub(super) fn expect_error(self, of: &str, codes: &[i64]) -> Result<(), Stop> {
        let wanted: Vec<String> = codes.iter().map(ToString::to_string).collect();
        let wanted = wanted.join(" or ");
        match self {
            Self::Result(_) => fail(format!("{of} got a result in place of the error {wanted}")),
            Self::Error { code: Some(code), .. } if codes.contains(&code) => Ok(()),
            Self::Error { code, .. } => fail(format!(
                "{of} got the error {} in place of {wanted}",
                code.map_or_else(|| "without a code".to_owned(), |code| code.to_string())
            )),
        }
    }

    /// Whether it is an error, or the result of a tool that failed.
    pub(super) fn is_failure(&self) -> bool {
        match self {
            Self::Error { .. } => true,
            Self::Result(result) => result.get("isError") == Some(&Value::Bool(true)),
        }
    }
}

impl Client {
    /// Opens a connection and sends nothing.
    pub(super) async fn connect(
        target: &Target,
        era: Era,
        wait: Duration,
        transcript: Transcript,
    ) -> Result<Self, Stop> {
        transcript.clear();
        let wire = match target.open().await {
            Ok(wire) => wire,
            Err(error) => return fail(format!("the server cannot be started: {error}")),
        };
        Ok(Self {
            wire,
            era,
            wait,
            start: wait.max(START),
            transcript,
            next_id: 1,
            is_aside: false,
            has_started: false,
            stash: VecDeque::new(),
            noise: Vec::new(),
            greeting: Value::Null,
        })
    }

    /// Sends `initialize` with a version and returns the response. No notification follows yet.
    pub(super) async fn initialize(&mut self, version: &str) -> Result<Reply, Stop> {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "pegboard-torture", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request(method::INITIALIZE, params).await
    }

    /// Opens the session: the whole handshake, or `server/discover`.
    pub(super) async fn open(&mut self) -> Result<(), Stop> {
        self.is_aside = true;
        let greeted = self.greet().await;
        self.is_aside = false;
        self.greeting = greeted?;
        Ok(())
    }

    async fn greet(&mut self) -> Result<Value, Stop> {
        match self.era {
            Era::Modern => {
                let found = self
                    .request(method::SERVER_DISCOVER, json!({}))
                    .await?
                    .result(method::SERVER_DISCOVER)?;
                let versions = found.get("supportedVersions").and_then(Value::as_array);
                let speaks =
                    versions.is_some_and(|all| all.iter().any(|one| one == self.era.latest_version().as_str()));
                if !speaks {
                    return fail(format!(
                        "`server/discover` does not offer {}",
                        self.era.latest_version().as_str()
                    ));
                }
                Ok(found)
            }
            Era::Legacy => {
                let result = self
                    .initialize(self.era.latest_version().as_str())
                    .await?
                    .result(method::INITIALIZE)?;
                self.set_version(result.get("protocolVersion").and_then(Value::as_str));
                self.send_initialized().await?;
                Ok(result)
            }
        }
    }

    /// Sends the notification that ends the handshake.
    pub(super) async fn send_initialized(&mut self) -> Result<(), Stop> {
        let was_aside = std::mem::replace(&mut self.is_aside, true);
        let sent = self.notify(notification::INITIALIZED, json!({})).await;
        self.is_aside = was_aside;
        sent
    }

    /// The version that the headers of HTTP requests name from now on.
    pub(super) fn set_version(&mut self, version: Option<&str>) {
        if let Wire::Http(wire) = &mut self.wire {
            wire.version = version.map(str::to_owned);
        }
    }

    pub(super) fn capability(&self, name: &str) -> Option<&Value> {
        self.greeting.get("capabilities")?.get(name)
    }

    /// Sends a request and waits for its response.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<Reply, Stop> {
        let id = self.start(method, params).await?;
        self.response(&id, method).await
    }

    /// Sends a request with the next id.
    pub(super) async fn start(&mut self, method: &str, params: Value) -> Result<Value, Stop> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.start_with(&id, method, params).await?;
        Ok(id)
    }

    /// Sends a request with this id.
    pub(super) async fn start_with(&mut self, id: &Value, method: &str, params: Value) -> Result<(), Stop> {
        let params = self.with_meta(params);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message.to_string()).await
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) -> Result<(), Stop> {
        let params = self.with_meta(params);
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send(&message.to_string()).await
    }

    /// The params with what every modern request has.
    pub(super) fn with_meta(&self, params: Value) -> Value {
        let Value::Object(mut params) = params else {
            return params;
        };
        if self.era == Era::Modern {
            let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(meta) = meta {
                let client = json!({"name": "pegboard-torture", "version": env!("CARGO_PKG_VERSION")});
                for (key, value) in [
                    (meta::PROTOCOL_VERSION, json!(self.era.latest_version().as_str())),
                    (meta::CLIENT_INFO, client),
                    (meta::CLIENT_CAPABILITIES, json!({})),
                ] {
                    meta.entry(key).or_insert(value);
                }
            }
        }
        Value::Object(params)
    }

    /// Sends any text as one message.
    pub(super) async fn send(&mut self, text: &str) -> Result<(), Stop> {
        match self.is_aside {
            true => self.transcript.record_sent_aside(text),
            false => self.transcript.record_sent(text),
        }
        match self.wire.send(text, self.wait).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let end = self.describe_end(error.to_string()).await;
                fail(format!("nothing could be sent: {end}"))
            }
        }
    }

    /// Waits for the response to a request.
    pub(super) async fn response(&mut self, id: &Value, of: &str) -> Result<Reply, Stop> {
        let is_it = |message: &Value| is_response(message) && message.get("id") == Some(id);
        let limit = match of {
            method::TOOLS_CALL => self.wait * CALL_WAITS,
            _ if !self.has_started && matches!(self.wire, Wire::Stdio(_)) => self.start,
            _ => self.wait,
        };
        match self.find(is_it, limit).await? {
            Some(message) => Ok(Reply::new(message)),
            None => fail(format!("no response to `{of}` within {limit:?}")),
        }
    }

    /// Waits for a response to any request; `None` if there is none within `limit`.
    pub(super) async fn any_response(&mut self, limit: Duration) -> Result<Option<Value>, Stop> {
        self.find(is_response, limit).await
    }

    /// Waits for a message that `is_it` accepts, and keeps the others.
    pub(super) async fn find(
        &mut self,
        is_it: impl Fn(&Value) -> bool,
        limit: Duration,
    ) -> Result<Option<Value>, Stop> {
        if let Some(at) = self.stash.iter().position(&is_it) {
            return Ok(self.stash.remove(at));
        }
        let due = Instant::now() + limit;
        loop {
            let incoming = match timeout_at(due, self.wire.receive()).await {
                Ok(Some(incoming)) => incoming,
                Ok(None) => Incoming::Closed("the connection ended".to_owned()),
                Err(_) => return Ok(None),
            };
            match incoming {
                Incoming::Message(message) => {
                    self.has_started = true;
                    if is_it(&message) {
                        match self.is_aside {
                            true => self.transcript.came_aside(&message.to_string()),
                            false => self.transcript.record_received(&message.to_string()),
                        }
                        return Ok(Some(message));
                    }
                    self.transcript.record_received(&message.to_string());
                    self.set_aside(message).await?;
                }
                Incoming::Noise(text) => {
                    self.transcript.record_received(&text);
                    if self.noise.len() < STASH {
                        self.noise.push(text);
                    }
                }
                Incoming::Status(status, body) => {
                    self.transcript.record_received(&format!("HTTP {status} {body}"));
                    return fail(format!(
                        "the server answered with HTTP status {status} and no JSON-RPC message"
                    ));
                }
                Incoming::Closed(end) => {
                    let end = self.describe_end(end).await;
                    return fail(format!("the connection ended: {}", shorten(&end)));
                }
            }
        }
    }

    /// Keeps a message for later, or answers it if it is a request.
    async fn set_aside(&mut self, message: Value) -> Result<(), Stop> {
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method::PING), Some(id)) => {
                let response = json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string();
                self.send_quietly(&response).await
            }
            (Some(_), Some(id)) => {
                let error = json!({"code": code::METHOD_NOT_FOUND, "message": "this client offers nothing"});
                let response = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
                self.send_quietly(&response).await
            }
            _ if self.stash.len() >= STASH => fail(format!("more than {STASH} messages came that nobody asked for")),
            _ => {
                self.stash.push_back(message);
                Ok(())
            }
        }
    }

    async fn send_quietly(&mut self, text: &str) -> Result<(), Stop> {
        match self.wire.send(text, self.wait).await {
            Ok(()) => Ok(()),
            Err(error) => fail(error.to_string()),
        }
    }

    /// Checks that the server still answers a valid request. A failure shows the message before it, which is what the server did not survive.
    pub(super) async fn still_answers(&mut self) -> Result<(), Stop> {
        let method = self.harmless();
        let id = json!(format!("still there {}", self.next_id));
        self.next_id += 1;
        self.is_aside = true;
        let answered = match self.start_with(&id, method, json!({})).await {
            Ok(()) => self.response(&id, method).await,
            Err(stop) => Err(stop),
        };
        self.is_aside = false;
        match answered {
            Ok(_) => Ok(()),
            Err(Stop::Fail(why)) => fail(format!("a valid request after it failed: {why}")),
            Err(stop) => Err(stop),
        }
    }

    /// A request that every server of the era answers.
    pub(super) fn harmless(&self) -> &'static str {
        match self.era {
            Era::Modern => method::SERVER_DISCOVER,
            Era::Legacy => method::PING,
        }
    }

    /// The notifications that have arrived so far.
    pub(super) fn notifications(&self) -> impl Iterator<Item = &Value> {
        self.stash.iter().filter(|message| message.get("method").is_some())
    }

    /// The responses that arrived and that no request is waiting for.
    pub(super) fn stray_responses(&self) -> impl Iterator<Item = &Value> {
        self.stash.iter().filter(|message| is_response(message))
    }

    /// Cancels a request in the way of the era and the transport.
    pub(super) async fn cancel(&mut self, id: &Value) -> Result<(), Stop> {
        if let (Era::Modern, Wire::Http(wire)) = (self.era, &mut self.wire) {
            self.transcript.record_sent("(the response stream was closed)");
            wire.abort(id);
            return Ok(());
        }
        let params = json!({"requestId": id, "reason": "torture"});
        self.notify(notification::CANCELLED, params).await
    }

    /// The process of the server; skips the case if there is none.
    pub(super) fn process(&mut self) -> Result<&mut StdioWire, Stop> {
        match &mut self.wire {
            Wire::Stdio(wire) => Ok(wire),
            Wire::Http(_) => skip("the server is reached over HTTP"),
        }
    }

    /// The id of the session over HTTP, if the server assigned one.
    pub(super) fn session_id(&self) -> Option<String> {
        match &self.wire {
            Wire::Stdio(_) => None,
            Wire::Http(wire) => wire.session().and_then(|id| id.to_str().ok().map(str::to_owned)),
        }
    }

    async fn describe_end(&mut self, how: String) -> String {
        match &mut self.wire {
            Wire::Stdio(wire) => wire.describe_end().await,
            Wire::Http(_) => how,
        }
    }
}

fn is_response(message: &Value) -> bool {
    message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
}
