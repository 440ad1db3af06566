//! Malformed answers: each fails at most the call that it belongs to, never another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pegboard::Kind;
use pegboard_testkit::{Era, FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::{session::by_hand::answering, support::*};

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("echo").echoes_nonce())
}

/// The first call gets the fault; the next one succeeds.
async fn check(fake: FakeServer, fault: Fault, kind: Kind, may_have_executed: bool) -> String {
    let described = format!("{fault:?}");
    let (board, handle) = in_memory(&fake.fault_on(When::tool("hello").first(1), fault));
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({})).await;
    let ending = (reply.outcome.kind(), reply.outcome.may_have_executed());
    assert_eq!(ending, (kind, may_have_executed), "{described}: {}", reply.text());
    let next = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(next.text(), "hi", "after {described}");
    assert_eq!(handle.starts(), 1, "{described}");
    assert_eq!(board.status().servers[0].in_flight, 0, "{described}");
    board.shutdown().await;
    reply.text()
}

/// A response matches a request only if the ids are exactly equal.
#[tokio::test(start_paused = true)]
async fn an_answer_under_another_id_is_nobodys_and_the_call_times_out() {
    for fault in [
        Fault::WrongId,
        Fault::StringId,
        Fault::FloatId,
        Fault::MissingId,
        Fault::NullId,
        Fault::CaseVariantKeys,
    ] {
        let case_variant = fault == Fault::CaseVariantKeys;
        if case_variant {
            // The id is right, so the call fails at once: its response has no result.
            check(fake(), fault, Kind::Internal, true).await;
        } else {
            let text = check(fake(), fault, Kind::Timeout, true).await;
            assert_contains(&text, &["no sign of life for 60 s"]);
        }
    }
}

/// A handshake response under another id matches nothing, and the start fails at the connect timeout.
#[tokio::test(start_paused = true)]
async fn a_handshake_answered_under_another_id_fails_within_the_connect_limit() {
    for fault in [Fault::WrongId, Fault::StringId, Fault::FloatId, Fault::MissingId] {
        let (board, _handle) = in_memory(&fake().fault_on(When::method("initialize"), fault));
        let started = tokio::time::Instant::now();
        let listing = board.toolset().list(secs(60)).await;
        assert_contains(&listing.unavailable[0].error, &["no answer within 30 s"]);
        assert!(listing.unavailable[0].hint.is_some());
        assert!(started.elapsed() <= secs(31), "{:?}", started.elapsed());
        board.shutdown().await;
    }
}

/// Duplicate and unsolicited responses are dropped.
#[tokio::test(start_paused = true)]
async fn second_and_stray_answers_are_dropped() {
    check(fake(), Fault::AnswersTwice, Kind::Ok, true).await;
    check(fake(), Fault::StrayAnswers { count: 50 }, Kind::Ok, true).await;
}

/// A hundred unsolicited responses end the session; the next call opens a new one.
#[tokio::test(start_paused = true)]
async fn a_hundred_stray_answers_break_the_session() {
    let fake = fake().fault_on(When::tool("hello").first(1), Fault::StrayAnswers { count: 100 });
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Transport, true);
    assert_contains(&reply.text(), &["broke the protocol", "fit nothing"]);
    assert!(reply.outcome.hint().is_some());
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), 2);
}

/// The response to a call that has timed out is dropped.
#[tokio::test(start_paused = true)]
async fn a_late_answer_never_reaches_another_call() {
    let fake = fake().fault_on(When::tool("echo").first(1), Fault::LateAnswer { ms: 90_000 });
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let late = call(&tools, "fx.echo", json!({"nonce": "late"})).await;
    assert_outcome(&late, Kind::Timeout, true);
    // The late response arrives while this call is in flight.
    let next = call(&tools, "fx.echo", json!({"nonce": "next", "delay_ms": 50_000})).await;
    assert_eq!(next.text(), "next");
    assert_eq!(handle.starts(), 1);
}

