//! Limits of a principal hold over all its views, for every kind of request.

use std::time::Duration;

use pegboard::{
    Failure, Kind, Outcome, Pegboard, ToolCall, Toolset, View,
    config::Rate,
    forward::{Forwarded, Forwarding},
    toolset::CompletionOf,
};
use pegboard_testkit::{FakeServer, MemoryHandle, Tool};
use serde_json::{Map, json};

use crate::{overload::until, support::*};

fn server() -> (Pegboard, MemoryHandle) {
    let capabilities = json!({
        "tools": {}, "prompts": {}, "resources": {}, "completions": {},
        "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
    });
    let fake = FakeServer::new("fx")
        .capabilities(capabilities)
        .tool(Tool::new("quick").answers_text("done"))
        .tool(Tool::new("held").answers_text("done").waits_at("gate"))
        .tool(Tool::new("task").answers_text("done").runs_as_task())
        .resource("a:a", "text")
        .prompt("p", "text");
    in_memory_with(&fake, in_process_settings())
}

/// Waits until the server has this many calls.
async fn received(handle: &MemoryHandle, calls: usize) {
    until("the server has the calls", || handle.count("tools/call") >= calls).await;
}

async fn calls(tools: Toolset) -> Result<(), Failure> {
    match tools.call(ToolCall::new("fx.quick")).await.outcome {
        Outcome::Refused(failure) => Err(failure),
        _ => Ok(()),
    }
}

async fn starts_a_task(tools: Toolset) -> Result<(), Failure> {
    match tools.start(ToolCall::new("fx.task")).await {
        Ok(mut task) => {
            task.result(PATIENCE).await;
            Ok(())
        }
        Err(reply) => match reply.outcome {
            Outcome::Refused(failure) => Err(failure),
            other => panic!("{other:?}"),
        },
    }
}

async fn reads(tools: Toolset) -> Result<(), Failure> {
    tools.read_resource("fx", "a:a").await.map(drop)
}

async fn gets_a_prompt(tools: Toolset) -> Result<(), Failure> {
    tools.get_prompt("fx", "p", &Map::new()).await.map(drop)
}

async fn completes(tools: Toolset) -> Result<(), Failure> {
    let prompt = CompletionOf::Prompt("p".to_owned());
    let completed = tools.complete("fx", &prompt, "a", "v", &Map::new()).await;
    completed.map(drop)
}

fn passed_on(forwarded: Forwarded) -> Result<(), Failure> {
    match forwarded {
        Forwarded::Failed(failure) => Err(failure),
        _ => Ok(()),
    }
}

async fn passes_a_call_on(tools: Toolset) -> Result<(), Failure> {
    let call = ToolCall::new("fx.quick");
    passed_on(tools.forward_call(call, &Forwarding::new()).await)
}

async fn passes_a_read_on(tools: Toolset) -> Result<(), Failure> {
    let params = serde_json::value::to_raw_value(&json!({"uri": "a:a"})).unwrap();
    let how = Forwarding::new();
    passed_on(tools.forward("fx", "resources/read", &params, &how, None).await)
}

/// Makes one request of each kind, each with a view of its own.
async fn one_of_each(view: impl Fn() -> Toolset) -> [(&'static str, Result<(), Failure>); 7] {
    [
        ("call", calls(view()).await),
        ("task", starts_a_task(view()).await),
        ("read", reads(view()).await),
        ("prompt", gets_a_prompt(view()).await),
        ("completion", completes(view()).await),
        ("passed call", passes_a_call_on(view()).await),
        ("passed read", passes_a_read_on(view()).await),
    ]
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_of_a_principal_are_refused_whatever_they_are_and_whatever_view_they_come_from() {
    let (board, handle) = server();
    let view = |principal: &str| board.toolset_with(View::new().principal(principal).max_in_flight(1));
    view("alice").list(PATIENCE).await;
    for (what, outcome) in one_of_each(|| view("alice")).await {
        outcome.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    }
    let received_before = handle.requests().len();
    let busy = view("alice");
    let held = tokio::spawn(async move { call(&busy, "fx.held", json!({})).await });
    received(&handle, 4).await;
    for (what, outcome) in one_of_each(|| view("alice")).await {
        let failure = outcome.expect_err(what);
        assert_eq!(failure.kind, Kind::LimitExceeded, "{what}: {failure}");
        assert_eq!(failure.retry_after, Some(secs(1)), "{what}");
        assert!(!failure.may_have_executed);
    }
    assert_eq!(
        handle.requests().len(),
        received_before + 1,
        "only the call that is held"
    );
    for (what, outcome) in one_of_each(|| view("bob")).await {
        outcome.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    }
    handle.open_gate("gate");
    assert_eq!(held.await.unwrap().text(), "done");
    for (what, outcome) in one_of_each(|| view("alice")).await {
        outcome.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    }
}

#[tokio::test(start_paused = true)]
async fn views_without_a_principal_and_views_without_a_limit_count_for_themselves() {
    let (board, handle) = server();
    let limited = || board.toolset_with(View::new().max_in_flight(1));
    let (first, second) = (limited(), limited());
    first.list(PATIENCE).await;
    let busy = first.clone();
    let held = tokio::spawn(async move { call(&busy, "fx.held", json!({})).await });
    received(&handle, 1).await;
    assert_eq!(calls(first.clone()).await.unwrap_err().kind, Kind::LimitExceeded);
    calls(second).await.unwrap();
    calls(board.toolset()).await.unwrap();
    handle.open_gate("gate");
    held.await.unwrap();
    calls(first).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_and_a_dropped_task_are_no_longer_in_flight() {
    let (board, handle) = server();
    let view = || board.toolset_with(View::new().principal("alice").max_in_flight(1));
    view().list(PATIENCE).await;
    let busy = view();
    let held = tokio::spawn(async move { call(&busy, "fx.held", json!({})).await });
    received(&handle, 1).await;
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    let task = view().start(ToolCall::new("fx.task")).await.unwrap();
    assert_eq!(calls(view()).await.unwrap_err().kind, Kind::LimitExceeded);
    drop(task);
    calls(view()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_rate_counts_over_all_views_of_a_principal_and_every_kind_of_request() {
    let (board, _handle) = server();
    let view = |principal: &str| {
        let rate = Rate::new(7, Duration::from_secs(420));
        board.toolset_with(View::new().principal(principal).rate(rate))
    };
    board.toolset().list(PATIENCE).await;
    for (what, outcome) in one_of_each(|| view("alice")).await {
        outcome.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    }
    for (what, outcome) in one_of_each(|| view("alice")).await {
        let failure = outcome.expect_err(what);
        assert_eq!(failure.kind, Kind::LimitExceeded, "{what}: {failure}");
        assert_eq!(failure.retry_after.map(|wait| wait.as_secs()), Some(59), "{what}");
    }
    calls(view("bob")).await.unwrap();
    // Longer than the servers of a principal are kept after its last view.
    tokio::time::sleep(secs(130)).await;
    calls(view("alice")).await.unwrap();
    calls(view("alice")).await.unwrap();
    assert_eq!(calls(view("alice")).await.unwrap_err().kind, Kind::LimitExceeded);
}
