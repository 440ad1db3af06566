//! A user approves calls that change something: reading needs no approval, one deletion is approved, another is refused.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use pegboard::{
    Answer, Arguments, Config, Kind, NativeTool, NativeTools, Pegboard, ServerConfig, ServerName, ToolCall, View,
    approval::{Decision, Question},
    config::{Approval, Command, Transport},
};
use serde_json::json;

/// The state that the tools change, to check at the end which calls ran.
type Files = Arc<Mutex<Vec<String>>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let files: Files = Arc::new(Mutex::new(vec!["draft.txt".into(), "thesis.txt".into()]));

    // `approval = "writes"` in a config file. It covers every tool without `readOnlyHint`.
    // (The transport of an in-process server is not used.)
    let mut settings = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
    settings.policy.approval = Approval::Writes;
    let board = Pegboard::builder(Config::default())
        .in_process_with(ServerName::parse("files")?, file_tools(&files), settings)
        .open();

    // Each view can have its own approver; `Builder::approver` is for all of them. A function is enough where the decision is immediate.
    // To wait for a user, implement `Approver`: its `decide` is async, and its future is dropped when the call is cancelled.
    let tools = board.toolset_with(View::new().approver(ask));

    // A read-only tool needs no approval.
    let listed = tools.call(ToolCall::new("files.list")).await;
    println!("there are {}", listed.text());
    ensure!(listed.text() == "draft.txt, thesis.txt");

    let delete = async |file: &str| -> anyhow::Result<_> {
        let arguments = Arguments::try_from(json!({ "file": file }))?;
        Ok(tools.call(ToolCall::new("files.delete").arguments(arguments)).await)
    };

    let agreed = delete("draft.txt").await?;
    println!("{}", agreed.text());
    ensure!(!agreed.is_error());

    // A refusal is an outcome: the model reads the reason, and the call certainly did not run.
    let refused = delete("thesis.txt").await?;
    println!("{}", refused.text());
    ensure!(refused.outcome.kind() == Kind::NotPermitted && !refused.outcome.may_have_executed());

    let left = files.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("left: {left:?}");
    ensure!(left == ["thesis.txt"]);
    board.shutdown().await;
    Ok(())
}

/// Stands in for a user interface, which would show the server, the tool, the exact arguments and the risk.
fn ask(question: &Question<'_>) -> Decision {
    let arguments = question.arguments.as_str();
    println!(
        "may I call {}.{} with {arguments}?",
        question.server, question.tool.name
    );
    // `ForView` and `Always` remember the approval as long as the tool's definition stays the same.
    match arguments.contains("draft") {
        true => Decision::Once,
        false => Decision::Refused("that is not a draft".to_owned()),
    }
}

fn file_tools(files: &Files) -> NativeTools {
    let (seen, changed) = (files.clone(), files.clone());
    let list = NativeTool::new("list", "Lists the files.", json!({"type": "object"}), move |_| {
        let names = seen.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
        async move { Ok(Answer::from_text(names)) }
    });
    let schema = json!({"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]});
    let delete = NativeTool::new("delete", "Deletes a file.", schema, move |arguments| {
        let file = arguments["file"].as_str().unwrap_or_default().to_owned();
        changed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|name| *name != file);
        async move { Ok(Answer::from_text(format!("{file} is deleted"))) }
    });
    NativeTools::new([list.read_only(), delete])
}
