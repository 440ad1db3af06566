//! Events of calls while they run.

use pegboard::{Event, ToolCall, toolset::CallEvent};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

/// One stream per call, in order, with one id.
#[tokio::test(start_paused = true)]
async fn a_call_is_created_makes_progress_and_is_completed() {
    let fake = FakeServer::new("fx").tool(Tool::new("long").answers_text("done").progress(2, secs(1)));
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset();
    let mut stream = tools.stream(ToolCall::new("fx.long").id("a"));
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        seen.push(match event {
            CallEvent::Created { id, name } => format!("created {id} {name}"),
            CallEvent::Progress(step) => format!("progress {}", step.progress),
            CallEvent::Completed(reply) => format!("completed {} {}", reply.id, reply.text()),
            _ => "something else".to_owned(),
        });
    }
    assert_eq!(
        seen,
        ["created a fx.long", "progress 1", "progress 2", "completed a done"]
    );
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_cancels_the_call() {
    let fake = FakeServer::new("fx").tool(Tool::new("long").progress(100, secs(1)));
    let (board, handle) = in_memory(&fake);
    let mut stream = board.toolset().stream(ToolCall::new("fx.long"));
    while !matches!(stream.next().await, Some(CallEvent::Progress(_))) {}
    drop(stream);
    handle.wait_for("notifications/cancelled", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_board_tells_its_listeners_of_every_call_without_content() {
    let fake = FakeServer::new("fx").tool(Tool::new("long").answers_text("private").progress(1, secs(1)));
    let (board, _handle) = in_memory(&fake);
    board.settle(PATIENCE).await;
    let mut events = board.events();
    board.toolset().call(ToolCall::new("fx.long").id("a")).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(serde_json::to_value(events.next().await.unwrap()).unwrap());
    }
    let kinds: Vec<_> = seen.iter().map(|event| (&event["event"], &event["id"])).collect();
    let a = json!("a");
    assert_eq!(
        kinds,
        [
            (&json!("call_created"), &a),
            (&json!("call_progress"), &a),
            (&json!("call_completed"), &a)
        ]
    );
    assert_eq!(seen[2]["kind"], "ok");
    assert!(!json!(seen).to_string().contains("private"));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_falls_behind_is_told_and_holds_nothing_up() {
    let fake = FakeServer::new("fx").tool(Tool::new("t"));
    let (board, _handle) = in_memory(&fake);
    board.settle(PATIENCE).await;
    let mut events = board.events();
    let tools = board.toolset();
    for _ in 0..600 {
        call(&tools, "fx.t", json!({})).await;
    }
    assert_eq!(events.next().await, Some(Event::Missed { events: 176 }));
    assert!(matches!(events.next().await, Some(Event::CallCreated { .. })));
}
