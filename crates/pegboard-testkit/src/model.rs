//! A scripted model behind the OpenAI-compatible chat API, for tests of agent loops.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::server::lock;

type Turn = Box<dyn FnOnce(&Value) -> Result<Value, u16> + Send>;

/// A scripted model. Each request takes the next turn of the script; after the last one the response is 500.
///
/// ```
/// use pegboard_testkit::ScriptedModel;
///
/// let model = ScriptedModel::new()
///     .calls("time__now", r#"{"zone": "UTC"}"#)
///     .answers(|request| format!("it is {}", ScriptedModel::last_tool_text(request)));
/// # drop(model);
/// ```
#[derive(Default)]
pub struct ScriptedModel {
    turns: Vec<Turn>,
}

impl ScriptedModel {
    /// A model without turns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn with this text.
    pub fn says(self, text: &str) -> Self {
        let text = text.to_owned();
        self.answers(move |_| text)
    }

    /// Adds a turn whose text is computed from the request.
    pub fn answers(self, say: impl FnOnce(&Value) -> String + Send + 'static) -> Self {
        self.turn(|request| Ok(json!({"role": "assistant", "content": say(request)})))
    }

    /// Adds a turn with a tool call. The arguments are sent as they are and need not be JSON.
    pub fn calls(self, name: &str, arguments: &str) -> Self {
        self.calls_all(&[(name, arguments)])
    }

    /// Adds a turn with several tool calls.
    pub fn calls_all(self, calls: &[(&str, &str)]) -> Self {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(n, (name, arguments))| {
                let function = json!({"name": name, "arguments": arguments});
                json!({"id": format!("call_{n}"), "type": "function", "function": function})
            })
            .collect();
        self.turn(move |_| Ok(json!({"role": "assistant", "content": null, "tool_calls": calls})))
    }

    /// Adds a turn that fails with an HTTP status.
    pub fn fails(self, status: u16) -> Self {
        self.turn(move |_| Err(status))
    }

    fn turn(mut self, turn: impl FnOnce(&Value) -> Result<Value, u16> + Send + 'static) -> Self {
        self.turns.push(Box::new(turn));
        self
    }

    /// Listens on a loopback port.
    pub async fn serve(self) -> io::Result<ModelHandle> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Running {
            turns: Mutex::new(self.turns.into_iter()),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state(state.clone());
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(ModelHandle { address, state, task })
    }

    /// The text of the last message that is not the assistant's: a tool result or the user's message.
    pub fn last_tool_text(request: &Value) -> String {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.iter().rev().find(|message| message["role"] != "assistant");
        last.and_then(|message| message["content"].as_str())
            .unwrap_or_default()
            .to_owned()
    }
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedModel")
            .field("turns", &self.turns.len())
            .finish()
    }
}

/// A scripted model on a loopback port. It stops when the handle is dropped.
#[derive(Debug)]
pub struct ModelHandle {
    address: SocketAddr,
    state: Arc<Running>,
    task: JoinHandle<()>,
}

impl ModelHandle {
    /// The base URL of the API: `http://127.0.0.1:PORT/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the requests so far, each with the header `authorization` added.
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.state.requests).clone()
    }
}

impl Drop for ModelHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Running {
    turns: Mutex<std::vec::IntoIter<Turn>>,
    requests: Mutex<Vec<Value>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

async fn complete(
    State(state): State<Arc<Running>>,
    headers: HeaderMap,
    Json(mut request): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    request["authorization"] = authorization.into();
    lock(&state.requests).push(request.clone());
    let turn = lock(&state.turns).next();
    let message = match turn.map(|turn| turn(&request)) {
        Some(Ok(message)) => message,
        Some(Err(status)) => return Err(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)),
        None => return Err(StatusCode::INTERNAL_SERVER_ERROR),
    };
    let reason = if message.get("tool_calls").is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    Ok(Json(json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })))
}
