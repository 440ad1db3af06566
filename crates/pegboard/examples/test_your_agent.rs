//! Tests of an agent without servers, processes or a model: the loop takes any `ToolExecutor`, and `StubTools` plays the tools.
//!
//! In your crate these are `#[tokio::test(start_paused = true)]` functions. Here `main` runs them, so that the example can be run.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{collections::VecDeque, time::Duration};

use anyhow::{Context as _, bail, ensure};
use pegboard::{
    Outcome, Provider, ToolExecutor,
    testing::{StubReply, StubTools},
};
use serde_json::{Value, json};

/// The limit on turns, for a model that loops.
const MAX_TURNS: usize = 5;
/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(10);

// The agent: your code. It names no server and no board.

/// What the agent needs of a model: the next message of a conversation.
trait Model {
    fn say(&mut self, messages: &[Value], tools: &[Value]) -> anyhow::Result<Value>;
}

async fn agent(task: &str, model: &mut dyn Model, tools: &dyn ToolExecutor) -> anyhow::Result<String> {
    let definitions = tools.list(PATIENCE).await.definitions();
    let mut messages = vec![json!({"role": "user", "content": task})];
    for _ in 0..MAX_TURNS {
        ensure!(!tools.is_closed(), "the tools are closed");
        let said = model.say(&messages, &definitions)?;
        let calls = Provider::OpenAi.tool_calls(&said);
        if calls.is_empty() {
            return Ok(said["content"].as_str().unwrap_or_default().to_owned());
        }
        messages.push(said);
        for call in calls {
            let reply = tools.call(call.timeout(PATIENCE)).await;
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

/// A model with a script. When its script is at the end, it answers with the last tool result.
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

/// One call of the model: a mail to Ada.
fn send() -> (&'static str, Value) {
    ("mail__send", json!({"to": "ada@example.com"}))
}

/// The tools of all tests: a mailbox, and a server that cannot be reached.
fn mailbox() -> anyhow::Result<StubTools> {
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]});
    Ok(StubTools::new()
        .provider(Provider::OpenAi)
        .describes("mail.send", "Sends a mail.", schema)
        .absent("contacts".parse()?, "connection refused"))
}

async fn it_sends_the_mail_and_reports_the_result() -> anyhow::Result<()> {
    let tools = mailbox()?.answers("mail.send", "sent");
    ensure!(agent("Write to Ada.", &mut Script::new([send()]), &tools).await? == "sent");
    // The stub records what the agent called.
    let calls = tools.calls();
    ensure!(calls.len() == 1 && calls[0].arguments == json!({"to": "ada@example.com"}));
    Ok(())
}

async fn it_tries_again_after_a_failure() -> anyhow::Result<()> {
    // Replies of one tool come in this order.
    let tools = mailbox()?
        .fails("mail.send", "the mailbox is full")
        .answers("mail.send", "sent");
    ensure!(agent("Write to Ada.", &mut Script::new([send(), send()]), &tools).await? == "sent");
    ensure!(tools.calls().len() == 2);
    Ok(())
}

async fn it_corrects_arguments_that_do_not_fit_the_schema() -> anyhow::Result<()> {
    let tools = mailbox()?.answers("mail.send", "sent");
    let mut model = Script::new([("mail__send", json!({"recipient": "ada@example.com"})), send()]);
    ensure!(agent("Write to Ada.", &mut model, &tools).await? == "sent");
    // The first call was refused before it reached the tool.
    ensure!(tools.calls().len() == 1);
    Ok(())
}

async fn it_does_not_repeat_a_mail_that_may_have_been_sent() -> anyhow::Result<()> {
    // On tokio's paused clock this takes no time.
    let late = StubReply::from("sent").after(Duration::from_secs(3600));
    let tools = mailbox()?.plays("mail.send", late);
    let ended = agent("Write to Ada.", &mut Script::new([send(), send()]), &tools).await;
    let error = ended.err().context("it must stop")?.to_string();
    ensure!(error.contains("may have run"), "{error}");
    ensure!(tools.calls().len() == 1);
    Ok(())
}

async fn it_goes_on_without_a_server_that_is_down() -> anyhow::Result<()> {
    let tools = mailbox()?.answers("mail.send", "sent");
    let mut model = Script::new([("contacts__find", json!({"name": "Ada"})), send()]);
    ensure!(agent("Write to Ada.", &mut model, &tools).await? == "sent");
    Ok(())
}

async fn it_ends_when_its_tools_are_closed() -> anyhow::Result<()> {
    let tools = mailbox()?.answers("mail.send", "sent");
    tools.close().await;
    ensure!(
        agent("Write to Ada.", &mut Script::new([send()]), &tools)
            .await
            .is_err()
    );
    ensure!(tools.calls().is_empty());
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> anyhow::Result<()> {
    it_sends_the_mail_and_reports_the_result().await?;
    it_tries_again_after_a_failure().await?;
    it_corrects_arguments_that_do_not_fit_the_schema().await?;
    it_does_not_repeat_a_mail_that_may_have_been_sent().await?;
    it_goes_on_without_a_server_that_is_down().await?;
    it_ends_when_its_tools_are_closed().await?;
    println!("6 tests passed, no process was started");
    Ok(())
}
