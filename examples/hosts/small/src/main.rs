//! A program for a small machine: one thread, built for size, without unwinding.

use std::time::Duration;

use anyhow::{Context, ensure};
use pegboard::{Config, Kind, NativeTool, NativeTools, Pegboard, ServerConfig};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let greet = NativeTool::new("greet", "Greets.", json!({"type": "object"}), |_| async { Ok("hello") });
    let config = Config::new().server("ends", ServerConfig::command("false", [""; 0]))?;
    let board = Pegboard::builder(config)
        .in_process("here", NativeTools::new([greet]))
        .open();
    let tools = board.toolset();
    let listing = tools.list(Duration::from_secs(30)).await;
    ensure!(listing.unavailable.len() == 1, "one server ends at once");
    let greeting = tools
        .call("here.greet")
        .await
        .into_result()
        .context("the tool is in this program")?;
    ensure!(greeting.text() == "hello", "{}", greeting.text());
    let reply = tools.call("ends.anything").await;
    ensure!(reply.outcome.kind() == Kind::Unavailable, "{}", reply.text());
    board.shutdown().await;
    Ok(())
}
