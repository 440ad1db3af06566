//! Faults at shutdown, and faults of the embedding program.

use std::time::Duration;

use pegboard::{Config, Env, Format};
use pegboard_testkit::{Child, Fault};
use serde_json::json;
use tokio::time::Instant;

use super::{cannot_run, case, play};
use crate::{
    matrix::{
        case::{Case, How},
        leftovers,
        stage::Stage,
    },
    support::*,
};

fn stop(id: &'static str, fault: &'static str, must: &'static str, how: How, end: &'static str) -> Case {
    case(id, fault, must, how, end).on("S").within(5_000)
}

/// The end of a server that left nothing behind.
const STOPPED: &str = "ok, ran 1; 0 processes";

/// A call of a server with these faults, then a shutdown, whose duration counts, and the number of processes that are left.
async fn stopped(stage: &mut Stage, faults: &[Fault]) -> String {
    let fake = faults
        .iter()
        .fold(stage.fake(), |fake, fault| fake.fault(fault.clone()));
    stage.open(&fake).await;
    let outcome = stage.call().await;
    let board = stage.take_board().await;
    let began = Instant::now();
    board.shutdown().await;
    stage.took = began.elapsed();
    // They have been killed, and the kernel may not have removed them yet.
    stage
        .until(secs(1), |stage| {
            leftovers::processes_with(stage.folder.path()).is_empty()
        })
        .await;
    format!(
        "{outcome}; {} processes",
        leftovers::processes_with(stage.folder.path()).len()
    )
}

fn children(stage: &Stage, how: Child) -> Fault {
    let (count, pid_file) = (3, stage.path("pids"));
    Fault::SpawnsChildren { how, count, pid_file }
}

const NO_GATEWAY: &str = "the gateway has tests of its own";

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "F084",
            "the new config is invalid",
            "the error is reported, and the old config stays",
            play!(|stage| {
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                let loaded = Config::from_text("servers = nonsense", Format::Toml, &Env::new(|_| None));
                let errors = loaded.errors().count();
                format!("errors: {}; {}", errors > 0, stage.call().await)
            }),
            "errors: true; ok, ran 1",
        )
        .within(2_000),
        case(
            "F085",
            "the board is shut down with calls in flight",
            "each call ends exactly once, and no process is left",
            play!(|stage| {
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                let board = stage.board().clone();
                let shutdown = async {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    board.shutdown().await;
                };
                let (replies, ()) = tokio::join!(stage.calls(10, json!({"delay_ms": 800})), shutdown);
                stage.take_board().await;
                format!("{} ended", replies.len())
            }),
            "10 ended",
        )
        .within(5_000),
        cannot_run(
            "F086",
            "the program is killed with SIGKILL",
            "no server is left",
            "it would end this test; `cargo test -p pegboard --test processes process_tree::killed` plays it",
        ),
        stop(
            "F087",
            "the server ignores EOF and SIGTERM",
            "SIGKILL follows after both waits",
            play!(|stage| stopped(stage, &[Fault::IgnoresEof, Fault::IgnoresTerm]).await),
            STOPPED,
        ),
        stop(
            "F088",
            "the server has grandchildren in the same process group",
            "none is left",
            play!(|stage| {
                let fault = children(stage, Child::SameGroup);
                stopped(stage, &[fault]).await
            }),
            STOPPED,
        ),
        stop(
            "F088b",
            "the server has grandchildren in their own sessions",
            "none is left",
            play!(|stage| {
                let fault = children(stage, Child::Setsid);
                stopped(stage, &[fault]).await
            }),
            STOPPED,
        ),
        stop(
            "F088c",
            "the server has grandchildren that were forked twice",
            "none is left",
            play!(|stage| {
                let fault = children(stage, Child::DoubleFork);
                stopped(stage, &[fault]).await
            }),
            STOPPED,
        ),
        stop(
            "F089",
            "a grandchild keeps stdout open after the server has exited",
            "the reader does not wait for EOF",
            play!(|stage| {
                let (pid_file, keeps_stdout) = (stage.path("pids"), true);
                let fault = Fault::ForksAndExits { pid_file, keeps_stdout };
                super::at_start(stage, pegboard_testkit::When::default(), fault, &[]).await
            }),
            "refused unavailable, ran 0",
        ),
        stop(
            "F090",
            "the board is dropped with its runtime, without a shutdown",
            "no process is left, and nothing panics",
            play!(|stage| {
                let config = process(&stage.fake());
                let thread = std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .unwrap();
                    let board = runtime.block_on(async {
                        let board = board(config);
                        board.toolset().list(PATIENCE).await;
                        board
                    });
                    drop(runtime);
                    drop(board);
                });
                let joined = thread.join().is_ok();
                let began = Instant::now();
                let gone = stage
                    .until(secs(5), |stage| {
                        leftovers::processes_with(stage.folder.path()).is_empty()
                    })
                    .await;
                stage.took = began.elapsed();
                format!("no process left: {}", joined && gone)
            }),
            "no process left: true",
        ),
        cannot_run(
            "F091",
            "a client of the gateway disconnects during a call",
            "the call is cancelled",
            NO_GATEWAY,
        ),
        cannot_run(
            "F092",
            "two clients of the gateway use the same ids",
            "no answer reaches the other client",
            NO_GATEWAY,
        ),
        cannot_run(
            "F093",
            "a client of the gateway stops reading",
            "its buffer is bounded, then it is disconnected",
            NO_GATEWAY,
        ),
        cannot_run(
            "F094",
            "a client of the gateway sends too much, or too slowly",
            "413, 431, 408",
            NO_GATEWAY,
        ),
        cannot_run(
            "F095",
            "a request to the gateway has a bad Host or Origin",
            "403",
            NO_GATEWAY,
        ),
        cannot_run(
            "F097",
            "a request to the gateway has no token, or a bad one",
            "401",
            NO_GATEWAY,
        ),
        cannot_run(
            "F098",
            "the gateway gets more requests than it accepts",
            "busy within 10 ms",
            NO_GATEWAY,
        ),
        cannot_run(
            "F101",
            "the token store is locked, corrupt or read-only",
            "an error, and the old tokens stay",
            "the library keeps no tokens yet",
        ),
        case(
            "F103",
            "a masking pattern does not compile",
            "the config is rejected",
            play!(|stage| {
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                let text = "[servers.fx]\ncommand = \"x\"\n[servers.fx.masking]\ncustom = [{ pattern = \"(\" }]\n";
                let loaded = Config::from_text(text, Format::Toml, &Env::new(|_| None));
                let refused = loaded.errors().count() > 0;
                format!("refused: {refused}; {}", stage.call().await)
            }),
            "refused: true; ok, ran 1",
        )
        .on("M")
        .in_era("l")
        .within(1_000),
    ]
}
