//! An rmcp handler as a server of the board, without a process, and the board's tools served to an rmcp client.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context, ensure};
use pegboard::{Config, Pegboard, ToolCall, rmcp::ToolsetHandler};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

/// A handler as it would be served over stdio or HTTP. The macros of rmcp write the same.
#[derive(Clone)]
struct Units;

impl ServerHandler for Units {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), json!({"celsius": {"type": "number"}}));
        schema.insert("required".to_owned(), json!(["celsius"]));
        let tool = Tool::new("fahrenheit", "Converts degrees Celsius.", schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let Some(celsius) = arguments.get("celsius").and_then(Value::as_f64) else {
            return Err(ErrorData::invalid_params("`celsius` must be a number", None));
        };
        let text = format!("{:.1} °F", celsius * 1.8 + 32.0);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Each connection of the board gets a clone of the handler. No process is started.
    let board = Pegboard::builder(Config::default())
        .in_process("units", pegboard::rmcp::in_process(Units))
        .open();
    let tools = board.toolset();
    for listed in tools.list(Duration::from_secs(10)).await.tools {
        println!("the board lists {}", listed.name);
    }
    let call = ToolCall::new("units.fahrenheit").arguments(json!({"celsius": 18}));
    let reply = tools.call(call).await;
    println!("{} says {}", reply.name, reply.text());
    ensure!(reply.text() == "64.4 °F", "{reply:?}");

    // The other way round: the toolset, with all its servers, is an rmcp server. Here its client is in this process too.
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let handler = ToolsetHandler::new(tools);
    let serving = tokio::spawn(async move { anyhow::Ok(handler.serve(ours).await?.waiting().await?) });
    let client = ().serve(theirs).await?;
    for tool in client.list_all_tools().await? {
        println!("the client lists {}", tool.name);
    }
    let mut arguments = JsonObject::new();
    arguments.insert("celsius".to_owned(), json!(100));
    let params = CallToolRequestParams::new("units__fahrenheit").with_arguments(arguments);
    let result = client.call_tool(params).await?;
    let block = result.content.first().and_then(ContentBlock::as_text);
    let text = &block.context("the result has no text")?.text;
    println!("the client gets {text}");
    ensure!(text == "212.0 °F", "{result:?}");

    client.cancel().await?;
    serving.await??;
    board.shutdown().await;
    Ok(())
}
