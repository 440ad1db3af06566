//! Faults of stdio processes during a call.

use std::time::Duration;

use pegboard_testkit::Fault;
use serde_json::json;

use super::{AT_LIMIT, CUT, WELL, case, on_call, play};
use crate::matrix::case::Case;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "X20",
            "the process gets SIGSTOP during a call, then SIGCONT",
            "the timeout ends the call, and the same process serves the next one",
            play!(|stage| {
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                let pid = stage.status().pid.unwrap();
                signal(pid, "-STOP");
                let first = stage.call().await;
                signal(pid, "-CONT");
                let then = stage.next_call().await;
                let same = stage.status().pid == Some(pid);
                format!("{first}; {then}; the same process: {same}")
            }),
            // The request stays in the pipe, and the process reads it when it continues.
            "lost timeout, may have run, ran 0; then ok, ran 1; the same process: true",
        )
        .on("S")
        .within(AT_LIMIT),
        case(
            "X21",
            "the server writes 8 MiB to stderr before the answer",
            "the answer arrives",
            play!(|stage| {
                stage.allow_long_calls();
                on_call(stage, Fault::FloodsStderr { bytes: 8 << 20 }).await
            }),
            WELL,
        )
        .on("S")
        .within(AT_LIMIT),
        case(
            "X22",
            "20,000 lines that are not JSON precede the answer",
            "the answer arrives",
            play!(|stage| {
                stage.allow_long_calls();
                on_call(stage, Fault::NoiseBeforeAnswer { lines: 20_000 }).await
            }),
            WELL,
        )
        .on("SM")
        .within(AT_LIMIT),
        case(
            "X23",
            "the server closes its stdout and keeps running",
            "the call fails at once, and the process is killed",
            play!(|stage| on_call(stage, Fault::ClosesOutput).await),
            CUT,
        )
        .on("S"),
        case(
            "X24",
            "the board is shut down with a call in flight, and the server ignores EOF",
            "the call ends once, and no process is left",
            play!(|stage| {
                let fake = stage.fake().fault(Fault::IgnoresEof).fault(Fault::NeverAnswers);
                stage.open_listed(&fake).await;
                let board = stage.board().clone();
                let shutdown = async {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    board.shutdown().await;
                };
                let (replies, ()) = tokio::join!(stage.calls(1, json!({})), shutdown);
                stage.take_board().await;
                format!("may have run: {}", replies[0].outcome.may_have_executed())
            }),
            "may have run: true",
        )
        .on("S")
        .within(AT_LIMIT),
    ]
}

/// Sends a signal to a process.
fn signal(pid: u32, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}
