//! An agent of rig that uses the tools of a toolset. The model is a script, so the example needs no network.

mod adapter;

use std::time::Duration;

use anyhow::{Context, ensure};
use pegboard::{Answer, Config, NativeTool, NativeTools, Pegboard};
use rig_agent::AgentBuilder;
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Any servers of a config would do; a native tool needs no process.
    let schema = json!({
        "type": "object",
        "properties": {"celsius": {"type": "number"}},
        "required": ["celsius"],
    });
    let fahrenheit = NativeTool::new(
        "fahrenheit",
        "Converts degrees Celsius.",
        schema,
        |arguments| async move {
            let celsius = arguments["celsius"].as_f64().ok_or("`celsius` must be a number")?;
            Ok(Answer::from_text(format!("{:.1} °F", celsius * 1.8 + 32.0)))
        },
    );
    let board = Pegboard::builder(Config::default())
        .in_process("units", NativeTools::new([fahrenheit.read_only()]))
        .open();
    let toolset = board.toolset();

    // The script: wrong arguments, right ones, an answer.
    let model = MockCompletionModel::from_turns([
        MockTurn::tool_call("1", "units__fahrenheit", json!({"celsius": "warm"})),
        MockTurn::tool_call("2", "units__fahrenheit", json!({"celsius": 18})),
        MockTurn::text("18 °C are 64.4 °F."),
    ]);
    let tools = adapter::tools_of(&toolset, Duration::from_secs(30)).await?;
    println!("rig gets {} tool: {}", tools.len(), tools[0].name());
    let refused = tools[0].execute(json!({"celsius": "warm"})).await;
    let refused = refused.err().context("a word is not a number")?;
    let feedback = refused.model_feedback().unwrap_or_default();
    println!("wrong arguments are refused: {feedback}");
    ensure!(feedback.contains("celsius"), "the reason is missing: {refused}");

    let agent = AgentBuilder::new(model.clone()).dynamic_tools(tools).build();
    let answer = agent.prompt("How warm are 18 °C in Fahrenheit?").max_turns(5).await?;
    println!("the agent answers: {answer}");

    // What the model was told, as it would have been sent to its provider.
    let sent = format!("{:?}", model.requests());
    ensure!(sent.contains("64.4 °F"), "the result of the call is missing: {sent}");
    ensure!(
        sent.contains("celsius"),
        "the reason for the refusal is missing: {sent}"
    );
    board.shutdown().await;
    Ok(())
}
