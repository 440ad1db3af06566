//! Tools that are Rust functions, next to those of servers.

use std::sync::Arc;

use pegboard::{Answer, Config, Kind, NativeTool, NativeTools, Pegboard, Risk, ToolCall, ToolKind};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::*;

fn board(tools: impl IntoIterator<Item = NativeTool>) -> Pegboard {
    Pegboard::builder(Config::default())
        .in_process(name("local"), NativeTools::new(tools))
        .open()
}

fn echo() -> NativeTool {
    NativeTool::new(
        "echo",
        "Says it again.",
        json!({"type": "object"}),
        |arguments| async move {
            match arguments.get("text").and_then(|text| text.as_str()) {
                Some(text) => Ok(Answer::from_text(text)),
                None => Err("there is nothing to say".to_owned()),
            }
        },
    )
    .read_only()
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_is_listed_and_called_like_any_other() {
    let board = board([echo()]);
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    assert_eq!(listing.tools[0].name, "local__echo");
    assert_eq!(listing.tools[0].kind, ToolKind::Native);
    // The hints of the program's own tools count.
    assert_eq!(listing.tools[0].risk, Risk::Medium);
    assert_eq!(
        listing.tools[0].tool.annotations.as_ref().unwrap()["readOnlyHint"],
        true
    );
    assert_eq!(call(&tools, "local.echo", json!({"text": "hi"})).await.text(), "hi");
    let failed = call(&tools, "local.echo", json!({})).await;
    assert_outcome(&failed, Kind::ToolError, true);
    assert_eq!(failed.text(), "there is nothing to say");
}

#[tokio::test]
async fn a_native_tool_that_panics_fails_alone() {
    let broken = NativeTool::new("broken", "", json!({}), |_| async { panic!("on purpose") });
    let sooner = NativeTool::new("sooner", "", json!({}), |arguments| {
        assert!(arguments.contains_key("never"), "before there is a future");
        std::future::ready(Err(String::new()))
    });
    let board = board([broken, sooner, echo()]);
    let tools = board.toolset();
    for name in ["local.broken", "local.sooner"] {
        let failed = call(&tools, name, json!({})).await;
        assert_outcome(&failed, Kind::ToolError, true);
        assert_eq!(failed.text(), "the tool panicked", "{name}");
    }
    assert_eq!(call(&tools, "local.echo", json!({"text": "hi"})).await.text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn giving_a_call_up_drops_the_tools_future() {
    /// Notifies when it is dropped.
    struct NotifyOnDrop(Arc<Notify>);
    impl Drop for NotifyOnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, end) = (started.clone(), dropped.clone());
    let slow = NativeTool::new("slow", "", json!({}), move |_| {
        let (begin, tell) = (begin.clone(), NotifyOnDrop(end.clone()));
        async move {
            begin.notify_one();
            let _tell = tell;
            std::future::pending().await
        }
    });
    let board = board([slow]);
    let tools = board.toolset();
    tokio::select! {
        _ = tools.call(ToolCall::new("local.slow")) => unreachable!("it never ends"),
        () = started.notified() => {}
    }
    tokio::time::timeout(PATIENCE, dropped.notified()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_calls_run_beside_each_other_and_keep_their_answers() {
    let slow = NativeTool::new("slow", "", json!({}), |arguments| async move {
        tokio::time::sleep(secs(1)).await;
        Ok(Answer::from_text(arguments["n"].to_string()))
    });
    let board = board([slow]);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = tokio::time::Instant::now();
    let calls = (0..20).map(|n| call(&tools, "local.slow", json!({ "n": n })));
    let replies = futures_util::future::join_all(calls).await;
    assert_eq!(started.elapsed(), secs(1));
    for (n, reply) in replies.iter().enumerate() {
        assert_eq!(reply.text(), n.to_string());
    }
}
