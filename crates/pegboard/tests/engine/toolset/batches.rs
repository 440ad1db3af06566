//! Batches of concurrent calls.

use std::{sync::Arc, time::Duration};

use pegboard::{Selection, ServerConfig, ToolCall, View};
use pegboard_testkit::{FakeServer, Tool};
use tokio::time::Instant;

use crate::support::*;

fn offers() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("r").after(secs(1)))
        .tool(Tool::new("write").destructive().answers_text("w").after(secs(1)))
}

/// A server whose hints count.
fn trusted() -> ServerConfig {
    let mut settings = ServerConfig::in_process();
    settings.policy.trust = true;
    settings
}

fn batch() -> Vec<ToolCall> {
    ["read", "write", "nobody", "read", "write"]
        .iter()
        .enumerate()
        .map(|(n, tool)| ToolCall::new(format!("fx.{tool}")).id(n.to_string()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_batch_runs_beside_itself_and_replies_come_in_its_order() {
    let (board, _handle) = in_memory(&offers());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let replies = tools.call_all(batch()).await;
    assert_eq!(started.elapsed(), Duration::from_secs(1));
    let ids: Vec<_> = replies.iter().map(|reply| reply.id.as_str()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
    assert!(replies[2].is_error());
    assert_eq!(replies[4].text(), "w");
}

#[tokio::test(start_paused = true)]
async fn writes_of_a_batch_run_in_turn_when_the_view_says_so() {
    let (board, handle) = in_memory_with(&offers(), trusted());
    let tools = board.toolset_with(View::new().writes_in_turn());
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let replies = tools.call_all(batch()).await;
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    assert_eq!(replies.len(), 5);
    let called = handle.requests();
    let called = called.iter().filter(|message| message.method == "tools/call");
    let names: Vec<_> = called
        .map(|message| message.params["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.last().unwrap(), "write");
}

#[tokio::test(start_paused = true)]
async fn every_call_of_an_untrusted_server_counts_as_a_write() {
    let (board, _handle) = in_memory(&offers());
    let tools = board.toolset_with(View::new().writes_in_turn());
    tools.list(PATIENCE).await;
    let started = Instant::now();
    tools
        .call_all(vec![ToolCall::new("fx.read"), ToolCall::new("fx.read")])
        .await;
    assert_eq!(started.elapsed(), secs(2));
}

/// Whether a call writes is decided under the selection of that call.
#[tokio::test(start_paused = true)]
async fn a_selection_and_both_hints_count_when_writes_are_told_from_reads() {
    let unsure = Tool::new("unsure").read_only().hint("destructiveHint", true);
    let (board, _handle) = in_memory_with(&offers().tool(unsure.after(secs(1))), trusted());
    let view = View::new()
        .writes_in_turn()
        .selection(Selection::new().tools("fx", ["write"]));
    let tools = board.toolset_with(view);
    tools.list(PATIENCE).await;
    let wide = Arc::new(Selection::new().server("fx"));
    let both = |tool: &str| {
        let calls = [tool, tool].map(|tool| ToolCall::new(format!("fx.{tool}")).selection(wide.clone()));
        Vec::from(calls)
    };
    for (tool, seconds) in [("read", 1), ("unsure", 2), ("write", 2)] {
        let started = Instant::now();
        let replies = tools.call_all(both(tool)).await;
        assert!(replies.iter().all(|reply| !reply.is_error()), "{}", replies[0].text());
        assert_eq!(started.elapsed(), secs(seconds), "{tool}");
    }
}
