//! Views that are opened and closed while servers change.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use pegboard::{
    config::{Scope, Start},
    *,
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::Fault;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::{
    races::fixtures::*,
    support::{board, name, process, secs, spawned},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_view_starts_nothing() {
    let (_folder, [log]) = files(["log"]);
    let mut lazy = process(&good(&log, "x"));
    lazy.start = Start::Lazy;
    let board = board(lazy);
    let view = board.toolset();
    view.close().await;
    let listing = view.list(secs(5)).await;
    assert_eq!((alive(&log).len(), listing.tools.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_does_not_flap_with_views_of_a_server_that_fails() {
    let (_folder, [log]) = files(["log"]);
    let later = good(&log, "x")
        .fault(Fault::SlowStart { ms: 400 })
        .fault(Fault::ExitsAtHandshake {
            code: 1,
            stderr: "no".into(),
        });
    let mut config = process(&good(&log, "x").then_after(1, later));
    config.policy.scope = Scope::Session;
    config.required = true;
    config.policy.restart.backoff = vec![secs(60)];
    let board = board(config);
    until("ready", || board.status().ready).await;
    let first = board.toolset();
    assert_eq!(hello(&first).await.text(), "x");
    first.close().await;
    until("the next start fails", || !board.status().ready).await;
    let flaps_once = async || {
        let mut flaps = 0;
        for _ in 0..30 {
            if board.status().ready {
                flaps += 1;
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
        until("it has failed", || !board.status().ready).await;
        flaps
    };
    let mut flaps = 0;
    for _ in 0..3 {
        let view = board.toolset();
        flaps += flaps_once().await;
        view.close().await;
        flaps += flaps_once().await;
    }
    assert_eq!(flaps, 0, "ready although every start since the first has failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_view_that_closes_while_servers_change_is_left_without_servers() {
    let (_folder, [log]) = files(["log"]);
    let of = |n: usize| per_view(&good(&log, "x").instructions(&format!("{}", n % 2)));
    let mut bad = 0;
    for round in 0..10 {
        let board = board(of(0));
        let views: Vec<_> = (0..300).map(|_| board.toolset()).collect();
        let b = board.clone();
        let next = of(1);
        let applying = tokio::spawn(async move { b.apply(one(next)).await });
        let closing: Vec<_> = views
            .iter()
            .take(20)
            .cloned()
            .map(|v| tokio::spawn(async move { v.close().await }))
            .collect();
        for c in closing {
            c.await.unwrap();
        }
        applying.await.unwrap();
        for view in views.iter().take(20) {
            let listing = view.list(secs(5)).await;
            bad += usize::from(!listing.tools.is_empty());
        }
        board.shutdown().await;
        let left = alive(&log);
        assert!(
            bad == 0 && left.is_empty(),
            "round {round}: {bad} closed views have a server; alive after shutdown: {left:?}"
        );
    }
}

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
        let opening = open_views(&board, &stop, 3000);
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

/// A tool that is denied by `apply` while views are opened: the next view must not see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn settings_reach_every_view_however_many_are_being_opened() {
    let (_folder, [log]) = files(["log"]);
    let settings = per_view(&good(&log, "x"));
    let mut denied = settings.clone();
    denied.deny = vec!["hello".into()];
    for round in 0..20 {
        let board = board(settings.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let opening = open_views(&board, &stop, 2000);
        tokio::time::sleep(ms(3)).await;
        let applied = board.apply(one(denied.clone())).await;
        stop.store(true, Ordering::SeqCst);
        let _views = join_all(opening).await.len();
        assert_eq!(applied.retuned, [name("fx")]);
        // Opened after `apply` has returned.
        let view = board.toolset();
        let reply = hello(&view).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shutdown_waits_for_the_processes_of_views_that_are_dropped_meanwhile() {
    let (_folder, [log]) = files(["log"]);
    let mut config = per_view(&good(&log, "x").fault(Fault::IgnoresEof));
    config.limits.stop_timeout = ms(300);
    for round in 0..10 {
        let board = board(config.clone());
        let view = board.toolset();
        hello(&view).await;
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

/// A hook whose drop sets `began` and then waits until the sender of `go_on` is dropped.
struct SlowToDrop {
    began: Arc<AtomicBool>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Hook for SlowToDrop {}

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        self.began.store(true, Ordering::SeqCst);
        let _ = self.go_on.get_mut().recv_timeout(secs(20));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shutdown_waits_for_the_processes_of_a_view_that_is_half_dropped() {
    let (_folder, [log]) = files(["log"]);
    let mut config = per_view(&good(&log, "x").fault(Fault::IgnoresEof));
    config.limits.stop_timeout = ms(300);
    let board = board(config);
    let (release, go_on) = mpsc::channel();
    let began = Arc::new(AtomicBool::new(false));
    let hook = SlowToDrop {
        began: began.clone(),
        go_on: Mutex::new(go_on),
    };
    let view = board.toolset_with(View::new().hook(hook));
    assert_eq!(hello(&view).await.text(), "x");
    let dropping = std::thread::spawn(move || drop(view));
    until("the view is being dropped", || began.load(Ordering::SeqCst)).await;
    board.shutdown().await;
    let left = alive(&log);
    drop(release);
    dropping.join().unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// Opens views, changes the server of all of them and drops them. Returns the processor time from the change to the end.
async fn change_and_drop(count: usize) -> Duration {
    let (_folder, [log]) = files(["log"]);
    let of = |n: &str| per_view(&good(&log, "x").instructions(n));
    let board = board(of("0"));
    let mut slow = board.events();
    let views: Vec<_> = (0..count).map(|_| board.toolset()).collect();
    let began = processor_time();
    board.apply(one(of("1"))).await;
    assert_eq!(board.metrics().views_open, count as u64);
    drop(views);
    let took = processor_time() - began;
    assert_eq!(board.metrics().views_open, 0);
    until("rows are gone", || board.status().servers.len() == 1).await;
    let mut events = 0;
    while let Some(Some(_)) = slow.next().now_or_never() {
        events += 1;
    }
    assert!(events <= 1026);
    board.shutdown().await;
    assert!(spawned(&log).is_empty(), "no view has used its server");
    took
}

/// The processor time of this process. Other programs do not lengthen it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}

/// The cost grows with the number of views, not with its square.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_views_at_once_change_and_go() {
    let (few, many) = (change_and_drop(200).await, change_and_drop(2000).await);
    assert!(many < few * 40, "{few:?} for 200 views, {many:?} for 2000");
}
