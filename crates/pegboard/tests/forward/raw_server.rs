//! An in-process server whose responses the test writes as bytes.

use std::sync::{Arc, Mutex};

use pegboard::{
    Config, Host, Pegboard, ServerConfig, ToolCall, Toolset, View,
    forward::{Forwarded, ForwardedResult, Forwarding},
    host::NoHost,
    status::Era,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    sync::mpsc,
};

use crate::support::*;

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// The part of a response after its id: `"result":…` or `"error":…`. Without one there is no response.
pub(crate) type Part = Option<String>;

pub(crate) fn result(json: impl AsRef<str>) -> Part {
    Some(format!("\"result\":{}", json.as_ref()))
}

pub(crate) fn error(error: &Value) -> Part {
    Some(format!("\"error\":{error}"))
}

pub(crate) fn text(text: &str) -> Part {
    result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}

/// A server with the tools `t` and `task`, and all messages that it received.
#[derive(Clone)]
pub(crate) struct RawServer {
    era: Era,
    received: Arc<Mutex<Vec<Value>>>,
    out: Arc<Mutex<Option<mpsc::Sender<String>>>>,
}

impl RawServer {
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            received: Arc::default(),
            out: Arc::default(),
        }
    }

    /// A board with this server as `fx`.
    pub(crate) fn board(&self, answer: impl Fn(&Value) -> Part + Clone + Send + Sync + 'static) -> Pegboard {
        self.board_with(in_process_settings(), NoHost, answer)
    }

    pub(crate) fn board_with(
        &self,
        settings: ServerConfig,
        host: impl Host,
        answer: impl Fn(&Value) -> Part + Clone + Send + Sync + 'static,
    ) -> Pegboard {
        let this = self.clone();
        let dialer = move || {
            let (ours, theirs) = duplex(64 << 10);
            let (tell, told) = mpsc::channel(256);
            *this.out.lock().unwrap() = Some(tell);
            tokio::spawn(this.clone().serve(theirs, told, answer.clone()));
            halves(ours)
        };
        let builder = Pegboard::builder(Config::default()).host(host).without_jitter();
        builder.in_process_with(name("fx"), dialer, settings).open()
    }

    async fn serve(self, stream: DuplexStream, mut told: mpsc::Receiver<String>, answer: impl Fn(&Value) -> Part) {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BufReader::new(read).lines();
        loop {
            let text = tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.react(&serde_json::from_str(&line).unwrap(), &answer),
                    _ => return,
                },
                text = told.recv() => match text {
                    Some(text) => Some(text),
                    None => return,
                },
            };
            if let Some(text) = text
                && write.write_all((text + "\n").as_bytes()).await.is_err()
            {
                return;
            }
        }
    }

    fn react(&self, message: &Value, answer: &impl Fn(&Value) -> Part) -> Option<String> {
        self.received.lock().unwrap().push(message.clone());
        let id = message.get("id")?;
        let capabilities = json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}, "x": {"a": 1},
            "tasks": {"requests": {"tools": {"call": {}}}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let info = json!({"name": "raw", "version": "1", "title": "Raw", "icons": [{"src": "a:b"}]});
        let part = match (self.era, message["method"].as_str()?) {
            (Era::Legacy, "initialize") => result(
                json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": capabilities,
                    "serverInfo": info, "instructions": "be kind"})
                .to_string(),
            ),
            (Era::Modern, "server/discover") => result(
                json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "instructions": "be kind",
                    "_meta": {"io.modelcontextprotocol/serverInfo": info}})
                .to_string(),
            ),
            (_, "initialize" | "server/discover") => error(&json!({"code": -32601, "message": "no such method"})),
            (_, "ping") => result("{}"),
            (_, "tools/list") => {
                let tool = |name: &str, task: &str| json!({"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": task}});
                result(json!({"tools": [tool("t", "forbidden"), tool("task", "optional")]}).to_string())
            }
            (_, "resources/list") => result(r#"{"resources":[]}"#),
            (_, "resources/templates/list") => result(r#"{"resourceTemplates":[]}"#),
            (_, "prompts/list") => result(r#"{"prompts":[]}"#),
            _ => answer(message),
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{}}}"#, part?))
    }

    /// Sends a message that is not a response.
    pub(crate) async fn say(&self, message: Value) {
        let out = self.out.lock().unwrap().clone().unwrap();
        out.send(message.to_string()).await.unwrap();
    }

    /// The messages received with this method so far.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let fitting = received.iter().filter(|message| message["method"] == method);
        fitting.cloned().collect()
    }

    /// Waits until `count` messages with this method were received.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Value> {
        until(method, || self.received(method).len() >= count).await;
        self.received(method)
    }

    /// Waits for the response to the server's own request `id`.
    pub(crate) async fn answer_to(&self, id: &str) -> Value {
        let is_it = |message: &&Value| message.get("method").is_none() && message["id"] == id;
        let found = || self.received.lock().unwrap().iter().find(is_it).cloned();
        until(id, || found().is_some()).await;
        found().unwrap()
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(secs(60), waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until: {what}"));
}

/// A view that passes results on whole.
pub(crate) fn whole() -> View {
    View::new().whole_results()
}

pub(crate) async fn forward(tools: &Toolset, tool: &str) -> Forwarded {
    tools.forward_call(ToolCall::new(tool), &Forwarding::new()).await
}

pub(crate) fn of_result(forwarded: Forwarded) -> ForwardedResult {
    match forwarded {
        Forwarded::Result(result) => result,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn json_of(forwarded: Forwarded) -> String {
    String::from_utf8(of_result(forwarded).into_bytes().to_vec()).unwrap()
}
