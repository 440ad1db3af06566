//! Tools that are Rust functions, next to those of servers.

use std::sync::Arc;

use pegboard::{
    Answer, Caller, Config, Kind, NativeTool, NativeTools, Pegboard, Principal, ToolCall, View,
    catalog::{Risk, ToolKind},
    in_process::{Json, ToolContext, ToolError},
};
use pegboard_testkit::{FakeServer, Tool as FakeTool};
use serde_json::{Map, json};
use tokio::sync::{Notify, mpsc};

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
                None => Err("there is nothing to say".into()),
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
    let broken = NativeTool::new("broken", "", json!({}), |_| async {
        if true { panic!("on purpose") } else { Ok("never") }
    });
    let sooner = NativeTool::new("sooner", "", json!({}), |arguments| {
        assert!(arguments.contains_key("never"), "before there is a future");
        std::future::ready(Ok("never"))
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
            std::future::pending::<Result<Answer, _>>().await
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

/// Answers with what it knows about its caller.
fn whoami() -> NativeTool {
    NativeTool::with_context("whoami", "", json!({"type": "object"}), |_, context| async move {
        let caller = context.caller();
        json!({"call": caller.call, "view": caller.view, "principal": caller.principal, "meta": caller.meta})
    })
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_knows_who_calls_it() {
    let board = board([whoami()]);
    for user in ["ada", "bob"] {
        let view = View::new().name(format!("chat-{user}")).principal(user);
        let call = ToolCall::new("local.whoami").id("c1").meta("tenant", 7);
        let reply = board.toolset_with(view).call(call).await;
        let expected = json!({"call": "c1", "view": format!("chat-{user}"), "principal": user, "meta": {"tenant": 7}});
        assert_eq!(reply.text(), expected.to_string());
    }
    let reply = board
        .toolset_with(View::new().name("plain"))
        .call(ToolCall::new("local.whoami"))
        .await;
    assert_contains(&reply.text(), &[r#""principal":null"#]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_cannot_pose_as_another() {
    let (_unused, handle) = FakeServer::new("fx")
        .tool(FakeTool::new("t").answers_text("ok"))
        .connect();
    let board = Pegboard::builder(Config::default())
        .in_process(name("local"), NativeTools::new([whoami()]))
        .in_process(name("fx"), dialer(&handle))
        .open();
    let forged = json!({"call": "x", "view": "x", "principal": "root"});
    let view = View::new().principal("eve").meta(move |_| {
        let mut meta = Map::new();
        meta.insert("dev.pegboard/caller".to_owned(), json!({"principal": "root"}));
        meta
    });
    let tools = board.toolset_with(view);
    let forge = |tool: &str| ToolCall::new(tool).meta("dev.pegboard/caller", forged.clone());
    let reply = tools.call(forge("local.whoami")).await;
    assert_contains(&reply.text(), &[r#""principal":"eve""#, r#""meta":{}"#]);
    // Servers of others learn nothing of it.
    tools.call(forge("fx.t")).await;
    let sent = handle.requests().pop().unwrap();
    assert_eq!(sent.params["_meta"].get("dev.pegboard/caller"), None);
}

#[tokio::test(start_paused = true)]
async fn the_progress_of_a_native_tool_reaches_the_caller_before_the_reply() {
    let slow = NativeTool::with_context("slow", "", json!({"type": "object"}), |_, context| async move {
        for step in 1..=3 {
            context.progress(f64::from(step), Some(3.0), format!("step {step}"));
        }
        "done"
    });
    let board = board([slow]);
    let (progress, mut reports) = mpsc::channel(8);
    let reply = board
        .toolset()
        .call(ToolCall::new("local.slow").progress(progress))
        .await;
    assert_eq!(reply.text(), "done");
    for step in 1..=3 {
        let report = reports.recv().await.unwrap();
        assert_eq!((report.progress, report.total), (f64::from(step), Some(3.0)));
        assert_eq!(report.message, Some(format!("step {step}")));
    }
    assert!(!board.toolset().call(ToolCall::new("local.slow")).await.is_error());
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_returns_structured_results_and_any_error() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let parse = NativeTool::with_context("parse", "", json!({"type": "object"}), |arguments, _| async move {
        let text = arguments["text"].as_str().unwrap_or_default();
        let number: u32 = text.parse()?;
        Ok::<_, ToolError>(Json(json!({"ok": number > 0})))
    })
    .output_schema(schema);
    let board = board([parse]);
    let tools = board.toolset();
    let reply = call(&tools, "local.parse", json!({"text": "7"})).await;
    assert_eq!(reply.text(), r#"{"ok":true}"#);
    assert!(tools.list(PATIENCE).await.tools[0].tool.output_schema.is_some());
    let failed = call(&tools, "local.parse", json!({"text": "x"})).await;
    assert_outcome(&failed, Kind::ToolError, true);
    assert_eq!(failed.text(), "invalid digit found in string");
}

#[test]
fn the_function_of_a_tool_can_be_tested_without_a_board() {
    let (meta, user) = (Map::new(), Principal::new("ada"));
    let context = ToolContext::new(&Caller::new("c1", "tests", &meta).principal(&user));
    context.progress(1.0, None, "dropped");
    assert_eq!(context.caller().principal, Some(&user));
}
