//! Faulty calls that need a real process: size, speed, pipes.

use pegboard::{Kind, ToolCall};
use pegboard_testkit::{Era, Fault, When};
use serde_json::json;
use tokio::time::Instant;

use crate::{stdio::fixtures::TestDir, support::*};

/// The first call gets the fault and fails within its bound, the next one works on the same process, and no process is left.
async fn check(fault: Fault, kind: Kind, words: &[&str]) {
    let dir = TestDir::new();
    let described = format!("{fault:?}");
    let board = board(process(&dir.fake().fault_on(When::tool("hello").first(1), fault)));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(reply.outcome.kind(), kind, "{described}: {}", reply.text());
    assert!(reply.outcome.may_have_executed(), "{described}");
    assert_contains(&reply.text(), words);
    assert_eq!(reply.outcome.hint().is_some(), kind != Kind::Ok, "{described}");
    assert!(started.elapsed() < PATIENCE, "{described}: {:?}", started.elapsed());
    assert_eq!(
        call(&tools, "fx.hello", json!({})).await.text(),
        "hi",
        "after {described}"
    );
    assert_eq!(dir.starts().len(), 1, "{described}");
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// An oversized response fails its call at once, and the stream goes on.
#[tokio::test]
async fn an_answer_of_20_mib_ends_only_its_call() {
    let oversized = |with_id, then_valid| Fault::Oversized {
        bytes: 20 << 20,
        with_id,
        then_valid,
    };
    check(oversized(true, false), Kind::LimitExceeded, &["larger than"]).await;
    check(oversized(false, true), Kind::Ok, &["hi"]).await;
}

/// Bytes and JSON that break parsers.
#[tokio::test]
async fn broken_answers_end_only_their_call() {
    check(Fault::InvalidUtf8, Kind::Internal, &["cannot be used"]).await;
    check(Fault::NulByte, Kind::Internal, &["cannot be used"]).await;
    check(Fault::Nested { depth: 200_000 }, Kind::Internal, &["cannot be used"]).await;
    check(Fault::DuplicateKeys, Kind::Internal, &["duplicate field"]).await;
    check(Fault::AnswersTwice, Kind::Ok, &["hi"]).await;
    check(Fault::Bom, Kind::Ok, &["hi"]).await;
    check(Fault::Crlf, Kind::Ok, &["hi"]).await;
}

/// Floods of notifications, noise and stderr do not affect the response.
#[tokio::test]
async fn floods_beside_an_answer_do_not_touch_it() {
    check(Fault::ProgressFlood { count: 50_000 }, Kind::Ok, &["hi"]).await;
    check(Fault::NoiseBeforeAnswer { lines: 200_000 }, Kind::Ok, &["hi"]).await;
    check(Fault::FloodsStderr { bytes: 8 << 20 }, Kind::Ok, &["hi"]).await;
}

/// Requests for undeclared capabilities are rejected, on a process as in memory.
#[tokio::test]
async fn undeclared_requests_are_refused() {
    let dir = TestDir::new();
    let fault = Fault::ServerRequests {
        method: "sampling/createMessage".into(),
        count: 20,
    };
    let board = board(process(&dir.fake().fault(fault)));
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    dir.wait_for("$response", 20).await;
    let answers = dir.log().requests;
    let mut refusals = answers.iter().filter(|message| message.method == "$response");
    assert!(refusals.all(|answer| answer.params["error"]["code"] == -32601));
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// Invalid responses that only the modern era has.
#[tokio::test]
async fn the_newest_eras_answers_are_bounded() {
    for (fault, kind) in [
        (Fault::UnknownResultType, Kind::Internal),
        (Fault::InputForEver, Kind::Internal),
        (Fault::HugeRequestState { bytes: 10 << 20 }, Kind::LimitExceeded),
    ] {
        let dir = TestDir::new();
        let fake = dir
            .fake()
            .era(Era::Modern)
            .fault_on(When::tool("hello").first(1), fault);
        let board = board(process(&fake));
        let tools = board.toolset();
        assert_outcome(&call(&tools, "fx.hello", json!({})).await, kind, true);
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        board.shutdown().await;
        dir.assert_no_process_left().await;
    }
}

/// An endless line ends the connection and the process, and the next call has a new one.
#[tokio::test]
async fn an_endless_line_ends_the_process() {
    let dir = TestDir::new();
    let fake = dir.fake().fault_on(When::tool("hello").first(1), Fault::EndlessLine);
    let board = board(process(&fake.clone().then_after(1, dir.fake())));
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Transport, true);
    assert_contains(&reply.text(), &["a line has no end"]);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(dir.starts().len(), 2);
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// A timeout cancels the call on the server, which stays up, and other calls go on.
#[tokio::test]
async fn a_timeout_cancels_the_call_and_spares_the_others() {
    let dir = TestDir::new();
    let board = board(process(
        &dir.fake().fault_on(When::tool("hello").first(1), Fault::NeverAnswers),
    ));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let other = call(&tools, "fx.echo", json!({"nonce": "n", "delay_ms": 1500}));
    let late = tools.call(ToolCall::new("fx.hello").timeout(std::time::Duration::from_millis(300)));
    let (other, late) = tokio::join!(other, late);
    assert_eq!(other.text(), "n");
    assert_outcome(&late, Kind::Timeout, true);
    assert_contains(&late.text(), &["no answer within 3"]);
    dir.wait_for("notifications/cancelled", 1).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(dir.starts().len(), 1);
    board.shutdown().await;
    dir.assert_no_process_left().await;
}
