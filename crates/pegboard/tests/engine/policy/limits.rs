//! Rate limits and repeated calls.

use std::time::Duration;

use pegboard::{Kind, Reply, ToolCall, Toolset, View, config::Rate};
use pegboard_testkit::{Answer, FakeServer, Tool};
use serde_json::json;

use crate::{
    policy::board::{Fake, board, fake},
    support::*,
};

fn server() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("poll").echoes())
        .tool(Tool::new("other").echoes())
}

fn limited(loop_limit: usize) -> Fake {
    fake("fx", &server()).with(|config| config.policy.loop_limit = loop_limit)
}

async fn poll(tools: &Toolset, n: u64) -> Reply {
    call(tools, "fx.poll", json!({"n": n})).await
}

#[tokio::test(start_paused = true)]
async fn a_thousand_equal_calls_are_limited_and_the_model_is_told_that_it_repeats_itself() {
    let (board, [fx]) = board([limited(20)]);
    let tools = board.toolset();
    let mut last = None;
    for _ in 0..1000 {
        last = Some(poll(&tools, 1).await);
    }
    assert_eq!(fx.count("tools/call"), 20);
    let last = last.expect("a reply");
    assert_outcome(&last, Kind::LimitExceeded, false);
    assert_contains(
        &last.text(),
        &[
            "you have called `fx.poll` 20 times with the same arguments, each time with the outcome `ok`",
            "repeating yourself",
        ],
    );
    // Other arguments, another order of the same, and other tools and views.
    assert_eq!(poll(&tools, 2).await.outcome.kind(), Kind::Ok);
    assert_eq!(call(&tools, "fx.other", json!({"n": 1})).await.outcome.kind(), Kind::Ok);
    assert_eq!(poll(&board.toolset(), 1).await.outcome.kind(), Kind::Ok);
    tokio::time::sleep(secs(600)).await;
    assert_eq!(poll(&tools, 1).await.outcome.kind(), Kind::Ok);
}

#[tokio::test(start_paused = true)]
async fn by_default_a_tool_may_be_polled() {
    let (board, [fx]) = board([fake("fx", &server())]);
    let tools = board.toolset();
    for _ in 0..300 {
        assert_eq!(poll(&tools, 1).await.outcome.kind(), Kind::Ok);
    }
    assert_eq!(fx.count("tools/call"), 300);
}

/// Progress: the tool answers differently now.
#[tokio::test(start_paused = true)]
async fn another_kind_of_outcome_starts_the_count_again() {
    let (board, [fx]) = board([limited(3)]);
    let tools = board.toolset();
    for _ in 0..3 {
        assert_eq!(poll(&tools, 1).await.outcome.kind(), Kind::Ok);
    }
    assert_eq!(poll(&tools, 1).await.outcome.kind(), Kind::LimitExceeded);
    tokio::time::sleep(secs(600)).await;
    poll(&tools, 1).await;
    fx.change(|script| script.tools[0] = Tool::new("poll").answers(Answer::Failure("not yet".into())));
    for _ in 0..3 {
        assert_eq!(poll(&tools, 1).await.outcome.kind(), Kind::ToolError);
    }
    assert_eq!(poll(&tools, 1).await.outcome.kind(), Kind::LimitExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_rate_allows_a_burst_and_then_one_call_at_a_time() {
    let (board, [fx]) = board([fake("fx", &server())]);
    let tools = board.toolset_with(View::new().rate(Rate::new(60, Duration::from_secs(60))));
    tools.list(PATIENCE).await;
    let mut refused = None;
    for n in 0..1000 {
        let reply = poll(&tools, n).await;
        if reply.is_error() {
            refused.get_or_insert(reply);
        }
    }
    assert_eq!(fx.count("tools/call"), 60);
    let refused = refused.expect("a refusal");
    assert_outcome(&refused, Kind::LimitExceeded, false);
    assert_contains(
        &refused.text(),
        &["60 calls in 60s of this client", "Call again in 1 s"],
    );
    for _ in 0..5 {
        tokio::time::sleep(secs(1)).await;
        assert_eq!(poll(&tools, 0).await.outcome.kind(), Kind::Ok);
        assert_eq!(poll(&tools, 0).await.outcome.kind(), Kind::LimitExceeded);
    }
    tokio::time::sleep(secs(3600)).await;
    for n in 0..100 {
        poll(&tools, n).await;
    }
    assert_eq!(fx.count("tools/call"), 60 + 5 + 60, "a rest fills the bucket once");
}

/// A task is a call too, and a call that an approver would refuse counts as well.
#[tokio::test(start_paused = true)]
async fn tasks_and_selections_share_the_limits_of_their_view() {
    let (board, [fx]) = board([fake("fx", &server())]);
    let tools = board.toolset_with(View::new().rate(Rate::new(2, Duration::from_secs(60))));
    tools.list(PATIENCE).await;
    let selection = pegboard::Selection::new().server("fx");
    let selected = ToolCall::new("fx.poll").selection(selection);
    assert_eq!(tools.call(selected.clone()).await.outcome.kind(), Kind::Ok);
    let reply = tools
        .start(ToolCall::new("fx.poll"))
        .await
        .expect_err("it runs as no task");
    assert_eq!(reply.outcome.kind(), Kind::InvalidArguments, "{}", reply.text());
    assert_eq!(tools.call(selected).await.outcome.kind(), Kind::LimitExceeded);
    let reply = tools
        .start(ToolCall::new("fx.poll"))
        .await
        .expect_err("the limit is reached");
    assert_eq!(reply.outcome.kind(), Kind::LimitExceeded, "{}", reply.text());
    assert_eq!(fx.count("tools/call"), 1);
}
