//! An in-process server whose responses the test writes as bytes.

use pegboard::{
    Host, Pegboard, ServerConfig, ToolCall, Toolset, View,
    forward::{Forwarded, ForwardedResult, Forwarding},
    host::NoHost,
    status::Era,
};
use serde_json::{Value, json};

use crate::{line_server::LineServer, support::*};

pub(crate) use crate::line_server::until;

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
    lines: LineServer,
}

impl RawServer {
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            lines: LineServer::default(),
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
        self.lines
            .board(settings, host, move |message| this.react(message, &answer))
    }

    fn react(&self, message: &Value, answer: &impl Fn(&Value) -> Part) -> Option<String> {
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
        self.lines.say(message).await;
    }

    /// The messages received with this method so far.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        self.lines.with_method(method)
    }

    /// Waits until `count` messages with this method were received.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Value> {
        self.lines.wait_for(method, count).await
    }

    /// Waits for the response to the server's own request `id`.
    pub(crate) async fn answer_to(&self, id: &str) -> Value {
        let is_it = |message: &Value| message.get("method").is_none() && message["id"] == id;
        let found = || self.lines.messages().into_iter().find(is_it);
        until(id, || found().is_some()).await;
        found().unwrap()
    }
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
