//! Views that come and go while servers change.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::{FutureExt, future::join_all};
use pegboard::*;
use pegboard_testkit::{FakeServer, Fault, Tool as FakeTool, When, read_log};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    changes::*,
    support::{PATIENCE, board, call, ended_as, name, process, secs},
};

fn gated(log: &std::path::Path, gate: &std::path::Path, more: &str) -> FakeServer {
    good(log, more).tool(
        FakeTool::new("slow")
            .answers_text("done")
            .waits_at(gate.to_str().unwrap()),
    )
}

fn calls(log: &std::path::Path) -> usize {
    read_log(log).map(|log| log.count("tools/call")).unwrap_or(0)
}

// t. disable of a name whose old server is draining
#[tokio::test(flavor = "multi_thread")]
async fn disable_ends_the_old_process_of_a_name_too() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, gate) = (
        folder.path().join("old"),
        folder.path().join("new"),
        folder.path().join("gate"),
    );
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

// jj. settings that are made smaller
#[tokio::test(flavor = "multi_thread")]
async fn serial_holds_from_the_next_call_on() {
    let folder = tempfile::tempdir().unwrap();
    let (log, gate) = (folder.path().join("log"), folder.path().join("gate"));
    let config = process(&gated(&log, &gate, "x"));
    let board = board(config.clone());
    board.settle(PATIENCE).await;
    let mut serial = config.clone();
    serial.policy.serial = true;
    serial.limits.in_flight = 1;
    let applied = board.apply(one(serial)).await;
    assert_eq!(applied.retuned, [name("fx")]);
    let view = board.toolset();
    let (a, b) = (view.clone(), view.clone());
    let a = tokio::spawn(async move { a.call(ToolCall::new("fx.slow")).await });
    let b = tokio::spawn(async move { b.call(ToolCall::new("fx.slow")).await });
    tokio::time::sleep(ms(700)).await;
    let at_once = calls(&log);
    std::fs::write(&gate, "").unwrap();
    let _ = (a.await, b.await);
    assert_eq!(at_once, 1, "calls under way at once under `serial = true`");
}

// d. a successor that is serial
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_goes_to_the_successor_keeps_to_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let (log, new, gate) = (
        folder.path().join("log"),
        folder.path().join("new"),
        folder.path().join("gate"),
    );
    let board = board(asking(process(&gated(&log, &gate, "x"))));
    board.settle(PATIENCE).await;
    let slow = Slow::default();
    let (_view, calling) = waiting_call(&board, &slow).await;
    let mut serial = process(&gated(&new, &gate, "y"));
    serial.policy.serial = true;
    board.apply(one(serial)).await;
    let v = board.toolset();
    let busy = tokio::spawn(async move { v.call(ToolCall::new("fx.slow")).await });
    until("it arrives", || calls(&new) == 1).await;
    slow.go.notify_one();
    tokio::time::sleep(ms(500)).await;
    let at_once = calls(&new);
    std::fs::write(&gate, "").unwrap();
    let _ = (busy.await, calling.await);
    assert_eq!(at_once, 1);
}

// y, z.
#[tokio::test(flavor = "multi_thread")]
async fn approved_calls_do_not_reach_what_was_removed_or_disabled() {
    for remove in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let board = board(asking(process(&good(&log, "x"))));
        board.settle(PATIENCE).await;
        let slow = Slow::default();
        let (_view, calling) = waiting_call(&board, &slow).await;
        if remove {
            board.disconnect(&name("fx")).await;
        } else {
            board.disable(&name("fx")).await;
        }
        slow.go.notify_one();
        ended_as(&calling.await.unwrap(), Kind::Unavailable, false);
        assert_eq!((calls(&log), alive(&log).len()), (0, 0));
    }
}

