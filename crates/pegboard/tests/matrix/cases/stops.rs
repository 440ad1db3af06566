//! Faults at the end, and those of the program around the board.

use std::time::Duration;

use pegboard::{Config, Env, Format};
use pegboard_testkit::{Child, Fault};
use serde_json::json;
use tokio::time::Instant;

use super::{BOTH, EVERY, cannot_run, play};
use crate::{
    case::{Case, How},
    left,
    stage::Stage,
    support::*,
};

fn stop(id: &'static str, fault: &'static str, must: &'static str, how: How) -> Case {
    Case {
        id,
        fault,
        must,
        wires: "S",
        eras: BOTH,
        bound: 5_000,
        how,
        ends: &[("", "", "ok, ran 1; 0 processes")],
    }
}

/// A call of a server with these faults, then a shutdown whose time counts, and what is left.
async fn stopped(stage: &mut Stage, faults: &[Fault]) -> String {
    let fake = faults
        .iter()
        .fold(stage.fake(), |fake, fault| fake.fault(fault.clone()));
    stage.open(&fake).await;
    let word = stage.call().await;
    let board = stage.part().await;
    let began = Instant::now();
    board.shutdown().await;
    stage.took = began.elapsed();
    // They have been killed, and the kernel may still be about to remove them.
    stage
        .until(secs(1), |stage| left::processes_with(stage.folder.path()).is_empty())
        .await;
    format!("{word}; {} processes", left::processes_with(stage.folder.path()).len())
}

fn children(stage: &Stage, how: Child) -> Fault {
    let (count, pid_file) = (3, stage.path("pids"));
    Fault::SpawnsChildren { how, count, pid_file }
}

const NO_GATEWAY: &str = "the gateway has no parts yet";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            id: "F084",
            fault: "the new config cannot be read",
            must: "the error is shown, and the old one stays",
            wires: EVERY,
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let fake = stage.fake();
                stage.open(&fake).await;
                stage.warm().await;
                let loaded = Config::from_text("servers = nonsense", Format::Toml, &Env::new(|_| None));
                let errors = loaded.errors().count();
                format!("errors: {}; {}", errors > 0, stage.call().await)
            }),
            ends: &[("", "", "errors: true; ok, ran 1")],
        },
        Case {
            id: "F085",
            fault: "the board is shut down with calls in flight",
            must: "each ends exactly once, and no process is left",
            wires: EVERY,
            eras: BOTH,
            bound: 5_000,
            how: play!(|stage| {
                let fake = stage.fake();
                stage.open(&fake).await;
                stage.warm().await;
                let board = stage.board().clone();
                let shutdown = async {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    board.shutdown().await;
                };
                let (replies, ()) = tokio::join!(stage.calls(10, json!({"delay_ms": 800})), shutdown);
                stage.part().await;
                format!("{} ended", replies.len())
            }),
            ends: &[("", "", "10 ended")],
        },
        cannot_run(
            "F086",
            "SIGKILL to the program",
            "no server is left",
            "it would end this test; `cargo test -p pegboard --test process_tree killed` plays it",
        ),
        stop(
            "F087",
            "the server ignores the end of its input and SIGTERM",
            "SIGKILL after both waits",
            play!(|stage| stopped(stage, &[Fault::IgnoresEof, Fault::IgnoresTerm]).await),
        ),
        stop(
            "F088",
            "grandchildren in the same group",
            "none is left",
            play!(|stage| {
                let fault = children(stage, Child::SameGroup);
                stopped(stage, &[fault]).await
            }),
        ),
        stop(
            "F088b",
            "grandchildren in sessions of their own",
            "none is left",
            play!(|stage| {
                let fault = children(stage, Child::Setsid);
                stopped(stage, &[fault]).await
            }),
        ),
        stop(
            "F088c",
            "grandchildren that were forked twice",
            "none is left",
            play!(|stage| {
                let fault = children(stage, Child::DoubleFork);
                stopped(stage, &[fault]).await
            }),
        ),
        Case {
            ends: &[("", "", "refused unavailable, ran 0")],
            ..stop(
                "F089",
                "a grandchild keeps stdout after the server has ended",
                "the reader does not wait for its end",
                play!(|stage| {
                    let (pid_file, keeps_stdout) = (stage.path("pids"), true);
                    let fault = Fault::ForksAndExits { pid_file, keeps_stdout };
                    super::at_start(stage, pegboard_testkit::When::default(), fault, &[]).await
                }),
            )
        },
        Case {
            ends: &[("", "", "no process left: true")],
            ..stop(
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
                        .until(secs(5), |stage| left::processes_with(stage.folder.path()).is_empty())
                        .await;
                    stage.took = began.elapsed();
                    format!("no process left: {}", joined && gone)
                }),
            )
        },
        cannot_run(
            "F091",
            "a client of the gateway leaves during a call",
            "the call is cancelled",
            NO_GATEWAY,
        ),
        cannot_run(
            "F092",
            "two clients of the gateway use the same ids",
            "answers never cross",
            NO_GATEWAY,
        ),
        cannot_run(
            "F093",
            "a client of the gateway stops reading",
            "a bound, then a disconnect",
            NO_GATEWAY,
        ),
        cannot_run(
            "F094",
            "a client of the gateway sends too much, or too slowly",
            "413, 431, 408",
            NO_GATEWAY,
        ),
        cannot_run("F095", "a bad Host or Origin at the gateway", "403", NO_GATEWAY),
        cannot_run("F097", "no token, or a bad one, at the gateway", "401", NO_GATEWAY),
        cannot_run(
            "F098",
            "more requests than the gateway takes on",
            "busy within 10 ms",
            NO_GATEWAY,
        ),
        cannot_run(
            "F101",
            "the store of tokens is locked, corrupt or read-only",
            "an error, and the old tokens stay",
            "the library keeps no tokens yet",
        ),
        Case {
            id: "F103",
            fault: "a pattern of the masker does not compile",
            must: "the config is refused",
            wires: "M",
            eras: "l",
            bound: 1_000,
            how: play!(|stage| {
                let fake = stage.fake();
                stage.open(&fake).await;
                stage.warm().await;
                let text = "[servers.fx]\ncommand = \"x\"\n[servers.fx.masking]\ncustom = [{ pattern = \"(\" }]\n";
                let loaded = Config::from_text(text, Format::Toml, &Env::new(|_| None));
                let refused = loaded.errors().count() > 0;
                format!("refused: {refused}; {}", stage.call().await)
            }),
            ends: &[("", "", "refused: true; ok, ran 1")],
        },
    ]
}
