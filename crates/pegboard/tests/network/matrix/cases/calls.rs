//! Faults during calls that can happen on any wire.

use std::collections::BTreeMap;

use pegboard_testkit::{Fault, Tool, When};
use serde_json::json;

use super::{AT_LIMIT, CUT, TIMEOUT, TOO_LARGE, UNREADABLE, WELL, case, on_call, only, play};
use crate::{
    matrix::{
        case::{Case, Wire},
        stage::{MESSAGE, Stage},
    },
    support::*,
};

const LOST: &str = "no usable answer came, and the call may have run";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = deaths();
    cases.extend(answers());
    cases.extend(shapes());
    cases.extend(floods());
    cases
}

fn deaths() -> Vec<Case> {
    vec![
        case(
            "F038",
            "the server dies before the request is written",
            "the call runs on the restarted server",
            play!(|stage| {
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                stage.kill().await;
                stage.until(secs(5), |stage| stage.status().restarts > 0).await;
                stage.call().await
            }),
            "ok, ran 1",
        )
        .within(4_000),
        case(
            "F038b",
            "the server reads the request and dies before it runs the call",
            LOST,
            play!(|stage| on_call(stage, Fault::DiesBeforeExecuting { code: 1 }).await),
            "lost transport, may have run, ran 0; then ok, ran 1",
        ),
        case(
            "F040",
            "the server runs the call and dies before it answers",
            "the call may have run, and is not retried",
            play!(|stage| on_call(stage, Fault::DiesAfterExecuting { code: 1 }).await),
            CUT,
        ),
        case(
            "F045",
            "half of the answer arrives, then EOF",
            LOST,
            play!(|stage| on_call(stage, Fault::CutThenEof).await),
            // A body and a frame end cleanly, so the half is a complete message that is not JSON.
            CUT,
        )
        .except("H2W", "", UNREADABLE),
        case(
            "F045b",
            "half of the answer arrives, then the server dies",
            LOST,
            play!(|stage| on_call(stage, Fault::DiesWhileAnswering { code: 1 }).await),
            CUT,
        )
        .except("W", "", UNREADABLE),
        case(
            "F059",
            "the server dies with hundreds of calls in flight",
            "each call ends exactly once, and no slot stays taken",
            play!(|stage| {
                // Over HTTP/1 each call has its own connection, HTTP/2 has its own stream limit, and SSE takes a POST for each call.
                let count = match stage.cell.wire {
                    Wire::Http1 | Wire::Http2 | Wire::Sse => 100,
                    Wire::Stdio | Wire::Memory | Wire::WebSocket => 1_000,
                };
                unanswered(stage, count, |fake, count| {
                    fake.fault_on(When::tool("pay").nth(count), Fault::DiesBeforeExecuting { code: 1 })
                })
                .await
            }),
            "1000 lost transport; 0 in flight",
        )
        .except("H2L", "", "100 lost transport; 0 in flight")
        .within(5_000),
        case(
            "F083",
            "the operator reconnects with 100 calls in flight",
            "each call ends exactly once",
            play!(|stage| {
                stage.limit(|limits| limits.max_in_flight = 100);
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                let board = stage.board().clone();
                let restart = async {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    board.reconnect(&name("fx")).await;
                };
                let (replies, ()) = tokio::join!(stage.calls(100, json!({"delay_ms": 400})), restart);
                let ended: usize = tally(&replies).values().sum();
                let calm = stage.until(secs(3), |stage| stage.status().in_flight == 0).await;
                format!("{ended} ended; all done: {calm}; {}", stage.next_call().await)
            }),
            "100 ended; all done: true; then ok, ran 1",
        )
        .within(5_000),
    ]
}

/// Answers with this text.
fn answers_text(text: &str) -> Fault {
    let result = format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}"#);
    only(&[&format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#)])
}

/// Counts the replies by outcome.
fn tally(replies: &[pegboard::Reply]) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for reply in replies {
        let lost = if matches!(reply.outcome, pegboard::Outcome::Lost(_)) {
            "lost "
        } else {
            ""
        };
        *seen
            .entry(format!("{lost}{}", reply.outcome.kind().as_str()))
            .or_default() += 1;
    }
    seen
}

/// Describes the counts of the outcomes.
fn describe(replies: &[pegboard::Reply]) -> String {
    let seen = tally(replies)
        .into_iter()
        .map(|(outcome, count)| format!("{count} {outcome}"));
    seen.collect::<Vec<_>>().join(", ")
}

