//! Call timeouts: the idle timeout and the total timeout.

use pegboard::{Kind, ToolCall};
use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use crate::support::*;

/// Every call carries a progress token, and each progress notification resets the idle timeout.
#[tokio::test(start_paused = true)]
async fn progress_keeps_a_long_call_alive() {
    let fake = FakeServer::new("fx").tool(Tool::new("long").answers_text("done").progress(8, secs(59)));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let started = Instant::now();
    let (sender, mut steps) = mpsc::channel(100);
    let reply = tools.call(ToolCall::new("fx.long").progress(sender)).await;
    assert_eq!(reply.text(), "done");
    assert_eq!(started.elapsed().as_secs(), 8 * 59);
    let mut seen = Vec::new();
    while let Ok(step) = steps.try_recv() {
        seen.push(step.progress);
    }
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let call = handle
        .requests()
        .into_iter()
        .find(|message| message.method == "tools/call")
        .unwrap();
    assert_eq!(Some(&call.params["_meta"]["progressToken"]), call.id.as_ref());
}

/// Endless progress does not extend the total timeout.
#[tokio::test(start_paused = true)]
async fn progress_without_end_is_ended_by_the_total_limit() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("long"))
        .fault(Fault::ProgressForEver { every_ms: 1_000 });
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let reply = call(&tools, "fx.long", json!({})).await;
    assert_outcome(&reply, Kind::Timeout, true);
    assert_contains(&reply.text(), &["no answer within 600 s"]);
    assert_contains(reply.outcome.hint().unwrap(), &["call_total_timeout"]);
    assert_eq!(started.elapsed().as_secs(), 600);
    handle.wait_for("notifications/cancelled", 1).await;
}

/// A caller's own shorter timeout applies, and the error names it.
#[tokio::test(start_paused = true)]
async fn a_callers_own_limit_ends_the_call() {
    let fake = FakeServer::new("fx").tool(Tool::new("long")).fault(Fault::NeverAnswers);
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let reply = tools.call(ToolCall::new("fx.long").timeout(secs(7))).await;
    assert_outcome(&reply, Kind::Timeout, true);
    assert_contains(&reply.text(), &["no answer within 7 s"]);
    assert_eq!(started.elapsed().as_secs(), 7);
}

/// A flood of progress fills no queue, and a slow reader of it blocks nothing.
#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_is_thinned_out_and_the_answer_comes() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("busy").answers_text("done"))
        .fault(Fault::ProgressFlood { count: 20_000 });
    let (board, _handle) = in_memory(&fake);
    let (sender, mut steps) = mpsc::channel(4);
    let reply = board.toolset().call(ToolCall::new("fx.busy").progress(sender)).await;
    assert_eq!(reply.text(), "done");
    let mut seen = 0;
    while steps.try_recv().is_ok() {
        seen += 1;
    }
    assert!((1..=4).contains(&seen), "{seen}");
}

/// A silent handshake fails at the connect timeout and says so.
#[tokio::test(start_paused = true)]
async fn a_silent_handshake_ends_with_the_connect_limit() {
    let (board, _handle) = in_memory(&FakeServer::new("fx").fault(Fault::SilentHandshake));
    let started = Instant::now();
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["server `fx` is down", "no answer within 30 s"]);
    assert_contains(reply.outcome.hint().unwrap(), &["connect_timeout"]);
    assert_eq!(started.elapsed().as_secs(), 30);
}

/// Closing the board ends each call at once, exactly once.
#[tokio::test(start_paused = true)]
async fn closing_the_board_ends_its_calls() {
    let fake = FakeServer::new("fx").tool(Tool::new("gated").waits_at("never"));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let waiting = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "fx.gated", json!({})).await }
    });
    handle.wait_for("tools/call", 1).await;
    let started = Instant::now();
    board.shutdown().await;
    assert_outcome(&waiting.await.unwrap(), Kind::Transport, true);
    let after = call(&tools, "fx.gated", json!({})).await;
    assert_outcome(&after, Kind::Unavailable, false);
    assert!(started.elapsed() < secs(1));
}
