//! The raw connection over streamable HTTP: one POST for each message.

use std::{collections::HashMap, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use pegboard_base::sync::Mutex;
use pegboard_client::transport::sse_parser::Parser;
use pegboard_config::{Auth, Endpoint};
use pegboard_http::{Client, Error, Response, Settings, Target};
use pegboard_protocol::{header, meta};
use rustls::ClientConfig;
use serde_json::Value;
use tokio::{sync::mpsc, task::AbortHandle};

use super::incoming::{Incoming, MAX_MESSAGE, QUEUE, read};

/// How long the DELETE request at the end of a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// The endpoint of the server under test.
#[derive(Debug, Clone)]
pub(super) struct HttpTarget {
    client: Client,
    target: Arc<Target>,
    headers: HeaderMap,
}

impl HttpTarget {
    /// A client for an endpoint, or why there can be none.
    pub(super) fn new(endpoint: &Endpoint, tls: ClientConfig) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            let name = HeaderName::try_from(name).map_err(|error| error.to_string())?;
            headers.insert(name, header(value.expose())?);
        }
        let authorization = match &endpoint.auth {
            Auth::None | Auth::Anonymous => None,
            Auth::Bearer(token) => Some(format!("Bearer {}", token.expose())),
            Auth::Basic { user, password } => {
                let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
                Some(format!("Basic {pair}"))
            }
            Auth::BearerFile(path) => {
                let token = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Some(format!("Bearer {}", token.trim()))
            }
            _ => return Err("`torture` does not sign in; set `auth.bearer` or a header".to_owned()),
        };
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, header(&value)?);
        }
        let target = Target::new(endpoint.url.expose().clone()).map_err(|error| error.to_string())?;
        Ok(Self {
            client: Client::new(&target, Settings::new(tls)),
            target: Arc::new(target),
            headers,
        })
    }

    pub(super) fn open(&self) -> HttpWire {
        let (sender, incoming) = mpsc::channel(QUEUE);
        HttpWire {
            target: self.clone(),
            version: None,
            session: Arc::default(),
            sender,
            incoming,
            running: HashMap::new(),
            anonymous: 0,
        }
    }

    /// Sends a message with the headers that every message has, and more.
    pub(super) async fn post(&self, body: String, more: HeaderMap) -> Result<Response, Error> {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.extend(more);
        self.client.send(Method::POST, &self.target, headers, body).await
    }

    /// Ends a session.
    async fn delete(&self, session: HeaderValue) {
        let mut headers = self.headers.clone();
        headers.insert(header::SESSION_ID, session);
        // The server may keep the session; that is no concern of the case that used it.
        let _ = self
            .client
            .send(Method::DELETE, &self.target, headers, Vec::new())
            .await;
    }
}

fn header(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|error| error.to_string())
}

/// The session id that the server assigned.
type SessionId = Arc<Mutex<Option<HeaderValue>>>;

/// A connection to the server under test. Dropping it aborts its requests and ends its session.
#[derive(Debug)]
pub(super) struct HttpWire {
    pub(super) target: HttpTarget,
    /// The version in the header of each request.
    pub(super) version: Option<String>,
    session: SessionId,
    sender: mpsc::Sender<Incoming>,
    pub(super) incoming: mpsc::Receiver<Incoming>,
    /// The requests in flight, by the JSON of their id.
    running: HashMap<String, AbortHandle>,
    /// The number of messages without an id.
    anonymous: u64,
}

impl HttpWire {
    /// Posts a message. What comes back arrives in `incoming`.
    pub(super) fn post(&mut self, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let (headers, text, target) = (self.headers_of(&message), text.to_owned(), self.target.clone());
        let (sender, session) = (self.sender.clone(), self.session.clone());
        let task = tokio::spawn(async move {
            let end = match target.post(text, headers).await {
                Ok(response) => pass_on(response, &sender, &session).await,
                Err(error) => Err(error.to_string()),
            };
            if let Err(end) = end {
                // If this fails, the case has ended and reads no more.
                let _ = sender.send(Incoming::Closed(end)).await;
            }
        });
        self.running.retain(|_, task| !task.is_finished());
        let key = match message.get("id") {
            Some(id) => id.to_string(),
            None => {
                self.anonymous += 1;
                format!("notification {}", self.anonymous)
            }
        };
        self.running.insert(key, task.abort_handle());
    }

    /// Closes the response stream of a request, which cancels it in the modern era.
    pub(super) fn abort(&mut self, id: &Value) {
        if let Some(task) = self.running.remove(&id.to_string()) {
            task.abort();
        }
    }

    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.session.lock().clone()
    }

    fn headers_of(&self, message: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = self.session() {
            headers.insert(header::SESSION_ID, id);
        }
        let of_meta = message
            .pointer("/params/_meta")
            .and_then(|meta| meta.get(meta::PROTOCOL_VERSION));
        let is_modern = of_meta.is_some();
        let version = of_meta.and_then(Value::as_str).or(self.version.as_deref());
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(version).ok()) {
            headers.insert(header::PROTOCOL_VERSION, version);
        }
        if is_modern {
            let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).map(encode);
            text("/method").map(|method| headers.insert(header::METHOD, method));
            let name = text("/params/name").or_else(|| text("/params/uri"));
            name.map(|name| headers.insert(header::NAME, name));
        }
        headers
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.running.values().for_each(AbortHandle::abort);
        if let (Some(id), Ok(runtime)) = (self.session(), tokio::runtime::Handle::try_current()) {
            let target = self.target.clone();
            runtime.spawn(async move { tokio::time::timeout(DELETE_TIMEOUT, target.delete(id)).await });
        }
    }
}

fn encode(text: &str) -> HeaderValue {
    HeaderValue::from_str(&header::encode_value(text)).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Passes on the messages of a response; fails if the connection broke.
async fn pass_on(mut response: Response, sender: &mpsc::Sender<Incoming>, session: &SessionId) -> Result<(), String> {
    if let Some(id) = response.headers().get(header::SESSION_ID) {
        *session.lock() = Some(id.clone());
    }
    let status = response.status();
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let is_stream = kind.starts_with("text/event-stream");
    if is_stream {
        return pass_on_events(response, sender).await;
    }
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if text.len() + chunk.len() > MAX_MESSAGE {
            return Err(too_long());
        }
        text.extend_from_slice(&chunk);
    }
    let text = String::from_utf8_lossy(&text);
    let incoming = match read(&text) {
        Incoming::Message(value) if value.get("jsonrpc").is_some() || value.is_array() => Incoming::Message(value),
        _ if status.is_success() && text.trim().is_empty() => return Ok(()),
        noise if status.is_success() => noise,
        _ => Incoming::Status(status.as_u16(), text.chars().take(200).collect()),
    };
    // If this fails, the case has ended and reads no more.
    let _ = sender.send(incoming).await;
    Ok(())
}

/// Passes on the messages of an event stream.
async fn pass_on_events(mut response: Response, sender: &mpsc::Sender<Incoming>) -> Result<(), String> {
    let mut parser = Parser::new(MAX_MESSAGE);
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        let mut events = Vec::new();
        let parsed = parser.feed(&chunk, |event| events.push(event.data));
        // An event without data only names where the stream can be resumed.
        for data in events.into_iter().filter(|data| !data.is_empty()) {
            if sender.send(read(&String::from_utf8_lossy(&data))).await.is_err() {
                return Ok(());
            }
        }
        parsed.map_err(|_| too_long())?;
    }
    Ok(())
}

fn too_long() -> String {
    format!("a response is longer than {MAX_MESSAGE} bytes")
}
