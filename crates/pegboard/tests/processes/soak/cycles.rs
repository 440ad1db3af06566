//! Boards that are opened and closed many times leave nothing behind.

use std::time::Duration;

use pegboard::{Config, Pegboard};
use pegboard_testkit::{Era, FakeServer, Fault, Tool};
use serde_json::json;
use tokio::{runtime::Handle, time::Instant};

use crate::{soak::fixtures::*, support::*};

/// What may vary without being a leak: the pool of blocking threads, and tests that wait for the semaphore.
const SLACK: usize = 16;

/// Descriptors, tasks and processes return to their former number, however many boards there were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_that_are_shut_down_leave_nothing_behind() {
    let _alone = alone().await;
    check_cycles(true).await;
}

/// The same without a shutdown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_that_are_dropped_leave_nothing_behind() {
    let _alone = alone().await;
    check_cycles(false).await;
}

/// A call that waited for a start sees the server's tools at once, on every thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_call_finds_the_tools_of_a_server_that_has_just_started() {
    let _alone = alone().await;
    let fake = FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"));
    for round in 0..length(300) {
        let (board, _handle) = in_memory(&fake);
        let tools = board.toolset();
        let replies = futures_util::future::join_all((0..3).map(|_| call(&tools, "fx.hello", json!({})))).await;
        for reply in replies {
            assert_eq!(reply.text(), "hi", "{round}");
        }
    }
}

/// A board may also be shut down or dropped during a start or a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_that_go_at_any_moment_leave_nobody_behind() {
    let _alone = alone().await;
    let mut rng = Rng::new();
    let run = Run::new();
    let before = settled(None).await;
    for _ in 0..length(150) {
        let fake = match rng.below(3) {
            0 => run.fake().era(Era::Modern),
            1 => run.fake().fault(Fault::IgnoresEof),
            _ => run.fake(),
        };
        let board = restarting_board(process(&fake));
        let tools = board.toolset();
        let calling = call(&tools, "fx.pay", json!({"nonce": "n", "delay_ms": 5}));
        let _ = tokio::time::timeout(rng.up_to_ms(40), calling).await;
        if rng.below(4) == 0 {
            let closing = tokio::time::timeout(rng.up_to_ms(20), board.shutdown());
            let _ = closing.await;
        }
    }
    let after = settled(Some(&before)).await;
    assert!(after.fits(&before), "before: {before:?}, after: {after:?}");
    run.assert_no_process_left().await;
}

#[expect(clippy::print_stderr, reason = "the numbers are the result of a long run")]
async fn check_cycles(orderly: bool) {
    for _ in 0..3 {
        cycle(orderly).await;
    }
    let before = settled(None).await;
    for _ in 0..length(150) {
        cycle(orderly).await;
    }
    let after = settled(Some(&before)).await;
    eprintln!("before: {before:?}, after: {after:?}");
    assert!(after.fits(&before), "before: {before:?}, after: {after:?}");
}

/// One board with a process and an in-memory server, and a call of each.
async fn cycle(orderly: bool) {
    let fake = FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"));
    let (_unused, memory) = fake.connect();
    let mut config = Config::default();
    config.servers.insert(name("child"), process(&fake));
    let board = Pegboard::builder(config)
        .in_process(name("near"), dialer(&memory))
        .open();
    let tools = board.toolset();
    for tool in ["child.hello", "near.hello"] {
        assert_eq!(call(&tools, tool, json!({})).await.text(), "hi");
    }
    if orderly {
        board.shutdown().await;
    }
}

/// The resources that this process holds.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    tasks: usize,
    children: usize,
    threads: usize,
}

impl Held {
    fn now() -> Self {
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd")
                .expect("a list of descriptors")
                .count(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            children: children(),
            threads: std::fs::read_dir("/proc/self/task").expect("a list of threads").count(),
        }
    }

    fn fits(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors + SLACK
            && self.tasks <= before.tasks
            && self.children <= before.children
            && self.threads <= before.threads + SLACK
    }
}

/// The number of child processes, including zombies.
fn children() -> usize {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    // In `/proc/<pid>/stat` the state and the parent follow the command, which is in parentheses.
    stats
        .filter(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&own))
        })
        .count()
}

/// The held resources, once everything that was dropped has had time to end.
async fn settled(before: Option<&Held>) -> Held {
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let held = Held::now();
        let is_quiet = before.map_or(held.children == 0 && held.tasks == 0, |before| held.fits(before));
        // A blocking thread of the runtime ends after ten seconds without work.
        if is_quiet || began.elapsed() > secs(60) {
            return held;
        }
    }
}