/// Late and duplicate responses to our own requests never count as protocol violations.
#[tokio::test(start_paused = true)]
async fn late_and_second_answers_never_add_up_to_a_broken_session() {
    let fake = fake()
        .ignores_cancel()
        .fault_on(When::tool("hello"), Fault::AnswersTwice);
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    for _ in 0..150 {
        let call = call(&tools, "fx.echo", json!({"nonce": "late", "delay_ms": 2_000}));
        assert!(tokio::time::timeout(secs(1), call).await.is_err());
    }
    for _ in 0..150 {
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    }
    assert_eq!(handle.starts(), 1);
}

/// Half a response, then EOF.
#[tokio::test(start_paused = true)]
async fn an_answer_cut_off_by_the_end_of_the_stream_ends_every_call() {
    let fake = fake().fault_on(When::tool("hello").first(1), Fault::CutThenEof);
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let other = call(&tools, "fx.echo", json!({"nonce": "n", "delay_ms": 5_000}));
    let cut = async {
        tokio::time::sleep(secs(1)).await;
        call(&tools, "fx.hello", json!({})).await
    };
    let started = tokio::time::Instant::now();
    let (other, cut) = tokio::join!(other, cut);
    assert_outcome(&other, Kind::Transport, true);
    assert_outcome(&cut, Kind::Transport, true);
    assert!(started.elapsed() < secs(2), "{:?}", started.elapsed());
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
}

/// An oversized response fails its call at once, whether or not its id could be read, and the stream goes on.
#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_ends_only_its_call() {
    let oversized = |with_id, then_valid| Fault::Oversized {
        bytes: 20 << 20,
        with_id,
        then_valid,
    };
    let started = tokio::time::Instant::now();
    let text = check(fake(), oversized(true, false), Kind::LimitExceeded, true).await;
    assert_contains(&text, &["larger than 8388608 bytes"]);
    check(fake(), oversized(true, true), Kind::LimitExceeded, true).await;
    check(fake(), oversized(false, true), Kind::Ok, true).await;
    assert!(started.elapsed() < secs(1), "{:?}", started.elapsed());
}

/// An endless line ends the session before it fills the memory.
#[tokio::test(start_paused = true)]
async fn an_endless_line_ends_the_session_and_the_next_call_begins_a_new_one() {
    let fake = fake().fault_on(When::tool("hello").first(1), Fault::EndlessLine);
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Transport, true);
    assert_contains(&reply.text(), &["a line has no end"]);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), 2);
}

/// A byte order mark and CR LF are accepted; invalid bytes fail the call at once.
#[tokio::test(start_paused = true)]
async fn odd_bytes_are_let_through_or_cost_only_their_call() {
    let started = tokio::time::Instant::now();
    check(fake(), Fault::Bom, Kind::Ok, true).await;
    check(fake(), Fault::Crlf, Kind::Ok, true).await;
    check(fake(), Fault::InvalidUtf8, Kind::Internal, true).await;
    check(fake(), Fault::NulByte, Kind::Internal, true).await;
    assert!(started.elapsed() < secs(1), "{:?}", started.elapsed());
    // In JSON strings these are ordinary characters.
    let text = "a\u{2028}b\u{2029}c";
    let (board, _handle) = in_memory(&FakeServer::new("fx").tool(Tool::new("odd").answers_text(text)));
    assert_eq!(call(&board.toolset(), "fx.odd", json!({})).await.text(), text);
}

