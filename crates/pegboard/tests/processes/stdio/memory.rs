//! How much memory and how many descriptors a noisy or broken server can cost.

use pegboard::{Kind, Pegboard};
use pegboard_testkit::{FakeServer, Fault, When};
use serde_json::json;

use crate::{
    stdio::{fixtures::TestDir, own_process::in_own_process},
    support::*,
};

/// The resident memory of this process, current or peak, in KiB.
pub(crate) fn resident(key: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Makes one call to warm up, then one with the fault, and returns the growth of the peak memory in MiB.
async fn growth(fake: FakeServer, expected: Kind) -> i64 {
    let board: Pegboard = board(process(&fake));
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.echo", json!({"nonce": "n"})).await.text(), "n");
    let before = resident("VmRSS:");
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(reply.outcome.kind(), expected, "{}", reply.text());
    let grown = (resident("VmHWM:") - before) / 1024;
    board.shutdown().await;
    grown
}

/// Noise on stdout and stderr, 256 MiB each.
#[tokio::test]
async fn floods_do_not_fill_the_memory() {
    if !in_own_process("stdio::memory::floods_do_not_fill_the_memory", &[]) {
        return;
    }
    const FLOOD: u64 = 256 << 20;
    for fault in [
        Fault::NoiseBeforeAnswer { lines: FLOOD / 32 },
        Fault::FloodsStderr { bytes: FLOOD },
    ] {
        let dir = TestDir::new();
        let described = format!("{fault:?}");
        let grown = growth(dir.fake().fault_on(When::tool("hello"), fault), Kind::Ok).await;
        assert!(grown < 32, "{described}: {grown} MiB");
        dir.assert_no_process_left().await;
    }
}

/// An over-long line costs the message limit and a little more.
#[tokio::test]
async fn over_long_lines_cost_no_more_than_one_message() {
    if !in_own_process("stdio::memory::over_long_lines_cost_no_more_than_one_message", &[]) {
        return;
    }
    let oversized = Fault::Oversized {
        bytes: 48 << 20,
        with_id: true,
        then_valid: false,
    };
    for (fault, kind) in [(oversized, Kind::LimitExceeded), (Fault::EndlessLine, Kind::Transport)] {
        let dir = TestDir::new();
        let described = format!("{fault:?}");
        let grown = growth(dir.fake().fault_on(When::tool("hello"), fault), kind).await;
        assert!(grown < 32, "{described}: {grown} MiB");
        dir.assert_no_process_left().await;
    }
}

/// A start without a free descriptor fails with a reason, and a later one works.
#[tokio::test]
async fn a_start_without_free_files_fails_and_works_later() {
    if !in_own_process("stdio::memory::a_start_without_free_files_fails_and_works_later", &[]) {
        return;
    }
    let dir = TestDir::new();
    let others = board(process(&dir.fake()));
    assert_eq!(call(&others.toolset(), "fx.hello", json!({})).await.text(), "hi");
    let starved = TestDir::new();
    let mut config = process(&starved.fake());
    config.start = pegboard::config::Start::Lazy;
    let board = board(config);
    let tools = board.toolset();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let low = rustix::process::Rlimit {
        current: Some(64),
        ..limit
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, low).unwrap();
    let mut held = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["could not be started", "Too many open files"]);
    assert_contains(reply.outcome.hint().unwrap(), &["ulimit -n"]);
    assert_eq!(call(&others.toolset(), "fx.hello", json!({})).await.text(), "hi");
    drop(held);
    // The start is retried in the background.
    ready(&board).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    others.shutdown().await;
    starved.assert_no_process_left().await;
    dir.assert_no_process_left().await;
}
