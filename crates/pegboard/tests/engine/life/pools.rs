//! Connection pools: several connections of one server behind one name.

use pegboard::{
    Config, Pegboard, ServerConfig, State,
    config::{RetryClass, Scope},
};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

fn good() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(
            Tool::new("pid")
                .shows_pid()
                .after(std::time::Duration::from_millis(300)),
        )
        .tool(Tool::new("slow").answers_text("done").after(secs(10)))
}

fn serial(scope: Scope) -> ServerConfig {
    let mut settings = in_process_settings();
    settings.policy.serial = true;
    settings.policy.scope = scope;
    settings
}

/// Four pooled connections run in parallel the calls that one connection would run serially.
#[tokio::test(start_paused = true)]
async fn four_calls_of_a_serial_server_take_as_long_as_one_in_a_pool() {
    for (scope, expected) in [(Scope::Shared, 40), (Scope::Pool(4), 10), (Scope::Pool(2), 20)] {
        let (board, _handle) = in_memory_with(&good(), serial(scope));
        let tools = board.toolset();
        let began = Instant::now();
        let calls = (0..4).map(|_| call(&tools, "fx.slow", json!({})));
        for reply in futures_util::future::join_all(calls).await {
            assert_eq!(reply.text(), "done", "{scope:?}");
        }
        assert_eq!(began.elapsed().as_secs(), expected, "{scope:?}");
    }
}

/// Without automatic restarts, lost connections are restarted on demand, one at a time, like connections that never started.
#[tokio::test(start_paused = true)]
async fn a_pool_without_restarts_is_started_again_by_the_calls_that_need_it() {
    let mut settings = serial(Scope::Pool(2));
    settings.policy.restart.enabled = false;
    let (board, handle) = in_memory_with(&good(), settings);
    let tools = board.toolset();
    for lives in 1..=2 {
        let began = Instant::now();
        let calls = (0..2).map(|_| call(&tools, "fx.slow", json!({})));
        for reply in futures_util::future::join_all(calls).await {
            assert_eq!(reply.text(), "done", "{lives}");
        }
        assert_eq!(began.elapsed().as_secs(), 10, "{lives}");
        let pool = board.status().servers[0].pool.clone().expect("a pool");
        assert_eq!(pool.ready, 2, "{lives}");
        handle.kill();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert_eq!(board.status().servers[0].state, State::Down, "{lives}");
    }
}

/// The pool opens a connection only when all open ones are busy. One row of the status covers the whole pool.
#[tokio::test(start_paused = true)]
async fn a_pool_grows_only_when_it_must_and_shrinks_when_it_can() {
    let (board, handle) = in_memory_with(&good(), serial(Scope::Pool(4)));
    let tools = board.toolset();
    let before = handle.starts();
    for _ in 0..10 {
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    }
    assert_eq!(handle.starts() - before, 1, "one call at a time needs one connection");
    let busy = tools.clone();
    let calls = (0..3).map(move |_| {
        let busy = busy.clone();
        async move { call(&busy, "fx.slow", json!({})).await }
    });
    let working = tokio::spawn(futures_util::future::join_all(calls));
    tokio::time::sleep(secs(5)).await;
    assert_eq!(board.status().servers.len(), 1);
    let status = board.status().servers[0].clone();
    let pool = status.pool.expect("a pool");
    assert_eq!((pool.size, pool.ready, pool.busy, status.in_flight), (4, 3, 3, 3));
    working.await.unwrap();
    tokio::time::sleep(secs(310)).await;
    let status = board.status().servers[0].clone();
    let pool = status.pool.expect("a pool");
    assert_eq!(
        (status.state, pool.ready, pool.busy),
        (State::Ready, 1, 0),
        "the first one stays, because the server starts with the board"
    );
}

/// A retried call releases its slot first: in a full pool that slot may be the only one it can get.
#[tokio::test(start_paused = true)]
async fn calls_that_fail_together_in_a_full_pool_do_not_wait_for_each_other() {
    let dying = good().fault_on(When::tool("slow").first(2), Fault::DiesBeforeExecuting { code: 1 });
    let mut settings = serial(Scope::Pool(2));
    settings.policy.tool_retry.insert("slow".to_owned(), RetryClass::Safe);
    let (board, handle) = in_memory_with(&dying, settings);
    let tools = board.toolset();
    board.settle(PATIENCE).await;
    let began = Instant::now();
    let calls = (0..2).map(|_| call(&tools, "fx.slow", json!({})));
    for reply in futures_util::future::join_all(calls).await {
        assert_eq!((reply.text(), reply.attempts), ("done".to_owned(), 2));
    }
    assert!(began.elapsed() < secs(20), "{:?}", began.elapsed());
    assert_eq!(handle.count("tools/call"), 4);
}

/// Calls move to the other connections if one connection cannot be opened.
#[tokio::test(start_paused = true)]
async fn a_pool_lives_with_the_connections_that_it_can_have() {
    let (_unused, good) = good().connect();
    let (_unused_too, silent) = FakeServer::new("fx").fault(Fault::SilentHandshake).connect();
    let (good_starts, silent_starts) = (good.starts(), silent.starts());
    let (first, others) = (good.clone(), silent.clone());
    let dialer = move || {
        let is_first = first.starts() == good_starts;
        let stream = if is_first { first.connect() } else { others.connect() };
        halves(stream)
    };
    let board = Pegboard::builder(Config::default())
        .in_process_with(name("fx"), dialer, serial(Scope::Pool(3)))
        .open();
    let tools = board.toolset();
    board.settle(PATIENCE).await;
    let calls = (0..4).map(|_| call(&tools, "fx.slow", json!({})));
    for reply in futures_util::future::join_all(calls).await {
        assert_eq!(reply.text(), "done");
    }
    assert!(silent.starts() > silent_starts + 1, "the others were tried");
    assert_eq!(board.status().servers[0].state, State::Ready);
}

/// Each connection of a stdio server is a process. All of them end with the board.
#[tokio::test]
async fn each_member_of_a_pool_is_a_process() {
    let mut config = process(&good());
    config.policy.scope = Scope::Pool(3);
    config.policy.serial = true;
    let board = board(config);
    let tools = board.toolset();
    let calls = (0..3).map(|_| call(&tools, "fx.pid", json!({})));
    let replies = futures_util::future::join_all(calls).await;
    let mut pids: Vec<u32> = replies
        .iter()
        .map(|reply| reply.text().trim().parse().unwrap())
        .collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 3);
    let mut told = board.status().servers[0].pool.clone().expect("a pool").pids;
    told.sort_unstable();
    assert_eq!(told, pids);
    board.shutdown().await;
    for pid in pids {
        gone(pid, secs(1)).await;
    }
}
