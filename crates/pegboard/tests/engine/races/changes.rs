//! Concurrent changes of a board: `apply`, operator commands and shutdown.

use std::sync::Arc;

use futures_util::future::join_all;
use pegboard::{
    config::{IdleStop, Scope, Start},
    *,
};
use pegboard_testkit::{FakeServer, Fault, Tool as FakeTool, When, read_log};
use serde_json::json;

use crate::{
    races::fixtures::*,
    support::{PATIENCE, board, call, name, process, secs},
};

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_leaves_no_replacement_running() {
    let (_folder, [old, new]) = files(["old", "new"]);
    let board = settled(process(&good(&old, "old"))).await;
    let applying = replacing(&board, &good(&new, "new").fault(Fault::SilentHandshake), &new).await;
    board.shutdown().await;
    let left = alive(&new);
    assert!(
        left.is_empty(),
        "alive after shutdown: {left:?}, apply done: {}",
        applying.is_finished()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_starts_after_shutdown_by_apply_then_enable() {
    let (_folder, [log]) = files(["log"]);
    let board = Pegboard::open(Config::default());
    let (_view, _second) = (board.toolset(), board.toolset());
    board.shutdown().await;
    let mut settings = process(&good(&log, "hi"));
    settings.policy.scope = Scope::Session;
    board.apply(one(settings)).await;
    let enabled = board.enable(&name("fx")).await;
    tokio::time::sleep(secs(1)).await;
    assert_eq!((alive(&log).len(), enabled), (0, false));
}

/// A board with room for one server of two, `a` and `b`, from which `a` was then removed.
async fn full_then_free(a: ServerConfig, b: ServerConfig) -> Pegboard {
    let mut config = Config::default();
    config.limits.max_servers = 1;
    config.servers.insert(name("a"), a);
    config.servers.insert(name("b"), b);
    let board = Pegboard::open(config);
    board.settle(PATIENCE).await;
    board.disconnect(&name("a")).await;
    board
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_of_a_refused_server_when_there_is_room() {
    let (_folder, [log]) = files(["log"]);
    let second = process(&good(&log, "hi").instructions("b"));
    let board = full_then_free(process(&good(&log, "hi")), second).await;
    let enabled = board.enable(&name("b")).await;
    let reply = call(&board.toolset(), "b.hello", json!({})).await;
    assert_eq!((enabled, reply.text().as_str()), (true, "hi"));
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_of_a_refused_server_when_there_is_room() {
    let (_folder, [log]) = files(["log"]);
    let second = process(&good(&log, "hi").instructions("b"));
    let board = full_then_free(process(&good(&log, "hi")), second.clone()).await;
    board.connect(name("b"), second).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_of_a_misconfigured_server_is_not_success() {
    let board = Pegboard::open(misconfigured());
    assert_eq!(states(&board), [State::Misconfigured]);
    assert!(!board.enable(&name("x")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_keeps_to_max_servers() {
    let (_folder, [log]) = files(["log"]);
    let mut config = Config::default();
    config.limits.max_servers = 1;
    for n in ["a", "b", "c"] {
        let mut server = process(&good(&log, "hi").instructions(n));
        server.enabled = false;
        config.servers.insert(name(n), server);
    }
    let board = Pegboard::open(config);
    let mut on = Vec::new();
    for n in ["a", "b", "c"] {
        on.push(board.enable(&name(n)).await);
    }
    assert_eq!(
        on,
        [true, false, false],
        "{:?}, processes {}",
        states(&board),
        alive(&log).len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_are_connected_at_once_keep_to_max_servers() {
    let folder = tempfile::tempdir().unwrap();
    let _log = folder.path().join("log");
    for round in 0..10 {
        let mut config = Config::default();
        config.limits.max_servers = 1;
        let board = Pegboard::open(config);
        let barrier = Arc::new(tokio::sync::Barrier::new(4));
        let connecting = (0..4).map(|n| {
            let (b, barrier) = (board.clone(), barrier.clone());
            let config = missing_program(&n.to_string());
            tokio::spawn(async move {
                barrier.wait().await;
                b.connect(name(&format!("s{n}")), config)
                    .await
                    .map_err(|e| e.to_string())
            })
        });
        let done = join_all(connecting).await;
        let rows = board.status().servers;
        let on = rows
            .iter()
            .filter(|row| !row.last_error.as_ref().unwrap().message.contains("takes 1 servers"))
            .count();
        assert!(on <= 1, "round {round}: {on} servers are on a board for one: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn max_processes_can_be_raised_by_apply() {
    let (_folder, [log]) = files(["log"]);
    let mut config = one(process(&good(&log, "old")));
    config.limits.max_processes = 1;
    let board = Pegboard::open(config.clone());
    board.settle(PATIENCE).await;
    config.limits.max_processes = 5;
    config.servers.insert(name("second"), process(&good(&log, "new")));
    let applied = board.apply(config).await;
    assert!(applied.errors.is_empty(), "{:?}", applied.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn disable_holds_while_a_replacement_is_starting() {
    let (_folder, [old, new]) = files(["old", "new"]);
    let board = settled(process(&good(&old, "old"))).await;
    let applying = replacing(&board, &good(&new, "new").fault(Fault::SlowStart { ms: 700 }), &new).await;
    assert!(board.disable(&name("fx")).await);
    applying.await.unwrap();
    let reply = hello(&board.toolset()).await;
    assert_eq!(states(&board), [State::Disabled], "a call says {}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_holds_while_a_replacement_is_starting() {
    let (_folder, [old, new]) = files(["old", "new"]);
    let board = settled(process(&good(&old, "old"))).await;
    let applying = replacing(&board, &good(&new, "new").fault(Fault::SlowStart { ms: 700 }), &new).await;
    assert!(board.disconnect(&name("fx")).await);
    applying.await.unwrap();
    assert_eq!(states(&board), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn disable_ends_the_old_process_of_a_name_too() {
    let (_folder, [old, new, gate]) = files(["old", "new", "gate"]);
    let mut first = process(&gated(&old, &gate, "old"));
    first.policy.serial = true;
    let board = board(first);
    let view = board.toolset();
    let v = view.clone();
    let running = tokio::spawn(async move { v.call(ToolCall::new("fx.slow")).await });
    until("it arrives", || calls(&old) == 1).await;
    let v = view.clone();
    let queued = tokio::spawn(async move { v.call(ToolCall::new("fx.hello")).await });
    until("it waits", || board.status().servers[0].queued == 1).await;
    board.apply(one(process(&gated(&new, &gate, "new")))).await;
    assert!(board.disable(&name("fx")).await);
    let left = alive(&old);
    std::fs::write(&gate, "").unwrap();
    let (running, queued) = (running.await.unwrap(), queued.await.unwrap());
    assert!(
        left.is_empty(),
        "after disable {left:?} lives, and calls still end as {:?} and {:?}",
        running.text(),
        queued.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_disabled_stays_so_when_its_config_moves() {
    let (_folder, [log]) = files(["log"]);
    let board = settled(process(&good(&log, "x"))).await;
    board.disable(&name("fx")).await;
    let mut retuned = process(&good(&log, "x"));
    retuned.deny = vec!["other".into()];
    board.apply(one(retuned)).await;
    let after_retune = states(&board);
    board.apply(one(process(&good(&log, "y")))).await;
    assert_eq!(
        (after_retune, states(&board)),
        (vec![State::Disabled], vec![State::Disabled])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_apply_wins() {
    let (_folder, [old, new, newer]) = files(["old", "new", "newer"]);
    let board = settled(process(&good(&old, "old"))).await;
    let applying = replacing(&board, &good(&new, "second").fault(Fault::SlowStart { ms: 1000 }), &new).await;
    board.apply(one(process(&good(&newer, "third")))).await;
    let reply = hello(&board.toolset()).await;
    assert_eq!(reply.text(), "third");
    applying.await.unwrap();
    let reply = hello(&board.toolset()).await;
    assert_eq!(reply.text(), "third", "the older apply displaced the newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_a_later_apply_removes_stays_removed() {
    let (_folder, [old, new]) = files(["old", "new"]);
    let board = settled(process(&good(&old, "old"))).await;
    let applying = replacing(&board, &good(&new, "second").fault(Fault::SlowStart { ms: 700 }), &new).await;
    board.apply(Config::default()).await;
    applying.await.unwrap();
    assert_eq!(states(&board), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rests_is_not_displaced_by_one_that_cannot_start() {
    let (_folder, [log]) = files(["log"]);
    let mut config = process(&good(&log, "x"));
    config.policy.idle_stop = IdleStop::After(ms(200));
    // A shared process ends before the next is started.
    config.policy.scope = Scope::Pool(1);
    let board = board(config);
    let view = board.toolset();
    assert_eq!(hello(&view).await.text(), "x");
    until("it rests", || states(&board) == [State::Idle]).await;
    board.apply(one(missing_program("x"))).await;
    assert_eq!(hello(&view).await.text(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_answer_is_not_given_in_the_name_of_another_server() {
    let (_folder, [log]) = files(["log"]);
    let fake = |says: &str| {
        let mut config = process(
            &FakeServer::new("fx")
                .log(&log)
                .tool(FakeTool::new("hello").read_only().answers_text(says)),
        );
        config.policy.cache = Some(secs(600));
        config.policy.trust = true;
        config
    };
    let board = board(fake("staging"));
    let view = board.toolset();
    assert_eq!(hello(&view).await.text(), "staging");
    board.apply(one(fake("production"))).await;
    assert_eq!(hello(&view).await.text(), "production");
}

/// A task id belongs to the server that created the task, not to its replacement.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_handle_is_not_asked_of_another_server() {
    let (_folder, [a, b]) = files(["a", "b"]);
    let fake = |log: &std::path::Path, says: &str| {
        let mut config = process(
            &FakeServer::new("fx")
                .log(log)
                .version("2025-11-25")
                .capabilities(
                    json!({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}),
                )
                .tool(
                    FakeTool::new("work")
                        .with("execution", json!({"taskSupport": "optional"}))
                        .runs_as_task()
                        .answers_text(says),
                ),
        );
        config.limits.call_total_timeout = secs(2);
        config.limits.call_timeout = secs(2);
        config
    };
    let board = board(fake(&a, "old"));
    let view = board.toolset();
    let handle = match view.start(ToolCall::new("fx.work")).await {
        Ok(handle) => handle,
        Err(reply) => panic!("{}", reply.text()),
    };
    board.apply(one(fake(&b, "new"))).await;
    // The old server may drain for the total timeout of a call.
    until("the old one is gone", || alive(&a).is_empty()).await;
    let status = handle.status().await;
    let asked = read_log(&b).unwrap().count("tasks/get");
    assert_eq!(
        asked,
        0,
        "the new server was asked for the old one's task {:?}: {status:?}",
        handle.id()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_holds_from_the_next_call_on() {
    let (_folder, [log, gate]) = files(["log", "gate"]);
    let config = process(&gated(&log, &gate, "x"));
    let board = settled(config.clone()).await;
    let mut serial = config.clone();
    serial.policy.serial = true;
    serial.limits.max_in_flight = 1;
    let applied = board.apply(one(serial)).await;
    assert_eq!(applied.retuned, [name("fx")]);
    let view = board.toolset();
    let (a, b) = (view.clone(), view.clone());
    let a = tokio::spawn(async move { a.call(ToolCall::new("fx.slow")).await });
    let b = tokio::spawn(async move { b.call(ToolCall::new("fx.slow")).await });
    until("one waits", || board.status().servers[0].queued == 1).await;
    until("the other arrives", || calls(&log) > 0).await;
    let at_once = calls(&log);
    std::fs::write(&gate, "").unwrap();
    let _ = (a.await, b.await);
    assert_eq!(at_once, 1, "calls in flight at once under `serial = true`");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnect_starts_anew_while_a_start_hangs() {
    let (_folder, [log]) = files(["log"]);
    let board = board(process(&good(&log, "x").fault(Fault::SilentHandshake)));
    until("it is started", || !alive(&log).is_empty()).await;
    let before = alive(&log);
    assert!(board.reconnect(&name("fx")).await);
    let is_new = |pid: &u32| !before.contains(pid);
    until("another process is started", || alive(&log).iter().any(is_new)).await;
    until("the first one is gone", || alive(&log).iter().all(is_new)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnect_is_not_lost_in_a_full_mailbox() {
    let (_folder, [log]) = files(["log"]);
    let mut config =
        process(&good(&log, "x").fault_on(When::method("tools/list").after(1), Fault::LateAnswer { ms: 700 }));
    config.limits.list_timeout = secs(1);
    let board = settled(config).await;
    let before = alive(&log);
    for _ in 0..60 {
        board.refresh(name("fx"));
    }
    assert!(board.reconnect(&name("fx")).await);
    let is_new = |pid: &u32| !before.contains(pid);
    until("it is started anew", || alive(&log).iter().any(is_new)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_after_drain() {
    let (_folder, [log]) = files(["log"]);
    let mut lazy = process(&good(&log, "x"));
    lazy.start = Start::Lazy;
    let board = board(lazy);
    let view = board.toolset();
    assert!(board.drain(secs(1)).await);
    let listing = view.list(secs(5)).await;
    assert_eq!((alive(&log).len(), listing.tools.len()), (0, 0));
}
