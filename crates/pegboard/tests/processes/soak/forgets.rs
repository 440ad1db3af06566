//! Calls of a tool that must not run twice, over HTTP, while its server forgets its sessions, restarts and is unreachable.

use std::sync::Arc;

use pegboard::{Outcome, Pegboard, ServerConfig, State, config::Transport};
use pegboard_testkit::{Era, NetHandle};

use crate::{soak::fixtures::*, support::*};

fn http(fake: &NetHandle) -> ServerConfig {
    ServerConfig::new(Transport::http(endpoint(&fake.url())))
}

/// Sessions are forgotten, connections cut and ports closed at random moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_crossed_or_run_twice_while_its_sessions_are_forgotten() {
    let _alone = alone().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut rng = Rng::new();
        let run = Run::new();
        let fake = Arc::new(run.fake().era(era).serve_http().await.unwrap());
        // A request that is handed to a pooled connection just as that closes can be stuck in the channel between the two, never written
        // and never failed (one in some ten thousand here). Only this timeout ends it.
        let board = restarting_board(with_limits(http(&fake), |limits| limits.call_timeout = secs(5)));
        board.settle(PATIENCE).await;
        let total = length(300);
        let mut disturbing = tokio::spawn(disturb_repeatedly(fake.clone(), board.clone(), rng.split()));
        let calling = run.call(&board, total, &mut rng);
        tokio::select! {
            () = calling => {}
            ended = &mut disturbing => panic!("the disturber ended: {ended:?}"),
        }
        disturbing.abort();
        let _ = disturbing.await;
        fake.stop().await;
        // The first calls may still hit connections that are being cut.
        for round in 0..2 {
            let nonces = (0..8).map(|number| format!("away-{round}-{number}"));
            let replies = run.together(&board, nonces).await;
            let refused = replies.iter().all(|reply| matches!(reply.outcome, Outcome::Refused(_)));
            assert!(round == 0 || refused, "{era:?}: {replies:?}");
        }
        board.shutdown().await;
        let summary = run.check();
        assert_eq!(summary.invoked, total + 16);
        assert!(
            summary.ok > 0 && summary.unknown > 0 && summary.errors > 0,
            "{era:?}: {summary:?}"
        );
    }
}

async fn disturb_repeatedly(fake: Arc<NetHandle>, board: Pegboard, mut rng: Rng) {
    loop {
        tokio::time::sleep(rng.up_to_ms(60)).await;
        match rng.below(4) {
            0 | 1 => fake.forget_sessions(),
            2 => fake.restart().await.expect("the port is still ours"),
            _ => {
                fake.stop().await;
                tokio::time::sleep(rng.up_to_ms(40)).await;
                fake.restart().await.expect("the port is still ours");
            }
        }
        if board.status().servers[0].state == State::CrashLooping {
            revive(&board).await;
        }
    }
}

/// Many calls that find their session gone share one new session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_calls_over_a_forgotten_session_open_one_new_session() {
    let _alone = alone().await;
    let run = Run::new();
    let fake = run.fake().era(Era::Legacy).serve_http().await.unwrap();
    let board = restarting_board(http(&fake));
    board.settle(PATIENCE).await;
    for round in 1..=2 {
        fake.forget_sessions();
        let replies = run
            .together(&board, (0..10).map(|number| format!("r{round}-{number}")))
            .await;
        for reply in &replies {
            assert!(matches!(reply.outcome, Outcome::Done(_)), "{round}: {}", reply.text());
        }
        assert_eq!(fake.count("initialize"), 1 + round);
    }
    let summary = run.check();
    assert_eq!((summary.ok, summary.executed), (20, 20));
    board.shutdown().await;
}

/// The same with a restart, whose cut connections may lose calls. Those are reported as lost, and none is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_calls_over_a_restart_open_one_new_session() {
    let _alone = alone().await;
    let run = Run::new();
    let fake = run.fake().era(Era::Legacy).serve_http().await.unwrap();
    let board = restarting_board(http(&fake));
    board.settle(PATIENCE).await;
    fake.restart().await.unwrap();
    run.together(&board, (0..10).map(|number| format!("during-{number}")))
        .await;
    let after = run
        .together(&board, (0..10).map(|number| format!("after-{number}")))
        .await;
    for reply in &after {
        assert!(matches!(reply.outcome, Outcome::Done(_)), "{}", reply.text());
    }
    assert_eq!(fake.count("initialize"), 2);
    run.check();
    board.shutdown().await;
    tokio::time::timeout(PATIENCE, fake.stop()).await.unwrap();
}
