//! The raw connection over streamable HTTP: one POST for each message.

use std::{collections::HashMap, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use pegboard_base::sync::Mutex;
use pegboard_client::transport::sse_parser::Parser;
use pegboard_config::{Auth, Endpoint};
use pegboard_protocol::{header, meta};
use reqwest::{
    Client, ClientBuilder, RequestBuilder, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use tokio::{sync::mpsc, task::AbortHandle};
use url::Url;

use super::incoming::{Incoming, MAX_MESSAGE, QUEUE, read};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the DELETE request at the end of a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// The endpoint of the server under test.
#[derive(Debug, Clone)]
pub(super) struct HttpTarget {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

impl HttpTarget {
    /// A client for an endpoint, or why there can be none.
    pub(super) fn new(endpoint: &Endpoint, mut builder: ClientBuilder) -> Result<Self, String> {
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
        let url = endpoint.url.expose().clone();
        if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            // A proxy on another machine cannot reach this machine's loopback address.
            builder = builder.no_proxy();
        }
        let client = builder
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { client, url, headers })
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

    /// A POST request with the headers that every message has.
    pub(super) fn request(&self, body: String) -> RequestBuilder {
        self.client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(body)
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
        let mut request = self.target.request(text.to_owned());
        let message: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        for (name, value) in self.headers_of(&message) {
            request = request.header(name, value);
        }
        let (sender, session) = (self.sender.clone(), self.session.clone());
        let task = tokio::spawn(async move {
            let end = match request.send().await {
                Ok(response) => pass_on(response, &sender, &session).await,
                Err(error) => Err(error.without_url().to_string()),
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

    fn headers_of(&self, message: &Value) -> Vec<(&'static str, HeaderValue)> {
        let mut headers = Vec::new();
        if let Some(id) = self.session() {
            headers.push((header::SESSION_ID, id));
        }
        let of_meta = message
            .pointer("/params/_meta")
            .and_then(|meta| meta.get(meta::PROTOCOL_VERSION));
        let is_modern = of_meta.is_some();
        let version = of_meta.and_then(Value::as_str).or(self.version.as_deref());
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(version).ok()) {
            headers.push((header::PROTOCOL_VERSION, version));
        }
        if is_modern {
            let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).map(encode);
            headers.extend(text("/method").map(|method| (header::METHOD, method)));
            let name = text("/params/name").or_else(|| text("/params/uri"));
            headers.extend(name.map(|name| (header::NAME, name)));
        }
        headers
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.running.values().for_each(AbortHandle::abort);
        if let (Some(id), Ok(runtime)) = (self.session(), tokio::runtime::Handle::try_current()) {
            let request = self
                .target
                .client
                .delete(self.target.url.clone())
                .headers(self.target.headers.clone())
                .header(header::SESSION_ID, id)
                .timeout(DELETE_TIMEOUT);
            // The server may keep the session; that is no concern of the case that used it.
            runtime.spawn(async move { drop(request.send().await) });
        }
    }
}

fn encode(text: &str) -> HeaderValue {
    HeaderValue::from_str(&header::encode_value(text)).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Passes on the messages of a response; fails if the connection broke.
async fn pass_on(response: Response, sender: &mpsc::Sender<Incoming>, session: &SessionId) -> Result<(), String> {
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
    let mut body = response.bytes_stream();
    if is_stream {
        return pass_on_events(body, sender).await;
    }
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| error.without_url().to_string())?;
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
async fn pass_on_events(
    mut body: impl Stream<Item = reqwest::Result<Bytes>> + Unpin,
    sender: &mpsc::Sender<Incoming>,
) -> Result<(), String> {
    let mut parser = Parser::new(MAX_MESSAGE);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| error.without_url().to_string())?;
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
