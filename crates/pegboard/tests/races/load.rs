//! Changes under load: calls and views of many users.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::join_all;
use pegboard::*;
use pegboard_testkit::{FakeServer, Tool as FakeTool, read_log};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    changes::*,
    support::{PATIENCE, board, call, name, process, secs},
};

/// A tool that is denied by `apply` while views are opened: the next view must not see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn settings_reach_every_view_however_many_are_being_opened() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut settings = process(&good(&log, "x"));
    settings.policy.scope = Scope::Session;
    settings.start = Start::Lazy;
    let mut denied = settings.clone();
    denied.deny = vec!["hello".into()];
    for round in 0..20 {
        let board = board(settings.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let opening: Vec<_> = (0..4)
            .map(|_| {
                let (b, stop) = (board.clone(), stop.clone());
                tokio::task::spawn_blocking(move || {
                    let mut views = Vec::new();
                    while !stop.load(Ordering::SeqCst) && views.len() < 2000 {
                        views.push(b.toolset());
                    }
                    views
                })
            })
            .collect();
        tokio::time::sleep(ms(3)).await;
        let applied = board.apply(one(denied.clone())).await;
        stop.store(true, Ordering::SeqCst);
        let _views = join_all(opening).await.len();
        assert_eq!(applied.retuned, [name("fx")]);
        // Opened after `apply` has returned.
        let view = board.toolset();
        let reply = call(&view, "fx.hello", json!({})).await;
        let again = board.apply(one(denied.clone())).await;
        assert!(
            reply.is_error(),
            "round {round}: a view that was opened after `apply` calls the denied tool: {}; the next apply retunes {:?}",
            reply.text(),
            again.retuned
        );
        board.shutdown().await;
    }
}

/// The live process of a replacement that a closing view is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_process_outlives_shutdown_when_views_close_while_a_server_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let of = |n: usize| {
        let mut config = process(&good(&log, "x").instructions(&format!("{n}")));
        config.start = Start::Lazy;
        config.policy.scope = Scope::Session;
        config
    };
    let began = Instant::now();
    for round in 0..40 {
        if began.elapsed() > secs(60) {
            return;
        }
        let board = board(of(0));
        let views: Vec<_> = (0..60).map(|_| board.toolset()).collect();
        call(views.last().unwrap(), "fx.hello", json!({})).await;
        let b = board.clone();
        let next = of(1);
        let applying = tokio::spawn(async move { b.apply(one(next)).await });
        // Views are closed one after the other, first to last, while it is put.
        let mut n = 0;
        for view in &views[..59] {
            view.close().await;
            n += 1;
            tokio::time::sleep(ms(2)).await;
            if applying.is_finished() {
                break;
            }
        }
        applying.await.unwrap();
        board.shutdown().await;
        let left = alive(&log);
        assert!(
            left.is_empty(),
            "round {round}: after shutdown {left:?} lives; {n} views were closed meanwhile"
        );
    }
}

/// What a hook, not an approver, holds back is under way too.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_handle_is_not_asked_of_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
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
        config.limits.call_total = secs(2);
        config.limits.call_idle = secs(2);
        config
    };
    let board = board(fake(&a, "old"));
    let view = board.toolset();
    let handle = match view.start(ToolCall::new("fx.work")).await {
        Ok(handle) => handle,
        Err(reply) => panic!("{}", reply.text()),
    };
    board.apply(one(fake(&b, "new"))).await;
    // The old one may drain for as long as a call may take.
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

