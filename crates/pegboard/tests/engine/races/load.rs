//! Changes under load: calls and views of many users.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::join_all;
use pegboard::{
    config::{Scope, Start},
    *,
};
use tokio::time::Instant;

use crate::{
    races::fixtures::*,
    support::{board, name, process, secs},
};

/// A view that closes during a replacement may already have a process of the new server.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_process_outlives_shutdown_when_views_close_while_a_server_is_replaced() {
    let (_folder, [log]) = files(["log"]);
    let of = |n: usize| per_view(&good(&log, "x").instructions(&format!("{n}")));
    let began = Instant::now();
    for round in 0..40 {
        if began.elapsed() > secs(60) {
            return;
        }
        let board = board(of(0));
        let views: Vec<_> = (0..60).map(|_| board.toolset()).collect();
        hello(views.last().unwrap()).await;
        let b = board.clone();
        let next = of(1);
        let applying = tokio::spawn(async move { b.apply(one(next)).await });
        // Closes the views one by one while the server is replaced.
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

/// Every kind of change and scope, with views that close at random moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn views_come_and_go_while_the_board_changes_and_nothing_hangs_or_stays() {
    let (_folder, [log]) = files(["log"]);
    let of = |n: usize| {
        let mut config = process(&good(&log, "x").instructions(&format!("{}", n % 3)));
        config.policy.scope = match n % 3 {
            0 => Scope::Session,
            1 => Scope::Shared,
            _ => Scope::Pool(2),
        };
        config.start = if n.is_multiple_of(2) { Start::Lazy } else { Start::Eager };
        config.limits.connect_timeout = secs(10);
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
                    count(&mut kinds, &reply);
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

/// Servers are only replaced, never removed or disabled: no call may fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_lost_while_servers_are_replaced() {
    let mut failed = Vec::new();
    for scope in [Scope::Shared, Scope::Session, Scope::Pool(2)] {
        let (_folder, [log]) = files(["log"]);
        let of = |n: usize| {
            let mut config = process(&good(&log, "x").instructions(&format!("{}", n % 2)));
            config.policy.scope = scope;
            config
        };
        let board = settled(of(0)).await;
        let stop = Arc::new(AtomicBool::new(false));
        let users: Vec<_> = (0..6)
            .map(|_| {
                let (view, stop) = (board.toolset(), stop.clone());
                tokio::spawn(async move {
                    let mut kinds = BTreeMap::<String, usize>::new();
                    while !stop.load(Ordering::SeqCst) {
                        let reply = view.call(ToolCall::new("fx.hello")).await;
                        count(&mut kinds, &reply);
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
