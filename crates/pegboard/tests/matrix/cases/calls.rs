//! Faults of calls that any wire can have.

use std::collections::BTreeMap;

use pegboard_testkit::{Fault, Tool, When};
use serde_json::json;

use super::{BOTH, CUT, EVERY, TIMEOUT, UNREADABLE, WELL, on_call, play};
use crate::{
    case::{Case, How, Wire},
    stage::{MESSAGE, Stage},
    support::*,
};

/// The longest that a call may take here that ends at once.
pub(super) const AT_ONCE: u64 = 1_500;
/// The longest that a call may take that ends with its limit.
pub(super) const AT_LIMIT: u64 = 3_300;

type Ends = &'static [(&'static str, &'static str, &'static str)];

fn every(id: &'static str, fault: &'static str, must: &'static str, bound: u64, how: How, ends: Ends) -> Case {
    Case {
        id,
        fault,
        must,
        wires: EVERY,
        eras: BOTH,
        bound,
        how,
        ends,
    }
}

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
        every(
            "F038",
            "the server dies before the request is written",
            "the call is made on the new one",
            4_000,
            play!(|stage| {
                let fake = stage.fake();
                stage.open(&fake).await;
                stage.warm().await;
                stage.kill().await;
                stage.until(secs(5), |stage| stage.status().restarts > 0).await;
                stage.call().await
            }),
            &[("", "", "ok, ran 1")],
        ),
        every(
            "F038b",
            "the server takes the request and dies before it runs it",
            LOST,
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::DiesBeforeExecuting { code: 1 }).await),
            &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
        ),
        every(
            "F040",
            "the server runs the call and dies before it answers",
            "the call may have run, and is not made again",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::DiesAfterExecuting { code: 1 }).await),
            &[("", "", CUT)],
        ),
        every(
            "F045",
            "half of the answer, then the end of the stream",
            LOST,
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::CutThenEof).await),
            // A body and a frame end in order, so what came is all of it, and that is no JSON.
            &[("H2W", "", UNREADABLE), ("", "", CUT)],
        ),
        every(
            "F045b",
            "half of the answer, then death",
            LOST,
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::DiesWhileAnswering { code: 1 }).await),
            &[("W", "", UNREADABLE), ("", "", CUT)],
        ),
        every(
            "F059",
            "the server dies with hundreds of calls in flight",
            "each ends exactly once, and nothing is left of them",
            5_000,
            play!(|stage| {
                // Over HTTP/1 each takes a connection of its own, HTTP/2 has a limit of its own, and SSE takes a POST for each.
                let count = match stage.cell.wire {
                    Wire::Http1 | Wire::Http2 | Wire::Sse => 100,
                    Wire::Stdio | Wire::Memory | Wire::WebSocket => 1_000,
                };
                many(stage, count, |fake, count| {
                    fake.fault_on(When::tool("pay").nth(count), Fault::DiesBeforeExecuting { code: 1 })
                })
                .await
            }),
            &[
                ("H2L", "", "100 lost transport; 0 in flight"),
                ("", "", "1000 lost transport; 0 in flight"),
            ],
        ),
        every(
            "F083",
            "a restart is asked for with 100 calls in flight",
            "each ends exactly once",
            5_000,
            play!(|stage| {
                stage.limit(|limits| limits.in_flight = 100);
                let fake = stage.fake();
                stage.open(&fake).await;
                stage.warm().await;
                let board = stage.board().clone();
                let restart = async {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    board.reconnect(&name("fx")).await;
                };
                let (replies, ()) = tokio::join!(stage.calls(100, json!({"delay_ms": 400})), restart);
                let ended: usize = tally(&replies).values().sum();
                let calm = stage.until(secs(3), |stage| stage.status().in_flight == 0).await;
                format!("{ended} ended; all done: {calm}; {}", stage.then().await)
            }),
            &[("", "", "100 ended; all done: true; then ok, ran 1")],
        ),
    ]
}

/// An answer with this text.
fn says(text: &str) -> Fault {
    let result = format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}"#);
    Fault::Says {
        messages: vec![format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#)],
        times: 1,
        then_answer: false,
    }
}

/// How often each ending was seen.
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

