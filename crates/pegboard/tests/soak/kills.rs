//! Calls of a tool that must not run twice, while its process is killed again and again.

use std::time::Duration;

use pegboard::{Pegboard, State};

use crate::{support::*, words::*};

/// EXE-5, HUB-8, HUB-10: whatever the moment of death, each call ends once, and its reply is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_crossed_or_run_twice_while_its_server_is_killed() {
    let _alone = alone().await;
    let mut chance = Chance::new();
    let run = Run::new();
    let board = quick_board(process(&run.fake()));
    board.settle(PATIENCE).await;
    let total = length(300);
    let mut killing = tokio::spawn(kill_again_and_again(board.clone(), chance.split()));
    let calling = run.call(&board, total, &mut chance);
    tokio::select! {
        () = calling => {}
        ended = &mut killing => panic!("the killer ended: {ended:?}"),
    }
    killing.abort();
    let _ = killing.await;
    board.shutdown().await;
    let summary = run.check();
    assert_eq!(summary.invoked, total);
    assert!(summary.ok > 0 && summary.unknown > 0 && summary.errors > 0, "{summary:?}");
    assert!(
        summary.executed > summary.ok,
        "some calls ran without an answer: {summary:?}"
    );
    run.nobody_is_left().await;
}

async fn kill_again_and_again(board: Pegboard, mut chance: Chance) {
    loop {
        let server = board.status().servers.remove(0);
        match (server.state, server.pid) {
            (State::Ready, Some(pid)) => {
                tokio::time::sleep(chance.up_to_ms(20)).await;
                pegboard_testkit::kill(pid);
                while board.status().servers[0].pid == Some(pid) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            // Somebody who kills this often is rightly taken for a crash loop.
            (State::Down | State::CrashLooping, _) => {
                tokio::time::sleep(chance.up_to_ms(10)).await;
                revive(&board).await;
            }
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}
