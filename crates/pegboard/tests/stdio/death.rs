//! Servers that die, stop reading or fall silent with calls in flight: each call ends exactly once, soon, with the right outcome.

use std::time::Duration;

use pegboard::{Arguments, Kind, Outcome, ToolCall};
use pegboard_testkit::{ErrorClass, Fault, History, Tool, When, kill};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{bench::Bench, support::*};

/// Records the outcome of a call in the history.
fn note(history: &History, nonce: &str, outcome: &Outcome) {
    match outcome {
        Outcome::Done(answer) => history.ok(nonce, answer.text()),
        Outcome::Refused(_) => history.error(nonce, ErrorClass::NotSent),
        Outcome::Lost(failure) if failure.may_have_executed => history.unknown(nonce),
        _ => history.error(nonce, ErrorClass::Other),
    }
}

/// The call fails within 100 ms with the exit code and the end of stderr, and the next call has a new process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_in_the_call_is_told_at_once_and_the_next_call_works() {
    for round in 0..5 {
        let bench = Bench::new();
        let dies = bench
            .fake()
            .ledger(bench.file("ledger"))
            .fault_on(When::tool("echo").first(1), Fault::DiesAfterExecuting { code: 9 });
        let board = board(process(&dies.then_after(1, bench.fake().ledger(bench.file("ledger")))));
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let history = History::new();
        history.invoke("a");
        let lost = call(&tools, "fx.echo", json!({"nonce": "a"})).await;
        // Immediately, on the same thread, as an agent would.
        history.invoke("b");
        let next = call(&tools, "fx.echo", json!({"nonce": "b"})).await;
        ended_as(&lost, Kind::Transport, true);
        says(&lost.text(), &["exit code 9", "It may have been carried out"]);
        assert!(lost.outcome.hint().is_some());
        assert_eq!(next.text(), "b", "in round {round}");
        note(&history, "a", &lost.outcome);
        note(&history, "b", &next.outcome);
        let summary = history.check(bench.file("ledger")).unwrap();
        assert_eq!((summary.unknown, summary.ok), (1, 1));
        assert_eq!(bench.starts().len(), 2);
        board.shutdown().await;
        bench.nobody_is_left().await;
    }
}

/// A kill from outside, during a call. The bound is 100 ms; five times that is allowed for a slow machine.
#[tokio::test]
async fn a_kill_from_outside_is_seen_within_100_ms() {
    let bench = Bench::new();
    let board = board(process(&bench.fake()));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let waiting = tokio::spawn({
        let tools = tools.clone();
        async move {
            (
                call(&tools, "fx.echo", json!({"nonce": "n", "delay_ms": 60_000})).await,
                Instant::now(),
            )
        }
    });
    bench.heard("tools/call", 1).await;
    let killed = Instant::now();
    kill(bench.starts()[0]);
    let (reply, answered) = waiting.await.unwrap();
    ended_as(&reply, Kind::Transport, true);
    says(&reply.text(), &["killed by signal 9"]);
    assert!(
        answered - killed < Duration::from_millis(500),
        "{:?}",
        answered - killed
    );
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    bench.nobody_is_left().await;
}

/// Half a response, then the process dies.
#[tokio::test]
async fn an_answer_cut_off_by_death_is_a_lost_call() {
    for fault in [Fault::DiesWhileAnswering { code: 4 }, Fault::CutThenEof] {
        let bench = Bench::new();
        let fake = bench.fake().fault_on(When::tool("hello").first(1), fault);
        let board = board(process(&fake.then_after(1, bench.fake())));
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let started = Instant::now();
        ended_as(&call(&tools, "fx.hello", json!({})).await, Kind::Transport, true);
        assert!(started.elapsed() < secs(5), "{:?}", started.elapsed());
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        board.shutdown().await;
        bench.nobody_is_left().await;
    }
}