/// How often each ending was seen, in words.
fn told(replies: &[pegboard::Reply]) -> String {
    let seen = tally(replies)
        .into_iter()
        .map(|(word, count)| format!("{count} {word}"));
    seen.collect::<Vec<_>>().join(", ")
}

/// So many calls that wait at a gate, and what became of them.
async fn many(
    stage: &mut Stage,
    count: u32,
    change: fn(pegboard_testkit::FakeServer, u32) -> pegboard_testkit::FakeServer,
) -> String {
    stage.limit(|limits| {
        limits.in_flight = count as usize;
        limits.call_idle = secs(10);
        limits.call_total = secs(10);
    });
    let mut script = stage.fake().script().clone();
    script.tools = vec![Tool::new("pay").destructive().echoes_nonce().waits_at("never")];
    let fake = change(pegboard_testkit::FakeServer::from_script(script), count);
    stage.open(&fake.then_after(1, stage.fake())).await;
    stage.warm().await;
    let replies = stage.calls(count as usize, json!({})).await;
    stage.until(secs(2), |stage| stage.status().in_flight == 0).await;
    format!("{}; {} in flight", told(&replies), stage.status().in_flight)
}

fn answers() -> Vec<Case> {
    vec![
        every(
            "F041",
            "no answer at all",
            "the limit ends it, the server is told, and the slot is free",
            AT_LIMIT,
            play!(|stage| {
                let word = on_call(stage, Fault::NeverAnswers).await;
                format!("{word}; {} in flight", stage.status().in_flight)
            }),
            &[("", "", "lost timeout, may have run, ran 1; then ok, ran 1; 0 in flight")],
        ),
        every(
            "F042",
            "the answer comes after the limit",
            "it reaches no other call",
            AT_LIMIT,
            play!(|stage| {
                let word = on_call(stage, Fault::LateAnswer { ms: 1_300 }).await;
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                format!("{word}; {}", stage.then().await)
            }),
            &[(
                "",
                "",
                "lost timeout, may have run, ran 1; then ok, ran 1; then ok, ran 1",
            )],
        ),
        every(
            "F043",
            "the answer comes twice",
            "the second is dropped",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::AnswersTwice).await),
            &[("", "", WELL)],
        ),
        every(
            "F044",
            "50 answers that no call waits for, then the right one",
            "they are dropped",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::StrayAnswers { count: 50 }).await),
            &[("", "", WELL)],
        ),
        every(
            "F044b",
            "150 answers that no call waits for",
            "the server breaks the protocol, and the session ends",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::StrayAnswers { count: 150 }).await),
            &[("", "", CUT)],
        ),
        every(
            "F074",
            "the tool reports an error",
            "it is passed on, and the call is not made again",
            AT_ONCE,
            play!(|stage| {
                let mut script = stage.fake().script().clone();
                script.tools = vec![Tool::new("pay").read_only().fails_with("no such pod")];
                stage.open(&pegboard_testkit::FakeServer::from_script(script)).await;
                let word = stage.call().await;
                format!("{word}; {} calls", stage.count("tools/call"))
            }),
            &[("", "", "failed, may have run, ran 1; 1 calls")],
        ),
    ]
}