/// Makes `count` calls that the server never answers, and describes their outcomes.
async fn unanswered(
    stage: &mut Stage,
    count: u32,
    change: fn(pegboard_testkit::FakeServer, u32) -> pegboard_testkit::FakeServer,
) -> String {
    stage.limit(|limits| {
        limits.max_in_flight = count as usize;
        limits.call_timeout = secs(20);
        limits.call_total_timeout = secs(20);
        // A server that is slow to read so many calls has not failed.
        limits.write_timeout = secs(20);
    });
    let mut script = stage.fake().script().clone();
    script.tools = vec![Tool::new("pay").destructive().echoes_nonce().waits_at("never")];
    let fake = change(pegboard_testkit::FakeServer::from_script(script), count);
    stage.open_listed(&fake.then_after(1, stage.fake())).await;
    let replies = stage.calls(count as usize, json!({})).await;
    stage.until(secs(2), |stage| stage.status().in_flight == 0).await;
    format!("{}; {} in flight", describe(&replies), stage.status().in_flight)
}

fn answers() -> Vec<Case> {
    vec![
        case(
            "F041",
            "the server never answers a call",
            "the timeout ends the call, the server gets a cancellation, and the slot is released",
            play!(|stage| {
                let outcome = on_call(stage, Fault::NeverAnswers).await;
                format!("{outcome}; {} in flight", stage.status().in_flight)
            }),
            "lost timeout, may have run, ran 1; then ok, ran 1; 0 in flight",
        )
        .within(AT_LIMIT),
        case(
            "F042",
            "the answer arrives after the timeout",
            "it reaches no other call",
            play!(|stage| {
                let outcome = on_call(stage, Fault::LateAnswer { ms: 1_300 }).await;
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                format!("{outcome}; {}", stage.next_call().await)
            }),
            "lost timeout, may have run, ran 1; then ok, ran 1; then ok, ran 1",
        )
        .within(AT_LIMIT),
        case(
            "F043",
            "the answer arrives twice",
            "the second one is dropped",
            play!(|stage| on_call(stage, Fault::AnswersTwice).await),
            WELL,
        ),
        case(
            "F044",
            "50 unsolicited answers precede the right one",
            "they are dropped",
            play!(|stage| on_call(stage, Fault::StrayAnswers { count: 50 }).await),
            WELL,
        ),
        case(
            "F044b",
            "the server sends 150 unsolicited answers",
            "that violates the protocol, and the session ends",
            play!(|stage| on_call(stage, Fault::StrayAnswers { count: 150 }).await),
            CUT,
        ),
        case(
            "F074",
            "the tool reports an error",
            "it is passed on, and the call is not retried",
            play!(|stage| {
                let mut script = stage.fake().script().clone();
                script.tools = vec![Tool::new("pay").read_only().fails_with("no such pod")];
                stage.open(&pegboard_testkit::FakeServer::from_script(script)).await;
                let outcome = stage.call().await;
                format!("{outcome}; {} calls", stage.count("tools/call"))
            }),
            "failed, may have run, ran 1; 1 calls",
        ),
    ]
}

