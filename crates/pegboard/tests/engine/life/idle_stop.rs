//! Idle stop and start modes: unused servers are stopped, and lazy or explicit servers are not started early.

use std::time::Duration;

use pegboard::{
    Kind, ServerConfig, State,
    config::{IdleStop, Start},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn good() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("pid").shows_pid())
        .tool(Tool::new("slow").answers_text("done").after(secs(1200)))
}

fn lazy() -> ServerConfig {
    let mut settings = in_process_settings();
    settings.start = Start::Lazy;
    settings.limits.call_timeout = secs(3600);
    settings.limits.call_total_timeout = secs(3600);
    settings
}

/// A lazy server is stopped after five minutes without a call. Its tools stay listed, and the next call starts it.
#[tokio::test(start_paused = true)]
async fn a_lazy_server_that_nobody_uses_is_stopped_and_started_again_when_needed() {
    let (board, handle) = in_memory_with(&good(), lazy());
    let tools = board.toolset();
    let state = || board.status().servers[0].state;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    let starts = handle.starts();
    tokio::time::sleep(secs(299)).await;
    assert_eq!(state(), State::Ready);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    tokio::time::sleep(secs(299)).await;
    assert_eq!(state(), State::Ready, "the time counts from the last call");
    tokio::time::sleep(secs(5)).await;
    assert_eq!(state(), State::Idle);
    assert_eq!(board.status().servers[0].tools, 3);
    assert!(board.status().healthy);
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 3);
    tokio::time::sleep(secs(3600)).await;
    assert_eq!(handle.starts(), starts, "neither a listing nor time starts it");
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), starts + 1);
}

/// A call in flight keeps its server running, however long it takes.
#[tokio::test(start_paused = true)]
async fn a_server_is_not_stopped_under_a_call() {
    let (board, handle) = in_memory_with(&good(), lazy());
    let starts = handle.starts();
    assert_eq!(call(&board.toolset(), "fx.slow", json!({})).await.text(), "done");
    assert_eq!(handle.starts(), starts + 1);
    assert_eq!(board.status().servers[0].restarts, 0);
}

/// The idle timeout is configurable; by default only lazy servers that are not required are stopped.
#[tokio::test(start_paused = true)]
async fn when_a_server_is_stopped_is_a_setting() {
    let set = |start, idle_stop, required| {
        let mut settings = lazy();
        settings.start = start;
        settings.policy.idle_stop = idle_stop;
        settings.required = required;
        settings
    };
    for (settings, expected) in [
        (set(Start::Eager, IdleStop::Auto, false), State::Ready),
        (set(Start::Lazy, IdleStop::Auto, true), State::Ready),
        (set(Start::Lazy, IdleStop::Never, false), State::Ready),
        (set(Start::Eager, IdleStop::After(secs(1800)), false), State::Idle),
        (set(Start::Eager, IdleStop::After(secs(7200)), false), State::Ready),
    ] {
        let (board, _handle) = in_memory_with(&good(), settings.clone());
        call(&board.toolset(), "fx.hello", json!({})).await;
        tokio::time::sleep(secs(3600)).await;
        assert_eq!(board.status().servers[0].state, expected, "{settings:?}");
    }
}

/// The idle server's process is gone, and calls that race with the stop are not lost.
#[tokio::test]
async fn the_process_of_an_idle_server_ends_and_callers_never_notice() {
    let mut config = process(&good());
    config.policy.idle_stop = IdleStop::After(Duration::from_millis(40));
    let board = board(config);
    let tools = board.toolset();
    let first: u32 = call(&tools, "fx.pid", json!({})).await.text().trim().parse().unwrap();
    gone(first, secs(10)).await;
    for round in 0..20 {
        let reply = call(&tools, "fx.hello", json!({})).await;
        assert_eq!(reply.text(), "hi", "{round}");
        tokio::time::sleep(Duration::from_millis(30 + round)).await;
    }
    assert_eq!(board.status().servers[0].restarts, 0, "a rest is no restart");
    board.shutdown().await;
}

/// A shared process is stopped only when all names that share it allow it.
#[tokio::test]
async fn a_shared_process_rests_only_when_all_names_let_it() {
    let restless = process(&good());
    let mut idle = process(&good());
    idle.policy.idle_stop = IdleStop::After(Duration::from_millis(50));
    let board = boards([("idle", idle), ("restless", restless)]);
    let tools = board.toolset();
    let pid: u32 = call(&tools, "idle.pid", json!({})).await.text().trim().parse().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(pegboard_testkit::is_alive(pid));
    board.disconnect(&name("restless")).await;
    // The remaining name is checked at the next idle interval only; this call ends the wait.
    let again: u32 = call(&tools, "idle.pid", json!({})).await.text().trim().parse().unwrap();
    assert_eq!(again, pid);
    board.shutdown().await;
}

/// An explicit server is started only by a request of the embedding program.
#[tokio::test(start_paused = true)]
async fn an_explicit_server_waits_until_somebody_asks_for_it() {
    let mut settings = in_process_settings();
    settings.start = Start::Explicit;
    let (board, handle) = in_memory_with(&good(), settings);
    let tools = board.toolset();
    let before = handle.starts();
    board.settle(PATIENCE).await;
    let listing = tools.list(PATIENCE).await;
    assert_eq!((listing.tools.len(), listing.unavailable.len()), (0, 1));
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["nobody has connected it"]);
    assert_eq!(handle.starts(), before);
    assert_eq!(board.status().servers[0].state, State::Idle);
    board.reconnect(&name("fx")).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), before + 1);
}

/// `connect` is such a request.
#[tokio::test]
async fn an_explicit_server_is_started_by_connect() {
    let mut settings = process(&good());
    settings.start = Start::Explicit;
    let board = board(settings.clone());
    assert_eq!(board.status().servers[0].state, State::Idle);
    board.connect(name("fx"), settings).await.unwrap();
    ready(&board).await;
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
}