// bb.
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_calls_that_wait_in_queues_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let (log, gate) = (folder.path().join("log"), folder.path().join("gate"));
    for how in 0..4 {
        let mut config = process(&gated(&log, &gate, "x"));
        config.policy.serial = true;
        if how == 3 {
            config.policy.scope = Scope::Session;
        }
        let board = board(config);
        let view = board.toolset();
        call(&view, "fx.hello", json!({})).await;
        let mut events = board.events();
        let before = calls(&log);
        let calling: Vec<_> = (0..30)
            .map(|_| {
                let v = view.clone();
                tokio::spawn(async move { v.call(ToolCall::new("fx.slow")).await })
            })
            .collect();
        until("one arrives", || calls(&log) == before + 1).await;
        until("the others wait", || board.status().servers[0].queued == 29).await;
        let began = Instant::now();
        match how {
            0 => board.shutdown().await,
            1 => {
                board.disable(&name("fx")).await;
            }
            2 => {
                for c in &calling {
                    c.abort()
                }
            }
            _ => view.close().await,
        }
        let mut kinds = BTreeMap::<String, usize>::new();
        for c in calling {
            let kind = c
                .await
                .map(|r| r.outcome.kind().as_str().to_owned())
                .unwrap_or("aborted".into());
            *kinds.entry(kind).or_default() += 1;
        }
        assert!(began.elapsed() < secs(6), "{how}: {:?} {kinds:?}", began.elapsed());
        tokio::time::sleep(ms(100)).await;
        let mut told = BTreeMap::<String, (u32, u32)>::new();
        while let Some(Some(event)) = events.next().now_or_never() {
            match event {
                Event::CallCreated { id, .. } => told.entry(id).or_default().0 += 1,
                Event::CallCompleted { id, .. } => told.entry(id).or_default().1 += 1,
                _ => {}
            }
        }
        assert!(
            told.len() == 30 && told.values().all(|t| *t == (1, 1)),
            "{how}: {told:?}"
        );
        assert_eq!(
            (board.metrics().total.in_flight, board.metrics().total.calls.total),
            (0, 31),
            "{how} {kinds:?}"
        );
        board.shutdown().await;
        assert_eq!(alive(&log).len(), 0, "{how}");
    }
}

// a. what a listener learns

// c.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_are_connected_at_once_keep_to_max_servers() {
    let folder = tempfile::tempdir().unwrap();
    let _log = folder.path().join("log");
    for round in 0..10 {
        let mut config = Config::default();
        config.limits.servers = 1;
        let board = Pegboard::open(config);
        let barrier = Arc::new(tokio::sync::Barrier::new(4));
        let connecting = (0..4).map(|n| {
            let (b, barrier) = (board.clone(), barrier.clone());
            let config = ServerConfig::new(Transport::Stdio(Command::new(format!("/nonexistent/{n}"))));
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

// b.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn disable_reaches_every_view_however_many_are_being_opened() {
    let tool = || {
        NativeTool::new("t", "x", json!({"type": "object"}), |_| async {
            Ok(Answer::from_text("ok"))
        })
    };
    for round in 0..10 {
        let mut settings = ServerConfig::in_process();
        settings.policy.scope = Scope::Session;
        settings.start = Start::Lazy;
        let board = Pegboard::builder(Config::default())
            .in_process_with(name("nat"), NativeTools::new([tool()]), settings)
            .open();
        let stop = Arc::new(AtomicBool::new(false));
        let opening: Vec<_> = (0..4)
            .map(|_| {
                let (b, stop) = (board.clone(), stop.clone());
                tokio::task::spawn_blocking(move || {
                    let mut views = Vec::new();
                    while !stop.load(Ordering::SeqCst) && views.len() < 3000 {
                        views.push(b.toolset());
                    }
                    views
                })
            })
            .collect();
        tokio::time::sleep(ms(3)).await;
        board.disable(&name("nat")).await;
        stop.store(true, Ordering::SeqCst);
        let views: Vec<_> = join_all(opening).await.into_iter().flat_map(Result::unwrap).collect();
        let on = board
            .status()
            .servers
            .iter()
            .filter(|row| row.state != State::Disabled)
            .count();
        assert_eq!(
            on,
            0,
            "round {round}: of {} views {on} still have the server",
            views.len()
        );
        board.shutdown().await;
    }
}

// f.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shutdown_waits_for_the_processes_of_views_that_are_dropped_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = process(&good(&log, "x").fault(Fault::IgnoresEof));
    config.policy.scope = Scope::Session;
    config.start = Start::Lazy;
    config.limits.stop = ms(300);
    for round in 0..10 {
        let board = board(config.clone());
        let view = board.toolset();
        call(&view, "fx.hello", json!({})).await;
        let barrier = Arc::new(std::sync::Barrier::new(2));
        let b2 = barrier.clone();
        let dropping = std::thread::spawn(move || {
            b2.wait();
            drop(view);
        });
        barrier.wait();
        board.shutdown().await;
        let left = alive(&log);
        dropping.join().unwrap();
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
}

// h.

// e.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_views_at_once_change_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let of = |n: &str| {
        let mut c = process(&good(&log, "x").instructions(n));
        c.policy.scope = Scope::Session;
        c.start = Start::Lazy;
        c
    };
    let board = board(of("0"));
    let mut slow = board.events();
    let views: Vec<_> = (0..2000).map(|_| board.toolset()).collect();
    let began = Instant::now();
    board.apply(one(of("1"))).await;
    let applied = began.elapsed();
    let rows = board.status().servers.len();
    drop(views);
    let dropped = began.elapsed();
    assert_eq!(board.metrics().views_open, 0);
    until("rows are gone", || board.status().servers.len() == 1).await;
    assert!(
        applied < secs(5) && dropped < secs(10),
        "{applied:?} {dropped:?} rows {rows}"
    );
    let mut count = 0;
    while let Some(Some(_)) = slow.next().now_or_never() {
        count += 1;
    }
    assert!(count <= 1026);
    board.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_never_go_back_over_many_names() {
    let board = Pegboard::open(Config::default());
    let mut last = 0;
    for n in 0..3000 {
        let server = name(&format!("s{n}"));
        let config = ServerConfig::new(Transport::Stdio(Command::new("/nonexistent/x")));
        let _ = board.connect(server.clone(), config).await;
        board.disconnect(&server).await;
        if n % 50 == 0 {
            let total = board.metrics().total.failed_starts;
            assert!(total >= last, "{n}: {total} after {last}");
            last = total;
        }
    }
    assert_eq!(board.metrics().total.failed_starts, 3000);
    assert!(board.metrics().servers.len() <= 1025);
}

// k.
#[tokio::test(flavor = "multi_thread")]
async fn reconnect_is_not_lost_in_a_full_mailbox() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config =
        process(&good(&log, "x").fault_on(When::method("tools/list").after(1), Fault::LateAnswer { ms: 700 }));
    config.limits.list = secs(1);
    let board = board(config);
    board.settle(PATIENCE).await;
    let before = alive(&log);
    for _ in 0..60 {
        board.refresh(&name("fx"));
    }
    assert!(board.reconnect(&name("fx")).await);
    tokio::time::sleep(secs(20)).await;
    let now = alive(&log);
    assert_ne!(now, before, "never started anew");
}

