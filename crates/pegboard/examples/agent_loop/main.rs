//! An agent, twice: once with a model that calls functions, once with a model that only writes text.
//!
//! Both have the same task and the same servers: one is a process, one is on the network, one is in this program, one is down from the
//! start, and the process is killed while the agent works. `world.rs` sets that up; this file is what you would write yourself.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod model;
mod world;

use std::time::Duration;

use anyhow::{bail, ensure};
use futures_util::future::join_all;
use pegboard::{Pegboard, Provider, Reply, ToolCall, ToolExecutor, View, config::Reading};
use serde_json::{Value, json};

use model::Model;
use world::World;

/// The limit on turns, for a model that loops.
const MAX_TURNS: usize = 10;
/// How long a listing waits for servers that are starting.
const PATIENCE: Duration = Duration::from_secs(60);
const TASK: &str = "A pod crashes. Which one, and who is on call for it?";

fn main() -> anyhow::Result<()> {
    pegboard::shim();
    // Only because this program starts itself as one of the fake servers.
    pegboard_testkit::serve_if_asked();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    // Each loop gets its own environment, because each of them kills a server.
    println!("# With function calls");
    let world = World::open().await?;
    let model = Model::open(world::calls_functions()).await?;
    let tools = world.board.toolset_with(View::new().provider(Provider::OpenAi));
    check(&function_calls(&model, &tools).await?, &world.board)?;
    world.board.shutdown().await;

    println!("\n# With text (ReAct)");
    let world = World::open().await?;
    let model = Model::open(world::writes_text()).await?;
    check(&react(&model, &world.board.toolset()).await?, &world.board)?;
    world.board.shutdown().await;
    Ok(())
}

/// The loop for models with an API for tool calls.
async fn function_calls(model: &Model, tools: &dyn ToolExecutor) -> anyhow::Result<String> {
    // The tools in the API's format. A server that is down costs only its own tools.
    let listing = tools.list(PATIENCE).await;
    for away in &listing.unavailable {
        println!("{} is away: {}", away.server, away.error);
    }
    let definitions = listing.definitions();
    let mut messages = vec![json!({"role": "user", "content": TASK})];
    for _ in 0..MAX_TURNS {
        let said = model.say(&messages, &definitions).await?;
        let calls = Provider::OpenAi.tool_calls(&said);
        if calls.is_empty() {
            return Ok(said["content"].as_str().unwrap_or_default().to_owned());
        }
        // The calls of one turn run concurrently. A call whose arguments cannot be parsed gets an error reply and is not made.
        let replies = join_all(calls.into_iter().map(|call| tools.call(call))).await;
        replies.iter().for_each(show);
        // Failures are sent back too, so that the model can react to them.
        messages.push(said);
        messages.extend(Provider::OpenAi.tool_messages(&replies));
    }
    bail!("there is no answer after {MAX_TURNS} turns")
}

/// The loop for models that write `Action:` and `Action Input:` into their text.
async fn react(model: &Model, tools: &dyn ToolExecutor) -> anyhow::Result<String> {
    let mut prompt =
        "Answer with `Action:` and `Action Input:`, or with `Final Answer:`. The actions are:\n".to_owned();
    for listed in tools.list(PATIENCE).await.tools {
        let about = listed.tool.description.as_deref().unwrap_or_default();
        let takes = listed.tool.input_schema.value();
        prompt.push_str(&format!("{}: {about} It takes {takes}\n", listed.name));
    }
    let mut messages = vec![
        json!({"role": "system", "content": prompt}),
        json!({"role": "user", "content": TASK}),
    ];
    for _ in 0..MAX_TURNS {
        let said = model.say(&messages, &[]).await?;
        let text = said["content"].as_str().unwrap_or_default();
        if let Some((_, answer)) = text.split_once("Final Answer:") {
            return Ok(answer.trim().to_owned());
        }
        let observation = match action(text) {
            // The cascade parses JSON, YAML, `key: value` pairs or plain text.
            Some((name, input)) => {
                let call = ToolCall::new(name).text(input).reading(Reading::Cascade);
                let reply = tools.call(call).await;
                show(&reply);
                reply.text()
            }
            None => "write `Action:` and `Action Input:`, or `Final Answer:`".to_owned(),
        };
        messages.push(said);
        messages.push(json!({"role": "user", "content": format!("Observation: {observation}")}));
    }
    bail!("there is no answer after {MAX_TURNS} turns")
}

/// The tool and its input in a model's text. An observation that the model invents after them is cut off.
fn action(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("Action:")?;
    let (name, input) = rest.split_once("Action Input:")?;
    let input = input.split("Observation:").next().unwrap_or(input);
    Some((name.trim(), input.trim()))
}

fn show(reply: &Reply) {
    println!("{} → {}", reply.name, reply.text().lines().next().unwrap_or_default());
}

/// Checks that the agent found the answer, although one server was down from the start and another one was killed.
fn check(answer: &str, board: &Pegboard) -> anyhow::Result<()> {
    println!("answer: {answer}");
    ensure!(answer == "api-7f9 crashes; Mara is on call.", "the answer is wrong");
    let status = serde_json::to_value(board.status())?;
    let server = |name: &str| -> Value {
        let mut servers = status["servers"].as_array().into_iter().flatten();
        servers
            .find(|server| server["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    ensure!(server("wiki")["state"] != "ready", "nobody is at that address");
    ensure!(server("k8s")["restarts"] == 1, "it was killed once: {}", server("k8s"));
    Ok(())
}
