//! Tests of an agent without servers, processes or a model: the loop takes any `ToolExecutor`, and `StubTools` plays the tools.
//!
//! In your crate these are `#[tokio::test]` functions. Here `main` runs them, so that the example can be run.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::VecDeque;

use anyhow::{Context as _, bail, ensure};
use pegboard::{Closed, Failure, Kind, Outcome, Provider, StubTools, ToolCall, ToolExecutor};
use serde_json::{Value, json};

/// The limit on turns, for a model that loops.
const MAX_TURNS: usize = 5;

// The agent: your code. It names no server and no board.

/// What the agent needs of a model: the next message of a conversation.
trait Model {
    fn say(&mut self, messages: &[Value], tools: &[Value]) -> anyhow::Result<Value>;
}

async fn agent(task: &str, model: &mut dyn Model, tools: &dyn ToolExecutor) -> anyhow::Result<String> {
    let definitions = tools.list_tools().await?.definitions();
    let mut messages = vec![json!({"role": "user", "content": task})];
    for _ in 0..MAX_TURNS {
        let said = model.say(&messages, &definitions)?;
        let calls = Provider::OpenAi.tool_calls(&said);
        if calls.is_empty() {
            return Ok(said["content"].as_str().unwrap_or_default().to_owned());
        }
        messages.push(said);
        for call in calls {
            let reply = tools.execute(call).await?;
            // A call that may have run is not repeated on the model's own decision: a person has to look.
            if let Outcome::Lost(why) = &reply.outcome {
                bail!("{} may have run: {}", reply.name, why.message);
            }
            messages.extend(Provider::OpenAi.tool_messages(&[reply]));
        }
    }
    bail!("there is no answer after {MAX_TURNS} turns")
}

// Its tests.

/// A model with a script. It answers with the last tool result when its script is at the end.
struct Script(VecDeque<Value>);

impl Script {
    fn new(turns: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let turn = |(tool, arguments): (&str, Value)| {
            let function = json!({"name": tool, "arguments": arguments.to_string()});
            json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
        };
        Self(turns.into_iter().map(turn).collect())
    }
}

impl Model for Script {
    fn say(&mut self, messages: &[Value], _tools: &[Value]) -> anyhow::Result<Value> {
        if let Some(turn) = self.0.pop_front() {
            return Ok(turn);
        }
        let last = messages.last().context("there is no message")?;
        Ok(json!({"role": "assistant", "content": last["content"]}))
    }
}

/// The tools of all tests: a mailbox.
fn mailbox() -> StubTools {
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]});
    StubTools::new()
        .provider(Provider::OpenAi)
        .describes("mail__send", "Sends a mail.", schema)
}

async fn it_sends_the_mail_and_reports_the_result() -> anyhow::Result<()> {
    let tools = mailbox().answers("mail__send", "sent");
    let mut model = Script::new([("mail__send", json!({"to": "ada@example.com"}))]);
    ensure!(agent("Write to Ada.", &mut model, &tools).await? == "sent");

    // Clones share their state, so a test can see what the agent called.
    let calls = tools.calls();
    ensure!(calls.len() == 1 && calls[0].name == "mail__send");
    ensure!(calls[0].arguments == json!({"to": "ada@example.com"}));
    Ok(())
}

async fn it_tries_again_after_a_failure() -> anyhow::Result<()> {
    // Outcomes of one tool come in this order.
    let tools = mailbox()
        .fails("mail__send", "the mailbox is full")
        .answers("mail__send", "sent");
    let send = || ("mail__send", json!({"to": "ada@example.com"}));
    ensure!(agent("Write to Ada.", &mut Script::new([send(), send()]), &tools).await? == "sent");
    ensure!(tools.calls().len() == 2);
    Ok(())
}

async fn it_does_not_repeat_a_mail_that_may_have_been_sent() -> anyhow::Result<()> {
    let lost = Failure::new(Kind::Transport, "the connection was closed").after_sending();
    let tools = mailbox().ends("mail__send", Outcome::Lost(lost));
    let send = || ("mail__send", json!({"to": "ada@example.com"}));
    let ended = agent("Write to Ada.", &mut Script::new([send(), send()]), &tools).await;
    let error = ended.err().context("it must stop")?.to_string();
    ensure!(error.contains("may have run"), "{error}");
    ensure!(tools.calls().len() == 1);
    Ok(())
}

async fn it_survives_a_tool_that_does_not_exist() -> anyhow::Result<()> {
    let tools = mailbox().answers("mail__send", "sent");
    let mut model = Script::new([("mail__delete_everything", json!({}))]);
    let answer = agent("Tidy up.", &mut model, &tools).await?;
    ensure!(answer.contains("mail__delete_everything"), "{answer}");
    Ok(())
}

async fn it_ends_when_its_tools_are_closed() -> anyhow::Result<()> {
    let tools = mailbox().answers("mail__send", "sent");
    tools.clone().close().await;
    ensure!(tools.execute(ToolCall::new("mail__send")).await == Err(Closed));
    ensure!(agent("Write to Ada.", &mut Script::new([]), &tools).await.is_err());
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    it_sends_the_mail_and_reports_the_result().await?;
    it_tries_again_after_a_failure().await?;
    it_does_not_repeat_a_mail_that_may_have_been_sent().await?;
    it_survives_a_tool_that_does_not_exist().await?;
    it_ends_when_its_tools_are_closed().await?;
    println!("5 tests passed, no process was started");
    Ok(())
}
