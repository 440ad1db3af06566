//! Tools that are Rust functions, beside the tools of an MCP server. An agent cannot tell them apart.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::ensure;
use pegboard::{
    Answer, Arguments, Config, Env, Kind, NativeTool, NativeTools, Pegboard, ServerName, ToolCall, config::Source,
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // An MCP server on the network; here a fake on a loopback port.
    let weather = Tool::new("forecast").description("Tells tomorrow's weather.");
    let fake = FakeServer::new("weather").tool(weather.read_only().answers_text("18 °C, rain"));
    let server = fake.serve_http().await?;
    let loaded = Config::load(&[Source::server(format!("weather={}", server.url()))], &Env::process());

    // A native tool has a name, a description, a JSON Schema and an async function.
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
            // The arguments were validated against the schema, but a function should not rely on its callers.
            // An `Err` becomes a tool failure that the model reads.
            let celsius = arguments["celsius"].as_f64().ok_or("`celsius` must be a number")?;
            Ok(Answer::from_text(format!("{:.1} °F", celsius * 1.8 + 32.0)))
        },
    );

    // They are listed as the tools of one server.
    let board = Pegboard::builder(loaded.config)
        .in_process(ServerName::parse("units")?, NativeTools::new([convert.read_only()]))
        .open();
    let tools = board.toolset();

    let listing = tools.list(Duration::from_secs(30)).await;
    for listed in &listing.tools {
        println!("{}", listed.name);
    }
    ensure!(listing.tools.len() == 2, "{:?}", listing.unavailable);

    // `call_all` runs the calls concurrently and returns the replies in order.
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

    // Native tools follow the same rules: invalid arguments never reach the function.
    let wrong = Arguments::parse(r#"{"celsius": "warm"}"#)?;
    let refused = tools.call(ToolCall::new("units.fahrenheit").arguments(wrong)).await;
    println!("and \"warm\" is refused: {}", refused.text());
    ensure!(refused.outcome.kind() == Kind::InvalidArguments && !refused.outcome.may_have_executed());

    board.shutdown().await;
    Ok(())
}
