//! [`Kit`]: an rmcp handler with a tool for each behaviour.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, MetaObject,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// An rmcp handler. Its clones share what they record.
#[derive(Clone, Default)]
pub(crate) struct Kit(Arc<Record>);

#[derive(Default)]
struct Record {
    has_grown: AtomicBool,
    hanging: Notify,
    dropped: Notify,
}

impl Kit {
    /// Waits until a call of `hangs` has begun.
    pub(crate) async fn hanging(&self) {
        self.0.hanging.notified().await;
    }

    /// Waits until the future of a call of `hangs` is dropped.
    pub(crate) async fn dropped(&self) {
        self.0.dropped.notified().await;
    }
}

/// Records that the future which holds it is dropped.
struct DropRecord(Arc<Record>);

impl Drop for DropRecord {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn tool(name: &'static str, description: &'static str) -> Tool {
    Tool::new(name, description, object(json!({"type": "object"})))
}

impl ServerHandler for Kit {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(tools.build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = vec![
            tool("echo", "Returns the text."),
            tool("fails", "Reports an error."),
            tool("breaks", "Answers with a JSON-RPC error."),
            tool("structured", "Answers with structured content."),
            tool("counts", "Reports progress."),
            tool("hangs", "Never answers."),
            tool("panics", "Panics."),
            tool("grows", "Adds a tool."),
        ];
        if self.0.has_grown.load(Ordering::SeqCst) {
            tools.push(tool("grown", "Was added."));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = |text: &str| CallToolResult::success(vec![ContentBlock::text(text)]);
        let result = match &*request.name {
            "echo" => {
                let arguments = request.arguments.unwrap_or_default();
                text(arguments.get("text").and_then(Value::as_str).unwrap_or("nothing"))
            }
            "fails" => CallToolResult::error(vec![ContentBlock::text("out of paper")]),
            "breaks" => return Err(ErrorData::internal_error("the printer is on fire", None)),
            "structured" => {
                let mut result = CallToolResult::structured(json!({"pages": 3}));
                result.meta = Some(MetaObject(object(json!({"tray": "upper"}))));
                result
            }
            "counts" => {
                let token = context.meta.get_progress_token();
                for step in [1.0, 2.0, 3.0] {
                    if let Some(token) = token.clone() {
                        let param = ProgressNotificationParam::new(token, step).with_total(3.0);
                        let _ = context.peer.notify_progress(param).await;
                    }
                }
                text("counted")
            }
            "hangs" => {
                let _record = DropRecord(self.0.clone());
                self.0.hanging.notify_one();
                std::future::pending().await
            }
            "panics" => panic!("a handler may panic"),
            "grows" => {
                self.0.has_grown.store(true, Ordering::SeqCst);
                let _ = context.peer.notify_tool_list_changed().await;
                text("grown")
            }
            other => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
        };
        Ok(result.into())
    }
}
