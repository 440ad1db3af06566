//! Limits on the number of servers and processes of a board.

use pegboard::{
    Config, Kind, NativeTool, NativeTools, Pegboard, ServerConfig, State, board::NotConnected, config::Start,
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn good(server: &str) -> FakeServer {
    FakeServer::new(server).tool(Tool::new("hello").answers_text("hi"))
}

fn config(servers: &[&str], most: usize) -> Config {
    let mut config = Config::default();
    config.limits.max_servers = most;
    config.servers = servers
        .iter()
        .map(|server| (name(server), process(&good(server))))
        .collect();
    config
}

fn names(names: &[pegboard::ServerName]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// With a limit of two, the third server is rejected with a hint; the other two work.
#[tokio::test]
async fn a_server_too_many_is_refused_and_the_others_work() {
    let board = Pegboard::open(config(&["a", "b", "c"], 2));
    let tools = board.toolset();
    for tool in ["a.hello", "b.hello"] {
        assert_eq!(call(&tools, tool, json!({})).await.text(), "hi");
    }
    let reply = call(&tools, "c.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["takes 2 servers"]);
    let status = board.status();
    assert_eq!(status.servers[2].state, State::Down);
    let error = status.servers[2].last_error.clone().expect("a reason");
    assert_contains(&error.hint.expect("a hint"), &["max_servers"]);
    board.shutdown().await;
}

/// The limit also applies to servers that are added later, until a slot is free.
#[tokio::test]
async fn room_is_looked_for_with_every_change() {
    let board = Pegboard::open(config(&["a", "b"], 2));
    let tools = board.toolset();
    let refused = board.connect(name("c"), process(&good("c"))).await.unwrap_err();
    assert!(
        matches!(refused, NotConnected::TooManyServers { most: 2, .. }),
        "{refused:?}"
    );
    assert_contains(&refused.to_string(), &["max_servers"]);
    assert_eq!(board.status().servers.len(), 2);
    board.connect(name("b"), process(&good("b2"))).await.unwrap();
    board.disconnect(&name("a")).await;
    board.connect(name("c"), process(&good("c"))).await.unwrap();
    assert_eq!(call(&tools, "c.hello", json!({})).await.text(), "hi");
    let applied = board.apply(config(&["b", "c", "d", "e"], 3)).await;
    assert_eq!(
        (names(&applied.added), names(&applied.refused)),
        ("d".into(), "e".into())
    );
    let applied = board.apply(config(&["b", "c", "d", "e"], 4)).await;
    assert_eq!(
        (names(&applied.added), names(&applied.refused)),
        ("e".into(), String::new())
    );
    assert_eq!(call(&tools, "e.hello", json!({})).await.text(), "hi");
    let applied = board.apply(config(&["b", "c", "d", "e", "f"], 4)).await;
    assert_eq!(names(&applied.refused), "f");
    board.apply(config(&["b"], 4)).await;
    assert_eq!(
        board.status().servers.len(),
        1,
        "what was refused is forgotten with its config"
    );
    board.shutdown().await;
}

/// The limit on processes applies to all servers together. A server that waits for a slot starts when one is free.
#[tokio::test]
async fn a_process_too_many_waits_until_another_has_ended() {
    let mut config = config(&["a", "b"], 10);
    config.limits.max_processes = 1;
    let waits = vec![std::time::Duration::from_millis(20)];
    for server in config.servers.values_mut() {
        server.policy.restart.backoff.clone_from(&waits);
    }
    let board = Pegboard::open(config);
    board.settle(PATIENCE).await;
    let status = board.status();
    let is_ready = |server: &&pegboard::status::ServerStatus| server.state == State::Ready;
    let first = status
        .servers
        .iter()
        .find(is_ready)
        .expect("one that is ready")
        .name
        .clone();
    let second = status
        .servers
        .iter()
        .find(|server| server.name != first)
        .expect("the other");
    assert_eq!(second.state, State::Down);
    assert_contains(
        &second.last_error.clone().expect("a reason").message,
        &["max_processes"],
    );
    board.disconnect(&first).await;
    ready(&board).await;
    let tool = format!("{}.hello", second.name);
    assert_eq!(call(&board.toolset(), &tool, json!({})).await.text(), "hi");
    board.shutdown().await;
}

/// Functions of the program share no process and no connection, so calls of them need not wait for one another.
#[tokio::test(start_paused = true)]
async fn two_thousand_calls_of_a_native_tool_run_at_once() {
    let wait = NativeTool::new("wait", "Waits.", json!({"type": "object"}), |_| async {
        tokio::time::sleep(secs(30)).await;
        Ok("done")
    });
    let board = Pegboard::builder(Config::new())
        .in_process("here", NativeTools::new([wait]))
        .open();
    let started = tokio::time::Instant::now();
    let replies = board
        .toolset()
        .call_all((0..2000).map(|_| ("here.wait", json!({}))))
        .await;
    let failed = replies.iter().find(|reply| reply.text() != "done");
    assert!(
        failed.is_none(),
        "{}",
        failed.map(pegboard::Reply::text).unwrap_or_default()
    );
    assert!(started.elapsed() < secs(60), "they ran at the same time");
}

/// A lazy server may be one that only users sign in to. A program that waits for its board must not start it.
#[tokio::test(start_paused = true)]
async fn who_waits_for_the_servers_that_start_with_the_board_starts_no_other() {
    let settings = |start| ServerConfig::in_process().start(start);
    let tool = || NativeTool::new("hello", "", json!({"type": "object"}), |_| async { Ok("hi") });
    let board = Pegboard::builder(Config::new())
        .in_process_with("eager", NativeTools::new([tool()]), settings(Start::Eager))
        .in_process_with("lazy", NativeTools::new([tool()]), settings(Start::Lazy))
        .open();
    let state = |server: usize| board.status().servers[server].state;
    board.settle_started(PATIENCE).await;
    assert_eq!((state(0), state(1)), (State::Ready, State::Idle));
    board.settle(PATIENCE).await;
    assert_eq!((state(0), state(1)), (State::Ready, State::Ready));
}
