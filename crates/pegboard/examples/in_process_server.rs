//! Tools that are plain Rust functions, beside the tools of an MCP server. An agent cannot tell them apart.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::ensure;
use pegboard::{Answer, Arguments, Config, Env, Kind, NativeTool, NativeTools, Pegboard, ServerName, Source, ToolCall};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Somewhere on the network there is an MCP server. This one is a fake on a port of its own.
    let weather = Tool::new("forecast").description("Tells tomorrow's weather.");
    let fake = FakeServer::new("weather").tool(weather.read_only().answers_text("18 °C, rain"));
    let server = fake.serve_http().await?;
    let loaded = Config::load(&[Source::server(format!("weather={}", server.url()))], &Env::process());

    // A native tool has a name, words for the model, a JSON Schema, and an async function.
    let schema = json!({
        "type": "object",
        "properties": {"celsius": {"type": "number"}},
        "required": ["celsius"],
    });
    let convert = NativeTool::new(
        "fahrenheit",
        "Converts degrees Celsius.",
        schema,
        |arguments| async move {
            // The arguments were compared with the schema before, but a function should not have to rely on its callers.
            // An `Err` is not the end of anything: the model reads it as the tool's failure.
            let celsius = arguments["celsius"].as_f64().ok_or("`celsius` must be a number")?;
            Ok(Answer::from_text(format!("{:.1} °F", celsius * 1.8 + 32.0)))
        },
    );

    // Together they stand under one server's name, like those of any other server.
    let board = Pegboard::builder(loaded.config)
        .in_process(ServerName::parse("units")?, NativeTools::new([convert.read_only()]))
        .open();
    let tools = board.toolset();

    let listing = tools.list(Duration::from_secs(30)).await;
    for listed in &listing.tools {
        println!("{}", listed.name);
    }
    ensure!(listing.tools.len() == 2, "{:?}", listing.unavailable);

    // One call for each. `call_all` makes them beside each other and keeps the order.
    let celsius = Arguments::parse(r#"{"celsius": 18}"#)?;
    let replies = tools
        .call_all(vec![
            ToolCall::new("weather.forecast"),
            ToolCall::new("units.fahrenheit").arguments(celsius),
        ])
        .await;
    for reply in &replies {
        println!("{} says {}", reply.name, reply.text());
    }
    ensure!(replies[0].text() == "18 °C, rain" && replies[1].text() == "64.4 °F");

    // Native tools are subject to the same rules: arguments that do not fit never reach the function.
    let wrong = Arguments::parse(r#"{"celsius": "warm"}"#)?;
    let refused = tools.call(ToolCall::new("units.fahrenheit").arguments(wrong)).await;
    println!("and \"warm\" is refused: {}", refused.text());
    ensure!(refused.outcome.kind() == Kind::InvalidArguments && !refused.outcome.may_have_executed());

    board.shutdown().await;
    Ok(())
}