fn shapes() -> Vec<Case> {
    vec![
        case(
            "F046",
            "the answer is larger than the limit",
            "that call fails, the error names the limit, and the next call succeeds",
            play!(|stage| {
                let (bytes, with_id, then_valid) = (2 * MESSAGE, true, false);
                on_call(
                    stage,
                    Fault::Oversized {
                        bytes,
                        with_id,
                        then_valid,
                    },
                )
                .await
            }),
            TOO_LARGE,
        ),
        case(
            "F047",
            "the server writes an endless line",
            "the connection ends, and memory stays bounded",
            play!(|stage| {
                stage.allow_long_calls();
                on_call(stage, Fault::EndlessLine).await
            }),
            CUT,
        )
        .on("SML")
        .within(8_000),
        case(
            "F048",
            "the answer contains bytes that are not UTF-8",
            "that call fails",
            play!(|stage| on_call(stage, Fault::InvalidUtf8).await),
            UNREADABLE,
        ),
        case(
            "F048b",
            "a NUL byte precedes the answer",
            "that call fails",
            play!(|stage| on_call(stage, Fault::NulByte).await),
            UNREADABLE,
        ),
        case(
            "F048c",
            "a byte order mark precedes each answer",
            "it is skipped",
            play!(|stage| on_call(stage, Fault::Bom).await),
            WELL,
        ),
        case(
            "F048d",
            "CR LF ends the answer",
            "it is accepted",
            play!(|stage| on_call(stage, Fault::Crlf).await),
            WELL,
        ),
        case(
            "F048e",
            "the answer contains U+2028",
            "it is an ordinary character",
            play!(|stage| {
                let fake = stage.faulty(When::tool("pay"), answers_text("a\u{2028}b"));
                stage.open_listed(&fake).await;
                let arguments = json!({});
                let reply = call(&stage.board().toolset(), "fx.pay", arguments).await;
                let outcome = if reply.is_error() { "lost" } else { "ok" };
                format!("{outcome}; {}", stage.next_call().await)
            }),
            "ok; then ok, ran 1",
        ),
        case(
            "F049",
            "the answer is nested 60,000 levels deep",
            "that call fails without a stack overflow or a hang",
            play!(|stage| on_call(stage, Fault::Nested { depth: 60_000 }).await),
            UNREADABLE,
        ),
        case(
            "F050",
            "the answer has the key `result` twice",
            "that call fails",
            play!(|stage| on_call(stage, Fault::DuplicateKeys).await),
            UNREADABLE,
        ),
        case(
            "F050b",
            "the answer has `Result` in place of `result`",
            "that call fails, because the key is unknown",
            play!(|stage| on_call(stage, Fault::CaseVariantKeys).await),
            UNREADABLE,
        ),
        case(
            "F052",
            "the answer has an unknown resultType",
            "that call fails",
            play!(|stage| on_call(stage, Fault::UnknownResultType).await),
            UNREADABLE,
        )
        .on("SMH2W")
        .in_era("m"),
        case(
            "F053",
            "the server requires input without end",
            "the call fails after ten rounds",
            play!(|stage| {
                let fake = stage.fake().fault(Fault::InputForEver);
                stage.open_listed(&fake).await;
                let reply = stage.reply().await;
                let rounds = stage.count("tools/call");
                format!(
                    "{}; at most 11 requests: {}",
                    reply.outcome.kind().as_str(),
                    rounds <= 11
                )
            }),
            "internal; at most 11 requests: true",
        )
        .on("SMH2W")
        .in_era("m")
        .within(AT_LIMIT),
        case(
            "F053b",
            "the server sends a request state of 100 KiB",
            "the call fails",
            play!(|stage| on_call(stage, Fault::HugeRequestState { bytes: 100 << 10 }).await),
            "lost internal, may have run, ran 0; then ok, ran 1",
        )
        .on("SMH2W")
        .in_era("m"),
    ]
}

fn floods() -> Vec<Case> {
    vec![
        case(
            "F054",
            "the server sends 5,000 progress notifications at once",
            "they are coalesced, and the answer arrives",
            play!(|stage| {
                stage.limit(|limits| limits.call_total_timeout = secs(10));
                on_call(stage, Fault::ProgressFlood { count: 5_000 }).await
            }),
            WELL,
        )
        .within(5_000),
        case(
            "F055",
            "the server sends progress for ever and no answer",
            "the total timeout ends the call",
            play!(|stage| on_call(stage, Fault::ProgressForEver { every_ms: 50 }).await),
            TIMEOUT,
        )
        .within(AT_LIMIT),
        case(
            "F056",
            "the server sends requests for an undeclared capability",
            "each is rejected, and the answer arrives",
            play!(|stage| {
                let (method, count) = ("sampling/createMessage".to_owned(), 20);
                let outcome = on_call(stage, Fault::ServerRequests { method, count }).await;
                let all = stage.until(secs(2), |stage| stage.count("$response") == 20).await;
                format!("{outcome}; all refused: {all}")
            }),
            "ok, ran 1; then ok, ran 1; all refused: true",
        )
        .in_era("l"),
        case(
            "F057",
            "the server sends requests in the modern era, which has none",
            "ten of them end the session",
            play!(|stage| {
                let (method, count) = ("roots/list".to_owned(), 10);
                on_call(stage, Fault::ServerRequests { method, count }).await
            }),
            CUT,
        )
        .on("SMH2W")
        .in_era("m"),
    ]
}
