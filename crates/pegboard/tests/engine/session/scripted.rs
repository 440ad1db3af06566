//! In-process servers whose every response the test writes, in both eras, and hosts that answer their requests.

use std::{pin::Pin, sync::Arc};

use pegboard::{
    Host, Pegboard, ServerConfig, Toolset,
    host::{ElicitAnswer, Elicitation, HostContext},
    status::Era,
};
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};

use crate::{line_server::LineServer, support::*};

pub(crate) use crate::line_server::until;

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// The server's reaction to a request that the script decides on.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Result(Value),
    Error(i64, &'static str, Value),
    /// No response, now or ever.
    Silence,
}

pub(crate) fn result(value: Value) -> Answer {
    Answer::Result(value)
}

/// A scripted server and all messages that it received.
#[derive(Clone)]
pub(crate) struct Scripted {
    era: Era,
    /// The capabilities, and the result of each listing.
    offers: Value,
    lines: LineServer,
}

impl Scripted {
    /// A server with these capabilities and listings: `capabilities`, `tools`, `resources`, `resourceTemplates`, `prompts`.
    pub(crate) fn new(era: Era, offers: Value) -> Self {
        Self {
            era,
            offers,
            lines: LineServer::default(),
        }
    }

    /// A board with this server as `fx`, and this host.
    pub(crate) fn board(
        &self,
        host: impl Host,
        answer: impl Fn(&Value) -> Answer + Clone + Send + Sync + 'static,
    ) -> Pegboard {
        self.board_with(in_process_settings(), host, answer)
    }

    /// The same with custom settings.
    pub(crate) fn board_with(
        &self,
        settings: ServerConfig,
        host: impl Host,
        answer: impl Fn(&Value) -> Answer + Clone + Send + Sync + 'static,
    ) -> Pegboard {
        let this = self.clone();
        self.lines
            .board(settings, host, move |message| this.react(message, &answer))
    }

    fn react(&self, message: &Value, answer: &impl Fn(&Value) -> Answer) -> Option<String> {
        message.get("id")?;
        let method = message["method"].as_str()?;
        let answer = match (self.era, method) {
            (Era::Legacy, "initialize") => result(json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": self.offers["capabilities"],
                "serverInfo": { "name": "scripted", "version": "1" },
            })),
            (Era::Modern, "server/discover") => {
                result(json!({ "supportedVersions": ["2026-07-28"], "capabilities": self.offers["capabilities"] }))
            }
            (_, "initialize" | "server/discover") => Answer::Error(-32601, "no such method", Value::Null),
            (_, "ping") => result(json!({})),
            (_, "tools/list") => result(json!({ "tools": self.list("tools") })),
            (_, "resources/list") => result(json!({ "resources": self.list("resources") })),
            (_, "resources/templates/list") => result(json!({ "resourceTemplates": self.list("resourceTemplates") })),
            (_, "prompts/list") => result(json!({ "prompts": self.list("prompts") })),
            _ => answer(message),
        };
        let id = &message["id"];
        Some(match answer {
            Answer::Result(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
            Answer::Error(code, text, data) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text, "data": data } })
                    .to_string()
            }
            Answer::Silence => return None,
        })
    }

    fn list(&self, key: &str) -> Value {
        self.offers.get(key).cloned().unwrap_or_else(|| json!([]))
    }

    /// Sends a message that is not a response.
    pub(crate) async fn say(&self, message: Value) {
        self.lines.say(message).await;
    }

    /// Closes the connection.
    pub(crate) fn hang_up(&self) {
        self.lines.hang_up();
    }

    pub(crate) fn starts(&self) -> usize {
        self.lines.starts()
    }

    /// The parameters of the messages received with this method so far.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        params_of(self.lines.with_method(method))
    }

    /// The ids of the messages received with this method so far.
    pub(crate) fn ids(&self, method: &str) -> Vec<Value> {
        let fitting = self.lines.with_method(method).into_iter();
        fitting.map(|mut message| message["id"].take()).collect()
    }

    /// The responses to the server's own requests.
    pub(crate) fn answers(&self) -> Vec<Value> {
        let mut messages = self.lines.messages();
        messages.retain(|message| message.get("method").is_none());
        messages
    }

    /// Whether the last request with this method was cancelled.
    pub(crate) fn was_cancelled(&self, method: &str) -> bool {
        let Some(last) = self.lines.with_method(method).pop() else {
            return false;
        };
        let cancelled = self.received("notifications/cancelled");
        cancelled.iter().any(|params| params["requestId"] == last["id"])
    }

    /// Waits until `count` messages with this method were received.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Value> {
        params_of(self.lines.wait_for(method, count).await)
    }
}

fn params_of(messages: Vec<Value>) -> Vec<Value> {
    let messages = messages.into_iter();
    messages.map(|mut message| message["params"].take()).collect()
}

/// A user who gives the same answer to every request after a delay, and records the requests.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) answer: ElicitAnswer,
    pub(crate) delay: std::time::Duration,
    pub(crate) asked: Arc<Mutex<Vec<Elicitation>>>,
}

impl User {
    pub(crate) fn who(answer: ElicitAnswer) -> Self {
        Self {
            answer,
            delay: std::time::Duration::ZERO,
            asked: Arc::default(),
        }
    }

    pub(crate) fn types(form: Value) -> Self {
        match form {
            Value::Object(form) => Self::who(ElicitAnswer::Accept(form)),
            other => panic!("{other}"),
        }
    }

    pub(crate) fn after(mut self, delay: std::time::Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().len()
    }
}

impl Host for User {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        self.asked.lock().push(request);
        Box::pin(async {
            tokio::time::sleep(self.delay).await;
            self.answer.clone()
        })
    }
}

/// A form with one field, `colour`.
pub(crate) fn colour() -> Value {
    json!({"mode": "form", "message": "Which colour?",
           "requestedSchema": {"type": "object", "required": ["colour"], "properties": {"colour": {"type": "string"}}}})
}

pub(crate) async fn text(tools: &Toolset, tool: &str) -> String {
    call(tools, tool, json!({})).await.text()
}

pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

pub(crate) fn said(text: &str) -> Answer {
    result(json!({"content": [{"type": "text", "text": text}]}))
}