// m.
#[test]
fn every_pair_of_limits_loads_under_every_preset() {
    let limits = [
        "call_timeout",
        "call_total_timeout",
        "connect_timeout",
        "list_timeout",
        "write_timeout",
        "stop_timeout",
        "era_silence",
        "health_interval",
        "health_timeout",
    ];
    let mut bad = Vec::new();
    for preset in ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"] {
        for a in limits {
            for b in limits {
                for (x, y) in [("1s", "2s"), ("700s", "3s"), ("3s", "700s"), ("1ms", "24h")] {
                    for place in 0..3 {
                        let (ta, tb) = (
                            format!("{a} = '{x}'\n"),
                            if a == b {
                                String::new()
                            } else {
                                format!("{b} = '{y}'\n")
                            },
                        );
                        let (top, own) = match place {
                            0 => (format!("{ta}{tb}"), String::new()),
                            1 => (ta, tb),
                            _ => (tb, ta),
                        };
                        let text = format!("preset = '{preset}'\n{top}[servers.x]\ncommand = 'a'\n{own}");
                        let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
                        for problem in &loaded.problems {
                            let told = problem.to_string();
                            // Two that were both written may contradict each other.
                            if !told.contains("must not be less than")
                                && !told.contains("unknown")
                                && !told.contains("must be between")
                                && !told.contains("at most")
                                && !told.contains("at least")
                            {
                                bad.push(format!("{preset} {a}={x} {b}={y} {place}: {told}"));
                            }
                        }
                        if let Some(server) = loaded.config.servers.values().next()
                            && server.limits.call_total < server.limits.call_idle
                        {
                            bad.push(format!("{preset} {a}={x} {b}={y}: total < idle"));
                        }
                    }
                }
            }
        }
    }
    bad.dedup();
    assert!(
        bad.is_empty(),
        "{} of them, as {:#?}",
        bad.len(),
        &bad[..bad.len().min(12)]
    );
}

// operator's disable is undone by an unrelated apply
#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_disabled_stays_so_when_its_config_moves() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(process(&good(&log, "x")));
    board.settle(PATIENCE).await;
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

// a draining server takes the processes that its successor's views need