fn shapes() -> Vec<Case> {
    vec![
        every(
            "F046",
            "an answer larger than the limit",
            "that call ends, the limit is named, and the next one works",
            AT_ONCE,
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
            &[("", "", "lost limit_exceeded, may have run, ran 1; then ok, ran 1")],
        ),
        Case {
            wires: "SML",
            ..every(
                "F047",
                "a line that never ends",
                "the connection ends, and memory stays bounded",
                8_000,
                play!(|stage| {
                    stage.limit(|limits| (limits.call_idle, limits.call_total) = (secs(10), secs(10)));
                    on_call(stage, Fault::EndlessLine).await
                }),
                &[("", "", CUT)],
            )
        },
        every(
            "F048",
            "bytes in the answer that are not UTF-8",
            "that call ends",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::InvalidUtf8).await),
            &[("", "", UNREADABLE)],
        ),
        every(
            "F048b",
            "a NUL byte before the answer",
            "that call ends",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::NulByte).await),
            &[("", "", UNREADABLE)],
        ),
        every(
            "F048c",
            "a byte order mark before each answer",
            "it is skipped",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::Bom).await),
            &[("", "", WELL)],
        ),
        every(
            "F048d",
            "CR LF after the answer",
            "it is accepted",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::Crlf).await),
            &[("", "", WELL)],
        ),
        every(
            "F048e",
            "U+2028 in the answer",
            "it is a character like any other",
            AT_ONCE,
            play!(|stage| {
                let fake = stage.faulty(When::tool("pay"), says("a\u{2028}b"));
                stage.open(&fake).await;
                stage.warm().await;
                let arguments = json!({});
                let reply = call(&stage.board().toolset(), "fx.pay", arguments).await;
                let word = if reply.is_error() { "lost" } else { "ok" };
                format!("{word}; {}", stage.then().await)
            }),
            &[("", "", "ok; then ok, ran 1")],
        ),
        every(
            "F049",
            "an answer nested 60,000 deep",
            "that call ends; no overflow, no hang",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::Nested { depth: 60_000 }).await),
            &[("", "", UNREADABLE)],
        ),
        every(
            "F050",
            "an answer with the key `result` twice",
            "that call ends",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::DuplicateKeys).await),
            &[("", "", UNREADABLE)],
        ),
        every(
            "F050b",
            "an answer with `Result` in place of `result`",
            "that call ends, for the key is unknown",
            AT_ONCE,
            play!(|stage| on_call(stage, Fault::CaseVariantKeys).await),
            &[("", "", UNREADABLE)],
        ),
        Case {
            wires: "SMH2W",
            eras: "m",
            ..every(
                "F052",
                "an unknown resultType",
                "that call ends",
                AT_ONCE,
                play!(|stage| on_call(stage, Fault::UnknownResultType).await),
                &[("", "", UNREADABLE)],
            )
        },
        Case {
            wires: "SMH2W",
            eras: "m",
            ..every(
                "F053",
                "input is required without end",
                "ten rounds, then the call ends",
                AT_LIMIT,
                play!(|stage| {
                    let fake = stage.fake().fault(Fault::InputForEver);
                    stage.open(&fake).await;
                    stage.warm().await;
                    let reply = stage.reply().await;
                    let rounds = stage.count("tools/call");
                    format!(
                        "{}; at most 11 requests: {}",
                        reply.outcome.kind().as_str(),
                        rounds <= 11
                    )
                }),
                &[("", "", "internal; at most 11 requests: true")],
            )
        },
        Case {
            wires: "SMH2W",
            eras: "m",
            ..every(
                "F053b",
                "a request state of 100 KiB",
                "the call ends",
                AT_ONCE,
                play!(|stage| on_call(stage, Fault::HugeRequestState { bytes: 100 << 10 }).await),
                &[("", "", "lost internal, may have run, ran 0; then ok, ran 1")],
            )
        },
    ]
}

fn floods() -> Vec<Case> {
    vec![
        every(
            "F054",
            "5,000 notices of progress at once",
            "they are merged, and the answer arrives",
            5_000,
            play!(|stage| {
                stage.limit(|limits| limits.call_total = secs(10));
                on_call(stage, Fault::ProgressFlood { count: 5_000 }).await
            }),
            &[("", "", WELL)],
        ),
        every(
            "F055",
            "progress for ever and no answer",
            "the total limit ends it",
            AT_LIMIT,
            play!(|stage| on_call(stage, Fault::ProgressForEver { every_ms: 50 }).await),
            &[("", "", TIMEOUT)],
        ),
        Case {
            eras: "l",
            ..every(
                "F056",
                "the server asks for what was never declared",
                "each question is refused, and the answer arrives",
                AT_ONCE,
                play!(|stage| {
                    let (method, count) = ("sampling/createMessage".to_owned(), 20);
                    let word = on_call(stage, Fault::ServerRequests { method, count }).await;
                    let all = stage.until(secs(2), |stage| stage.count("$response") == 20).await;
                    format!("{word}; all refused: {all}")
                }),
                &[("", "", "ok, ran 1; then ok, ran 1; all refused: true")],
            )
        },
        Case {
            wires: "SMH2W",
            eras: "m",
            ..every(
                "F057",
                "the server asks questions in the newest era, which has none",
                "ten of them end the session",
                AT_ONCE,
                play!(|stage| {
                    let (method, count) = ("roots/list".to_owned(), 10);
                    on_call(stage, Fault::ServerRequests { method, count }).await
                }),
                &[("", "", CUT)],
            )
        },
    ]
}