/// A thousand calls in flight, one death, a thousand outcomes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_in_flight_end_once_each_when_the_server_dies() {
    const CALLS: usize = 1_000;
    let bench = Bench::new();
    let ledger = bench.file("ledger");
    let fake = bench.fake().ledger(&ledger);
    let board = board(with_limits(process(&fake), |limits| limits.in_flight = CALLS));
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
    bench.heard("tools/call", CALLS).await;
    let killed = Instant::now();
    kill(bench.starts()[0]);
    let kinds = calls.join_all().await;
    assert!(killed.elapsed() < secs(5), "{:?}", killed.elapsed());
    assert!(kinds.iter().all(|kind| *kind == Kind::Transport));
    let summary = history.check(&ledger).unwrap();
    assert_eq!(summary.unknown, CALLS as u64);
    assert_eq!(board.status().servers[0].in_flight, 0);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    bench.nobody_is_left().await;
}

/// A server that closes its stdout and keeps running is not waited for.
#[tokio::test]
async fn a_server_that_closes_its_output_is_ended() {
    let bench = Bench::new();
    let fake = bench.fake().fault_on(When::tool("hello").first(1), Fault::ClosesOutput);
    let board = board(process(&fake.then_after(1, bench.fake())));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let reply = call(&tools, "fx.hello", json!({})).await;
    ended_as(&reply, Kind::Transport, true);
    says(&reply.text(), &["closed its output"]);
    assert!(started.elapsed() < secs(5), "{:?}", started.elapsed());
    gone(bench.starts()[0], PATIENCE).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    bench.nobody_is_left().await;
}

/// A server that stops reading: the call times out, a stalled write ends the session, and closing is bounded.
#[tokio::test]
async fn a_server_that_stops_reading_holds_nobody_up() {
    let bench = Bench::new();
    let fake = bench
        .fake()
        .tool(Tool::new("deaf"))
        .fault_on(When::tool("deaf"), Fault::StopsReading);
    let config = with_limits(process(&fake), |limits| {
        limits.write = secs(2);
        limits.stop = Duration::from_millis(500);
    });
    let board = board(config);
    let tools = board.toolset();
    let deaf = tools
        .call(ToolCall::new("fx.deaf").timeout(Duration::from_millis(200)))
        .await;
    ended_as(&deaf, Kind::Timeout, true);
    // More than a pipe holds. The fake has read one line ahead, so only the second one stalls.
    let large = || {
        let arguments = Arguments::try_from(json!({ "text": "x".repeat(1 << 20) })).unwrap();
        ToolCall::new("fx.hello").arguments(arguments)
    };
    let ahead = tools.call(large().timeout(Duration::from_millis(500))).await;
    ended_as(&ahead, Kind::Timeout, true);
    let started = Instant::now();
    let large = tools.call(large());
    // Queued behind it, and never written.
    let behind = tools.call(ToolCall::new("fx.hello").timeout(Duration::from_millis(500)));
    let (large, behind) = tokio::join!(large, behind);
    ended_as(&behind, Kind::Timeout, false);
    ended_as(&large, Kind::Transport, false);
    says(&large.text(), &["did not read its input for 2 s"]);
    assert!(started.elapsed() < secs(10), "{:?}", started.elapsed());
    let closing = Instant::now();
    board.shutdown().await;
    assert!(closing.elapsed() < secs(5), "{:?}", closing.elapsed());
    bench.nobody_is_left().await;
}

/// The same if no write has stalled yet: closing does not wait for the server to read.
#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_stopped_reading() {
    let bench = Bench::new();
    let board = board(process(
        &bench.fake().fault_on(When::tool("hello"), Fault::StopsReading),
    ));
    let tools = board.toolset();
    let waiting = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "fx.hello", json!({})).await }
    });
    bench.heard("tools/call", 1).await;
    let closing = Instant::now();
    board.shutdown().await;
    assert!(closing.elapsed() < secs(8), "{:?}", closing.elapsed());
    ended_as(&waiting.await.unwrap(), Kind::Transport, true);
    bench.nobody_is_left().await;
}
