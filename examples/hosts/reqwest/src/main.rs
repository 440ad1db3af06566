//! A program with an HTTP client of its own, which works as it does without the library.

use anyhow::{Context, ensure};
use pegboard::{Config, NativeTool, NativeTools, Pegboard};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // reqwest panics here if another crate has turned on its feature for TLS without a provider.
    let client = reqwest::Client::new();
    let nobody = free_port().await?;
    let error = client.get(format!("http://127.0.0.1:{nobody}/")).send().await;
    ensure!(error.is_err_and(|error| error.is_connect()), "nobody listens there");

    let double = NativeTool::new(
        "double",
        "Doubles.",
        json!({"type": "object"}),
        |arguments| async move {
            let number = arguments["n"].as_i64().ok_or("`n` must be a number")?;
            Ok(json!(2 * number))
        },
    );
    let board = Pegboard::builder(Config::new())
        .in_process("numbers", NativeTools::new([double]))
        .open();
    let doubled: i64 = board.toolset().call_as(("numbers.double", json!({"n": 21}))).await?;
    ensure!(doubled == 42, "42 is expected, not {doubled}");
    board.shutdown().await;
    Ok(())
}

async fn free_port() -> anyhow::Result<u16> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("no port")?;
    Ok(listener.local_addr()?.port())
}
