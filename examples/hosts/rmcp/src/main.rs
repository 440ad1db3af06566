//! A program that has a client of rmcp beside the library: both reach the same tool, and rmcp's own HTTP transport is in the build.

use anyhow::{Context, ensure};
use pegboard::{Config, NativeTool, NativeTools, Pegboard, rmcp::ToolsetHandler};
use rmcp::{ServiceExt, model::CallToolRequestParams, transport::StreamableHttpClientTransport};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let now = NativeTool::new("now", "Tells the time.", json!({"type": "object"}), |_| async {
        Ok("noon")
    });
    let board = Pegboard::builder(Config::new())
        .in_process("clock", NativeTools::new([now]))
        .open();
    let ours = board.toolset().call("clock.now").await;
    ensure!(ours.text() == "noon", "{}", ours.text());

    let (here, there) = tokio::io::duplex(4096);
    let served = tokio::spawn(ToolsetHandler::new(board.toolset()).serve(here));
    let client = ().serve(there).await?;
    let theirs = client.call_tool(CallToolRequestParams::new("clock__now")).await?;
    let text = theirs.content[0].as_text().context("the tool answers with text")?;
    ensure!(text.text == "noon", "{}", text.text);
    client.cancel().await?;
    served.await??.waiting().await?;

    // Nobody listens there. A panic about cryptography would come first.
    let far = ().serve(StreamableHttpClientTransport::from_uri("http://127.0.0.1:9/mcp")).await;
    ensure!(far.is_err(), "nobody listens at this port");
    board.shutdown().await;
    Ok(())
}
