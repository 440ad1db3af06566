//! Connections that several names share, and servers that only look alike and share none.

use pegboard::{
    Config, Kind, Pegboard, ServerConfig, State,
    config::{Limits, Transport},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn good(log: &std::path::Path) -> FakeServer {
    FakeServer::new("fx")
        .log(log)
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("pid").shows_pid())
}

async fn pid(board: &Pegboard, server: &str) -> u32 {
    let reply = call(&board.toolset(), &format!("{server}.pid"), json!({})).await;
    reply
        .text()
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{}", reply.text()))
}

fn with_env(mut config: ServerConfig, value: &str) -> ServerConfig {
    if let Transport::Stdio(command) = &mut config.transport {
        command.env.insert("KEY".to_owned(), pegboard::Secret::new(value));
    }
    config
}

/// The same server under two names with different filters is one process.
#[tokio::test]
async fn two_names_for_the_same_server_share_a_process_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut narrow = process(&good(&log));
    narrow.deny = vec!["hello".into()];
    narrow.limits.call_timeout = secs(7);
    let board = boards([("narrow", narrow), ("wide", process(&good(&log)))]);
    board.settle(PATIENCE).await;
    assert_eq!(pid(&board, "narrow").await, pid(&board, "wide").await);
    assert_eq!(spawned(&log).len(), 1);
    let tools = board.toolset();
    let listed = tools.list(PATIENCE).await.tools;
    let names: Vec<_> = listed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["narrow__pid", "wide__hello", "wide__pid"]);
    assert_eq!(call(&tools, "wide.hello", json!({})).await.text(), "hi");
    assert_outcome(
        &call(&tools, "narrow.hello", json!({})).await,
        Kind::NotPermitted,
        false,
    );
    let calls: Vec<u64> = board.status().servers.iter().map(|server| server.calls.total).collect();
    assert_eq!(calls, [1, 2]);
    board.shutdown().await;
}

/// The limits that are read for each call may differ between the names of one connection.
#[tokio::test]
async fn names_with_other_limits_for_their_calls_share_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let with = |change: fn(&mut Limits)| {
        let mut settings = process(&good(&log));
        change(&mut settings.limits);
        settings
    };
    let board = boards([
        ("idle", with(|limits| limits.call_timeout += secs(1))),
        ("in-flight", with(|limits| limits.max_in_flight += 1)),
        ("plain", process(&good(&log))),
        ("total", with(|limits| limits.call_total_timeout += secs(1))),
    ]);
    board.settle(PATIENCE).await;
    let shared = pid(&board, "plain").await;
    for server in ["idle", "in-flight", "total"] {
        assert_eq!(pid(&board, server).await, shared, "{server}");
    }
    assert_eq!(spawned(&log).len(), 1);
    board.shutdown().await;
}

/// A server with another environment is another server, also if it is changed to that later.
#[tokio::test]
async fn another_environment_is_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let one = with_env(process(&good(&log)), "1");
    let board = boards([
        ("a", one.clone()),
        ("b", with_env(process(&good(&log)), "2")),
        ("c", one.clone()),
    ]);
    let (a, b, c) = (pid(&board, "a").await, pid(&board, "b").await, pid(&board, "c").await);
    assert_eq!(a, c);
    assert_ne!(a, b);
    let mut config = Config::default();
    let changed = with_env(one.clone(), "3");
    config.servers = [("a", changed), ("c", one)]
        .map(|(server, settings)| (name(server), settings))
        .into();
    board.apply(config).await;
    assert_ne!(pid(&board, "a").await, a);
    assert_eq!(pid(&board, "c").await, a, "the other one keeps it");
    gone(b, secs(10)).await;
    board.shutdown().await;
}

/// Removing one name of a shared connection leaves the others connected; removing the last one closes it.
#[tokio::test]
async fn leaving_a_shared_process_leaves_it_to_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = boards([("a", process(&good(&log))), ("b", process(&good(&log)))]);
    let tools = board.toolset();
    let first = pid(&board, "a").await;
    board.disable(&name("a")).await;
    assert_eq!(board.status().servers[0].state, State::Disabled);
    assert_contains(&call(&tools, "a.hello", json!({})).await.text(), &["switched off"]);
    assert_eq!(pid(&board, "b").await, first);
    board.enable(&name("a")).await;
    assert_eq!(pid(&board, "a").await, first);
    board.disconnect(&name("a")).await;
    assert_eq!(pid(&board, "b").await, first);
    board.connect(name("a"), process(&good(&log))).await.unwrap();
    board.disconnect(&name("b")).await;
    assert_eq!(pid(&board, "a").await, first);
    board.disconnect(&name("a")).await;
    gone(first, secs(1)).await;
    assert_eq!(spawned(&log).len(), 1);
    board.shutdown().await;
}

/// Changing a connection setting for one of two names splits the connection.
#[tokio::test]
async fn a_change_that_does_not_fit_the_other_parts_them() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = boards([("a", process(&good(&log))), ("b", process(&good(&log)))]);
    let first = pid(&board, "a").await;
    let mut config = Config::default();
    let mut patient = process(&good(&log));
    patient.limits.list_timeout = secs(77);
    config.servers = [("a", patient.clone()), ("b", process(&good(&log)))]
        .map(|(server, settings)| (name(server), settings))
        .into();
    board.apply(config.clone()).await;
    let second = pid(&board, "a").await;
    assert_ne!(second, first);
    assert_eq!(pid(&board, "b").await, first);
    // With a single name left, the next such change is applied in place.
    patient.limits.list_timeout = secs(78);
    config.servers.insert(name("a"), patient);
    board.apply(config).await;
    assert_eq!(pid(&board, "a").await, second);
    board.shutdown().await;
}

/// The name that opened a connection has no special role for the names that remain.
#[tokio::test]
async fn the_one_who_is_left_keeps_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = boards([("a", process(&good(&log))), ("b", process(&good(&log)))]);
    let first = pid(&board, "b").await;
    let mut config = Config::default();
    let mut patient = process(&good(&log));
    patient.limits.list_timeout = secs(77);
    config.servers.insert(name("b"), patient);
    board.apply(config).await;
    let tools = board.toolset().list(PATIENCE).await.tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["b__hello", "b__pid"]);
    assert_eq!(pid(&board, "b").await, first);
    board.shutdown().await;
}

/// A server whose command changes while it is disabled is started with the new command.
#[tokio::test]
async fn a_server_that_changed_while_it_was_off_is_started_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut off = with_env(process(&good(&log)), "old");
    off.enabled = false;
    let board = board(off);
    let new = FakeServer::new("fx").tool(Tool::new("env").shows_env());
    let mut config = Config::default();
    config.servers.insert(name("fx"), with_env(process(&new), "new"));
    board.apply(config).await;
    assert_contains(
        &call(&board.toolset(), "fx.env", json!({})).await.text(),
        &[r#""KEY":"new""#],
    );
    board.shutdown().await;
}
