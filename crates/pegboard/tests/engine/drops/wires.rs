//! Every future of a view, dropped after each number of polls on every wire.

use std::time::Duration;

use pegboard::{Arguments, ToolCall, Toolset, toolset::CompletionOf, watch::LogLevel};
use pegboard_testkit::Era;
use serde_json::{Map, Value, json};

use crate::{drops::fixtures::*, support::*};

/// Drops the future of `begin` after 0, 1, 2, … polls, until it completes.
async fn check<F: Future>(what: &str, fixture: &Fixture, begin: impl Fn() -> F) {
    let before = tasks();
    for lingers in [false, true] {
        for polls in 0.. {
            assert!(polls < MANY, "{what} did not end");
            let ended = ends_within(polls, lingers, begin()).await;
            fixture.is_as_before(&format!("{what} after {polls} polls")).await;
            if ended {
                break;
            }
        }
    }
    at_most(before + fixture.slack(), what).await;
}

/// The same for a future that never completes.
async fn check_endless<F: Future>(what: &str, fixture: &Fixture, begin: impl Fn() -> F) {
    let before = tasks();
    for round in 0..24 {
        // It is woken only a few times, so a larger number of polls ends by this timeout.
        let dropped = tokio::time::timeout(
            Duration::from_millis(20),
            ends_within(round / 2, round % 2 == 0, begin()),
        );
        assert!(!dropped.await.unwrap_or(false), "{what} came to an end");
        fixture
            .is_as_before(&format!("{what}, dropped for the time {round},"))
            .await;
    }
    at_most(before + fixture.slack(), what).await;
}

/// A call that takes several writes.
fn long(tool: &str) -> ToolCall {
    let text = json!({ "text": "x".repeat(300_000) });
    ToolCall::new(tool).arguments(Arguments::try_from(text).unwrap())
}

/// Makes a call that must succeed if it completes.
async fn good(tools: &Toolset, call: ToolCall) {
    let reply = tools.call(call).await;
    assert!(!reply.is_error(), "{}", reply.text());
}

async fn on(wire: Wire, era: Era) {
    let fixture = Fixture::new(wire, fake(era), |_| ()).await;
    let fixture = &fixture;
    let (board, tools, fx, none) = (
        &fixture.board,
        &fixture.board.toolset(),
        &name("fx"),
        &Map::<String, Value>::new(),
    );
    tools.list(PATIENCE).await;
    fixture.is_as_before("the start").await;
    for tool in ["fx.t", "fx.slow", "fx.asks", "fx.task"] {
        check(tool, fixture, || good(tools, ToolCall::new(tool))).await;
    }
    check("a long call", fixture, || good(tools, long("fx.t"))).await;
    check("a call with a limit", fixture, || {
        good(tools, ToolCall::new("fx.slow").timeout(secs(5)))
    })
    .await;
    check_endless("a call without an answer", fixture, || {
        good(tools, ToolCall::new("fx.never"))
    })
    .await;
    check("a background task", fixture, || async {
        let mut handle = tools.start(ToolCall::new("fx.task")).await.unwrap();
        handle.status().await.unwrap();
        assert_eq!(handle.result(PATIENCE).await.text(), "ok");
        handle.cancel().await.unwrap();
    })
    .await;
    check("two at once", fixture, || async {
        tokio::join!(
            good(tools, ToolCall::new("fx.slow")),
            good(tools, ToolCall::new("fx.t"))
        );
    })
    .await;
    check("a batch", fixture, || tools.call_all(["fx.t", "fx.asks", "fx.t"])).await;
    check("a stream", fixture, || async {
        let mut stream = tools.stream(ToolCall::new("fx.asks"));
        while stream.next().await.is_some() {}
    })
    .await;
    check("a listing", fixture, || tools.list(PATIENCE)).await;
    check("resources", fixture, || tools.resources(PATIENCE)).await;
    check("prompts", fixture, || tools.prompts(PATIENCE)).await;
    check("reading", fixture, || async {
        tools.read_resource(fx, "a:a").await.unwrap()
    })
    .await;
    check("a prompt", fixture, || async {
        tools.get_prompt(fx, "p", none).await.unwrap()
    })
    .await;
    let of = &CompletionOf::Prompt("p".into());
    check("a completion", fixture, || async {
        tools.complete(fx, of, "a", "", none).await.unwrap()
    })
    .await;
    check("a subscription", fixture, || async {
        tools.subscribe(fx, "a:a").await.unwrap()
    })
    .await;
    check("a log level", fixture, || async {
        tools.set_log_level(fx, LogLevel::Info).await.unwrap()
    })
    .await;
    check("settling", fixture, || board.settle(PATIENCE)).await;
    board.shutdown().await;
}

/// The wires that are one stream of messages.
#[tokio::test]
async fn every_future_can_be_dropped_at_any_time_over_memory_pipes_and_websockets() {
    for (wire, era) in WIRES {
        if matches!(wire, Wire::Memory | Wire::Stdio | Wire::WebSocket) {
            on(wire, era).await;
        }
    }
}

/// The wires over HTTP.
#[tokio::test]
async fn every_future_can_be_dropped_at_any_time_over_http() {
    for (wire, era) in WIRES {
        if matches!(wire, Wire::Http | Wire::Streaming | Wire::Sse) {
            on(wire, era).await;
        }
    }
}

/// The same with other threads that carry the messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn every_future_can_be_dropped_at_any_time_while_other_threads_work() {
    for (wire, era) in [(Wire::Stdio, Era::Legacy), (Wire::Http, Era::Modern)] {
        on(wire, era).await;
    }
}