/// A very deeply nested response fails its call without overflowing the stack or blocking.
#[tokio::test(start_paused = true)]
async fn an_answer_nested_without_measure_costs_only_its_call() {
    check(fake(), Fault::Nested { depth: 200_000 }, Kind::Internal, true).await;
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(200_000), close.repeat(200_000));
    let lists = deep("[", "]");
    let objects = format!("{}1{}", r#"{"a":"#.repeat(200_000), "}".repeat(200_000));
    type Message = fn(u64, &str) -> String;
    let in_content: Message = |id, deep| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"x","_meta":{deep}}}]}}}}"#)
    };
    let in_structured: Message =
        |id, deep| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{deep}}}}}"#);
    let in_error: Message =
        |id, deep| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"x","data":{deep}}}}}"#);
    let in_id: Message = |_, deep| format!(r#"{{"jsonrpc":"2.0","id":{deep},"result":{{}}}}"#);
    let in_params: Message = |_, deep| format!(r#"{{"jsonrpc":"2.0","id":"x","method":"ping","params":{deep}}}"#);
    let in_notice: Message =
        |_, deep| format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{deep}}}"#);
    let alone: Message = |_, deep| deep.to_owned();
    let as_batch: Message = |id, deep| format!(r#"[{deep},{{"jsonrpc":"2.0","id":{id},"result":{{}}}}]"#);
    for message in [
        in_content,
        in_structured,
        in_error,
        in_id,
        in_params,
        in_notice,
        alone,
        as_batch,
    ] {
        for deep in [lists.clone(), objects.clone()] {
            first_and_next(move |id| message(id, &deep).into_bytes()).await;
        }
    }
}

/// Answers the first call with these bytes and a newline, and the next one properly.
async fn first_and_next(answer: impl Fn(u64) -> Vec<u8> + Clone + Send + Sync + 'static) -> pegboard::Reply {
    let first = Arc::new(AtomicBool::new(true));
    let board = answering(move |id| {
        let mut bytes = if first.swap(false, Ordering::Relaxed) {
            answer(id)
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"fine"}}]}}}}"#).into()
        };
        bytes.push(b'\n');
        bytes
    });
    let tools = board.toolset();
    let reply = call(&tools, "fx.t", json!({})).await;
    assert_eq!(call(&tools, "fx.t", json!({})).await.text(), "fine");
    board.shutdown().await;
    reply
}

/// Two results for one id are an error; the last one does not win.
#[tokio::test(start_paused = true)]
async fn a_key_that_comes_twice_costs_its_call() {
    let text = check(fake(), Fault::DuplicateKeys, Kind::Internal, true).await;
    assert_contains(&text, &["duplicate field"]);
    for answer in [
        r#"{"jsonrpc":"2.0","id":ID,"id":ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":"done"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"done"}}"#,
    ] {
        let reply = first_and_next(move |id| answer.replace("ID", &id.to_string()).into_bytes()).await;
        let ending = (reply.outcome.kind(), reply.outcome.may_have_executed());
        assert_eq!(ending, (Kind::Internal, true), "{answer}: {}", reply.text());
    }
}

/// The input rounds that a modern server may request are bounded.
#[tokio::test(start_paused = true)]
async fn answers_that_are_no_answers_are_bounded_in_the_newest_era() {
    let modern = || fake().era(Era::Modern);
    let text = check(modern(), Fault::UnknownResultType, Kind::Internal, true).await;
    assert_contains(&text, &["`sideways`"]);
    check(modern(), Fault::InputForEver, Kind::Internal, true).await;
    check(
        modern(),
        Fault::HugeRequestState { bytes: 10 << 20 },
        Kind::LimitExceeded,
        true,
    )
    .await;
    let text = check(
        modern(),
        Fault::HugeRequestState { bytes: 100 << 10 },
        Kind::Internal,
        true,
    )
    .await;
    assert_contains(&text, &["102400 bytes of state"]);
}

/// A tool error is passed on as the call's result.
#[tokio::test(start_paused = true)]
async fn an_error_of_the_tool_is_its_answer() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("fails").fails_with("no such pod"))
        .tool(Tool::new("refuses").refuses(-32000, "busy"))
        .tool(Tool::new("unknown").refuses(-32601, "what?"));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let reply = call(&tools, "fx.fails", json!({})).await;
    assert_outcome(&reply, Kind::ToolError, true);
    assert_eq!(
        (reply.text().as_str(), reply.is_error(), reply.attempts),
        ("no such pod", true, 1)
    );
    assert_outcome(&call(&tools, "fx.refuses", json!({})).await, Kind::ToolError, true);
    assert_outcome(&call(&tools, "fx.unknown", json!({})).await, Kind::ToolError, false);
    assert_eq!(handle.count("tools/call"), 3);
}
