//! Servers that die, stop reading or fall silent with calls in flight: each call ends exactly once, soon, with the right outcome.

use std::time::Duration;

use pegboard::{Arguments, Kind, Outcome, ToolCall};
use pegboard_testkit::{ErrorClass, Fault, History, Tool, When, kill};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{stdio::fixtures::TestDir, support::*};

/// Records the outcome of a call in the history.
fn note(history: &History, nonce: &str, outcome: &Outcome) {
    match outcome {
        Outcome::Done(answer) => history.ok(nonce, answer.text()),
        Outcome::Refused(_) => history.error(nonce, ErrorClass::NotSent),
        Outcome::Lost(failure) if failure.may_have_executed => history.unknown(nonce),
        _ => history.error(nonce, ErrorClass::Other),
    }
}

/// The call fails with the exit code and the end of stderr, and the next call has a new process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_in_the_call_is_told_at_once_and_the_next_call_works() {
    for round in 0..5 {
        let dir = TestDir::new();
        let dies = dir
            .fake()
            .ledger(dir.file("ledger"))
            .fault_on(When::tool("echo").first(1), Fault::DiesAfterExecuting { code: 9 });
        let board = board(process(&dies.then_after(1, dir.fake().ledger(dir.file("ledger")))));
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let history = History::new();
        history.invoke("a");
        let lost = call(&tools, "fx.echo", json!({"nonce": "a"})).await;
        // Immediately, on the same thread, as an agent would.
        history.invoke("b");
        let next = call(&tools, "fx.echo", json!({"nonce": "b"})).await;
        assert_outcome(&lost, Kind::Transport, true);
        assert_contains(&lost.text(), &["exit code 9", "It may have been carried out"]);
        assert!(lost.outcome.hint().is_some());
        assert_eq!(next.text(), "b", "in round {round}");
        note(&history, "a", &lost.outcome);
        note(&history, "b", &next.outcome);
        let summary = history.check(dir.file("ledger")).unwrap();
        assert_eq!((summary.unknown, summary.ok), (1, 1));
        assert_eq!(dir.starts().len(), 2);
        board.shutdown().await;
        dir.assert_no_process_left().await;
    }
}

/// A kill from outside, during a call that takes longer than the test waits.
#[tokio::test]
async fn a_kill_from_outside_is_seen_during_the_call() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake()));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let waiting = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "fx.echo", json!({"nonce": "n", "delay_ms": 60_000})).await }
    });
    dir.wait_for("tools/call", 1).await;
    kill(dir.starts()[0]);
    let reply = tokio::time::timeout(PATIENCE, waiting).await.expect("at once").unwrap();
    assert_outcome(&reply, Kind::Transport, true);
    assert_contains(&reply.text(), &["killed by signal 9"]);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// Half a response, then the process dies.
#[tokio::test]
async fn an_answer_cut_off_by_death_is_a_lost_call() {
    for fault in [Fault::DiesWhileAnswering { code: 4 }, Fault::CutThenEof] {
        let dir = TestDir::new();
        let fake = dir.fake().fault_on(When::tool("hello").first(1), fault);
        let board = board(process(&fake.then_after(1, dir.fake())));
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let started = Instant::now();
        assert_outcome(&call(&tools, "fx.hello", json!({})).await, Kind::Transport, true);
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        board.shutdown().await;
        dir.assert_no_process_left().await;
    }
}

/// A thousand calls in flight, one death, a thousand outcomes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_in_flight_end_once_each_when_the_server_dies() {
    const CALLS: usize = 1_000;
    let dir = TestDir::new();
    let ledger = dir.file("ledger");
    let fake = dir.fake().ledger(&ledger);
    let board = board(with_limits(process(&fake), |limits| limits.max_in_flight = CALLS));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let history = std::sync::Arc::new(History::new());
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let (tools, history) = (tools.clone(), history.clone());
        let nonce = format!("n{number}");
        history.invoke(nonce.clone());
        calls.spawn(async move {
            let reply = call(&tools, "fx.echo", json!({"nonce": nonce, "delay_ms": 60_000})).await;
            note(&history, &nonce, &reply.outcome);
            reply.outcome.kind()
        });
    }
    dir.wait_for("tools/call", CALLS).await;
    let killed = Instant::now();
    kill(dir.starts()[0]);
    let kinds = calls.join_all().await;
    assert!(killed.elapsed() < PATIENCE, "{:?}", killed.elapsed());
    assert!(kinds.iter().all(|kind| *kind == Kind::Transport));
    let summary = history.check(&ledger).unwrap();
    assert_eq!(summary.unknown, CALLS as u64);
    assert_eq!(board.status().servers[0].in_flight, 0);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// A server that closes its stdout and keeps running is not waited for.
#[tokio::test]
async fn a_server_that_closes_its_output_is_ended() {
    let dir = TestDir::new();
    let fake = dir.fake().fault_on(When::tool("hello").first(1), Fault::ClosesOutput);
    let board = board(process(&fake.then_after(1, dir.fake())));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Transport, true);
    assert_contains(&reply.text(), &["closed its output"]);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    gone(dir.starts()[0], PATIENCE).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// A server that stops reading: the call times out, a stalled write ends the session, and closing is bounded.
#[tokio::test]
async fn a_server_that_stops_reading_holds_nobody_up() {
    let dir = TestDir::new();
    let fake = dir
        .fake()
        .tool(Tool::new("deaf"))
        .fault_on(When::tool("deaf"), Fault::StopsReading);
    let mut config = with_limits(process(&fake), |limits| {
        limits.write_timeout = secs(2);
        limits.stop_timeout = Duration::from_millis(500);
    });
    // The first timeout leads to a probe, which must not end the session before the write does.
    config.policy.health.timeout = secs(120);
    let board = board(config);
    let tools = board.toolset();
    // The short timeout below must not include the start.
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    let deaf = tools.call(ToolCall::new("fx.deaf").timeout(secs(2))).await;
    assert_outcome(&deaf, Kind::Timeout, true);
    // More than a pipe holds. The fake has read one line ahead, so only the second one stalls.
    let large = || {
        let arguments = Arguments::try_from(json!({ "text": "x".repeat(1 << 20) })).unwrap();
        ToolCall::new("fx.hello").arguments(arguments)
    };
    let ahead = tools.call(large().timeout(secs(2))).await;
    assert_outcome(&ahead, Kind::Timeout, true);
    let started = Instant::now();
    let large = tools.call(large());
    // Queued behind it, and never written.
    let behind = tools.call(ToolCall::new("fx.hello").timeout(Duration::from_millis(500)));
    let (large, behind) = tokio::join!(large, behind);
    assert_outcome(&behind, Kind::Timeout, false);
    assert_outcome(&large, Kind::Transport, false);
    assert_contains(&large.text(), &["did not read its input for 2 s"]);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    let closing = Instant::now();
    board.shutdown().await;
    assert!(closing.elapsed() < PATIENCE, "{:?}", closing.elapsed());
    dir.assert_no_process_left().await;
}

/// The same if no write has stalled yet: closing does not wait for the server to read.
#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_stopped_reading() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake().fault_on(When::tool("hello"), Fault::StopsReading)));
    let tools = board.toolset();
    let waiting = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "fx.hello", json!({})).await }
    });
    dir.wait_for("tools/call", 1).await;
    let closing = Instant::now();
    board.shutdown().await;
    assert!(closing.elapsed() < PATIENCE, "{:?}", closing.elapsed());
    assert_outcome(&waiting.await.unwrap(), Kind::Transport, true);
    dir.assert_no_process_left().await;
}
