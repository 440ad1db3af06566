//! Calls of a tool that must not run twice, while its process is killed again and again.

use std::time::Duration;

use pegboard::{Outcome, Pegboard, State};

use crate::{soak::fixtures::*, support::*};

/// Whenever the process dies, each call ends once, and its outcome is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_crossed_or_run_twice_while_its_server_is_killed() {
    let _alone = alone().await;
    let mut rng = Rng::new();
    let run = Run::new();
    let board = restarting_board(process(&run.fake()));
    board.settle(PATIENCE).await;
    let total = length(300);
    let mut killing = tokio::spawn(kill_repeatedly(board.clone(), rng.split()));
    let calling = run.call(&board, total, &mut rng);
    tokio::select! {
        () = calling => {}
        ended = &mut killing => panic!("the killer ended: {ended:?}"),
    }
    killing.abort();
    let _ = killing.await;
    board.shutdown().await;
    let summary = run.check();
    assert_eq!(summary.invoked, total);
    assert!(
        summary.ok > 0 && summary.unknown > 0 && summary.errors > 0,
        "{summary:?}"
    );
    assert!(
        summary.executed > summary.ok,
        "some calls ran without an answer: {summary:?}"
    );
    run.assert_no_process_left().await;
}

async fn kill_repeatedly(board: Pegboard, mut rng: Rng) {
    loop {
        let server = board.status().servers.remove(0);
        match (server.state, server.pid) {
            (State::Ready, Some(pid)) => {
                tokio::time::sleep(rng.up_to_ms(20)).await;
                pegboard_testkit::kill(pid);
                while board.status().servers[0].pid == Some(pid) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            // Kills this frequent rightly count as a crash loop.
            (State::Down | State::CrashLooping, _) => {
                tokio::time::sleep(rng.up_to_ms(10)).await;
                revive(&board).await;
            }
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// An operator who reconnects again and again gets a new connection each time. That is not a crash loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_reconnected_often_is_not_taken_for_one_that_crashes() {
    let _alone = alone().await;
    let run = Run::new();
    let board = board(process(&run.fake()));
    board.settle(PATIENCE).await;
    for round in 1..=8 {
        let old = board.status().servers[0].pid;
        board.reconnect(&name("fx")).await;
        let replies = run.together(&board, std::iter::once(format!("r{round}"))).await;
        assert!(
            matches!(replies[0].outcome, Outcome::Done(_)),
            "{round}: {}",
            replies[0].text()
        );
        let status = board.status().servers.remove(0);
        assert!(status.state == State::Ready && status.pid != old, "{round}: {status:?}");
        assert_eq!(status.restarts, round);
    }
    board.shutdown().await;
    run.check();
    run.assert_no_process_left().await;
}
