//! Seed 002, antwort's executor: its open question about the health of remote servers.

use pegboard::{BoardStatus, Kind, Pegboard, State};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::{support::*, words::*};

/// Waits until the board looks like this.
async fn becomes(board: &Pegboard, looks: impl Fn(&BoardStatus) -> bool) -> BoardStatus {
    let waiting = async {
        loop {
            let status = board.status();
            if looks(&status) {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("in time")
}

/// A remote server that is gone is down after the first call that did not reach it, and the first call after its return finds it.
#[tokio::test]
async fn seed_002_a_remote_server_that_is_gone_is_down_after_a_failed_call() {
    let http = good().serve_http().await.unwrap();
    let loaded = load(&format!("preset = 'antwort'\n[servers.fx]\nurl = '{}'", http.url()));
    assert_eq!(loaded.problems, []);
    let board = Pegboard::open(loaded.config);
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert!(board.status().healthy);
    http.stop().await;
    let reply = call(&tools, "fx.hello", json!({})).await;
    ended_as(&reply, Kind::Unavailable, false);
    assert_eq!(reply.attempts, 1, "nothing is repeated");
    let status = becomes(&board, |status| status.servers[0].state == State::Down).await;
    assert!(!status.healthy && status.warnings.len() == 1);
    says(
        &status.servers[0].last_error.clone().unwrap().message,
        &["no connection to"],
    );
    http.restart().await.unwrap();
    // A failed start is shown for a second.
    tokio::time::sleep(secs(1)).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    let status = board.status();
    assert!(status.healthy && status.warnings.is_empty());
    board.shutdown().await;
}

/// A server that hangs is found by a probe, is down for as long as it cannot be had, and is found again by a later one.
#[tokio::test(start_paused = true)]
async fn seed_002_a_server_that_hangs_is_found_by_probes() {
    let stage = Stage::new("antwort", "", &good()).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
    let hung = FakeServer::new("fx").fault_on(When::always(), Fault::NeverAnswers);
    stage.handle.change(|script| *script = hung.script().clone());
    tokio::time::sleep(secs(80)).await;
    let status = stage.board.status();
    assert_eq!((status.servers[0].state, status.healthy), (State::Down, false));
    assert_eq!(status.warnings.len(), 1);
    tokio::time::sleep(secs(600)).await;
    assert_eq!(stage.board.status().servers[0].state, State::Down);
    let fresh = good().tool(Tool::new("more"));
    stage.handle.change(|script| *script = fresh.script().clone());
    tokio::time::sleep(secs(95)).await;
    let status = stage.board.status();
    assert_eq!((status.servers[0].state, status.healthy), (State::Ready, true));
    assert_eq!(status.servers[0].tools, 2);
}
