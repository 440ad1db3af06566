//! A result that is too long for a model is summarised by a small model. The whole result is stored and can be read in parts.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::{Context as _, ensure};
use pegboard::{
    Answer, Arguments, Config, NativeTool, NativeTools, Pegboard, ServerConfig, ServerName, ToolCall, View,
    config::{Command, SafeUrl, Summarise, SummaryModel, Transport},
    summary::ChatModel,
};
use pegboard_testkit::ScriptedModel;
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Any server with OpenAI's chat API works, local or remote. This one is scripted, so that the example needs no other.
    let summary = "3000 requests, all fine but one: request 1234 ended with status 500.";
    let small_model = ScriptedModel::new().says(summary).serve().await?;

    // In a config file this is `summarise = { url = "…", model = "…", api_key = "${…}" }`. A program can also pass its own
    // implementation of `Summariser`.
    let model = ChatModel::new(SummaryModel::new(SafeUrl::parse(&small_model.url())?, "small"))?;

    // Results above 5000 tokens are summarised by default. Shorter ones are returned unchanged.
    let mut settings = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
    settings.policy.summarise = Some(Summarise::default());
    let board = Pegboard::builder(Config::default())
        .in_process_with(ServerName::parse("web")?, NativeTools::new([log()]), settings)
        .open();
    let tools = board.toolset_with(View::new().summariser(model));

    // The conversation makes for a better summary. It is passed to the summariser, never to the server.
    let call = ToolCall::new("web.log").context("user: did any request fail today?");
    let reply = tools.call(call).await;
    println!("the tool wrote {} bytes, the agent reads this:\n", reply.original_bytes);
    println!("{}\n", reply.text());
    ensure!(reply.text().contains(summary), "{:?}", reply.warnings);
    ensure!(reply.original_bytes > 20 * reply.text().len());

    // The summarising model got the log and the conversation.
    let asked = small_model.requests();
    let prompt = ScriptedModel::last_tool_text(asked.first().context("the model was not asked")?);
    ensure!(prompt.contains("did any request fail today?") && prompt.contains("request 1234: status 500"));

    // The reply has a handle of the stored result, and the agent has a tool to read it. Here it searches.
    let handle = reply.handle.context("nothing was put aside")?;
    let arguments = Arguments::try_from(json!({"handle": handle, "grep": "status 500"}))?;
    let found = tools
        .call(ToolCall::new("pegboard.read_output").arguments(arguments))
        .await;
    println!("it looks closer: {}", found.text());
    ensure!(found.text().contains("request 1234: status 500") && !found.text().contains("request 1235"));

    board.shutdown().await;
    Ok(())
}

/// A tool with a long result.
fn log() -> NativeTool {
    NativeTool::new("log", "Reads today's log.", json!({"type": "object"}), |_| async move {
        let status = |request| if request == 1234 { 500 } else { 200 };
        let lines = (1..=3000).map(|request| format!("request {request}: status {}\n", status(request)));
        Ok(Answer::from_text(lines.collect::<String>()))
    })
    .read_only()
}