/// A view that is closed while its own spare is adopted; the board stays whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn views_come_and_go_while_the_board_changes_and_nothing_hangs_or_stays() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let of = |n: usize| {
        let mut config = process(&good(&log, "x").instructions(&format!("{}", n % 3)));
        config.policy.scope = match n % 3 {
            0 => Scope::Session,
            1 => Scope::Shared,
            _ => Scope::Pool(2),
        };
        config.start = if n.is_multiple_of(2) { Start::Lazy } else { Start::Eager };
        config.limits.connect = secs(10);
        config
    };
    let board = board(of(0));
    let stop = Arc::new(AtomicBool::new(false));
    let users: Vec<_> = (0..4)
        .map(|user| {
            let (b, stop) = (board.clone(), stop.clone());
            tokio::spawn(async move {
                let mut kinds = BTreeMap::<String, usize>::new();
                let mut n = 0;
                while !stop.load(Ordering::SeqCst) {
                    n += 1;
                    let view = b.toolset();
                    let reply = tokio::time::timeout(secs(15), view.call(ToolCall::new("fx.hello")))
                        .await
                        .unwrap_or_else(|_| panic!("a call hangs"));
                    let kind = reply.outcome.kind().as_str().to_owned();
                    *kinds
                        .entry(if kind == "ok" {
                            kind
                        } else {
                            format!("{kind}: {}", reply.text())
                        })
                        .or_default() += 1;
                    if n % 2 == user % 2 {
                        view.close().await
                    }
                }
                kinds
            })
        })
        .collect();
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < secs(3) {
        n += 1;
        match n % 7 {
            0 => {
                board.disable(&name("fx")).await;
                board.enable(&name("fx")).await;
            }
            3 => {
                board.disconnect(&name("fx")).await;
                let _ = board.connect(name("fx"), of(n)).await;
            }
            5 => {
                board.reconnect(&name("fx")).await;
            }
            _ => {
                board.apply(one(of(n))).await;
            }
        }
        tokio::time::sleep(ms(30)).await;
    }
    stop.store(true, Ordering::SeqCst);
    let kinds: Vec<_> = join_all(users).await.into_iter().map(Result::unwrap).collect();
    let down = tokio::time::timeout(secs(10), board.shutdown()).await;
    assert!(down.is_ok(), "shutdown hangs");
    assert_eq!(alive(&log), [0; 0]);
    let metrics = board.metrics();
    assert!(!kinds.is_empty());
    assert_eq!((metrics.total.in_flight, metrics.views_open), (0, 0));
}

/// Servers are only replaced, never removed or switched off: no call may fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_lost_while_servers_are_replaced() {
    let mut failed = Vec::new();
    for scope in [Scope::Shared, Scope::Session, Scope::Pool(2)] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let of = |n: usize| {
            let mut config = process(&good(&log, "x").instructions(&format!("{}", n % 2)));
            config.policy.scope = scope;
            config
        };
        let board = board(of(0));
        board.settle(PATIENCE).await;
        let stop = Arc::new(AtomicBool::new(false));
        let users: Vec<_> = (0..6)
            .map(|_| {
                let (view, stop) = (board.toolset(), stop.clone());
                tokio::spawn(async move {
                    let mut kinds = BTreeMap::<String, usize>::new();
                    while !stop.load(Ordering::SeqCst) {
                        let reply = view.call(ToolCall::new("fx.hello")).await;
                        let kind = reply.outcome.kind().as_str().to_owned();
                        *kinds
                            .entry(if kind == "ok" {
                                kind
                            } else {
                                format!("{kind}: {}", reply.text())
                            })
                            .or_default() += 1;
                    }
                    kinds
                })
            })
            .collect();
        let began = Instant::now();
        let mut n = 0;
        while began.elapsed() < secs(2) {
            n += 1;
            let applied = board.apply(one(of(n))).await;
            assert!(applied.errors.is_empty(), "{:?}", applied.errors);
            tokio::time::sleep(ms(150)).await;
        }
        stop.store(true, Ordering::SeqCst);
        for kinds in join_all(users).await {
            failed.extend(
                kinds
                    .unwrap()
                    .into_iter()
                    .filter(|(k, _)| k != "ok")
                    .map(|k| format!("{scope:?} ({n} changes): {k:?}")),
            );
        }
        board.shutdown().await;
        assert_eq!(alive(&log), [0; 0]);
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
