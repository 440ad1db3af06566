//! Faults that no specification forbids a server to think of.

use std::time::Duration;

use pegboard_testkit::{Fault, When};
use serde_json::json;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{
        CloseFrame,
        frame::coding::{CloseCode, Data},
    },
};

use super::{
    BOTH, CUT, EVERY, TIMEOUT, UNREADABLE, WEB, WELL,
    calls::{AT_LIMIT, AT_ONCE},
    on_call, play,
    starts::status,
};
use crate::{
    case::{Case, How},
    raw::{Step, head, part, response},
    stage::{MESSAGE, Stage},
    support::*,
};

pub(super) type Ends = &'static [(&'static str, &'static str, &'static str)];

pub(super) const ONLY_WELL: Ends = &[("", "", WELL)];
const ONLY_CUT: Ends = &[("", "", CUT)];

pub(super) fn odd(id: &'static str, fault: &'static str, must: &'static str, how: How, ends: Ends) -> Case {
    Case {
        id,
        fault,
        must,
        wires: EVERY,
        eras: BOTH,
        bound: AT_ONCE,
        how,
        ends,
    }
}

/// The same over HTTP/1 alone.
pub(super) fn raw(id: &'static str, fault: &'static str, must: &'static str, how: How, ends: Ends) -> Case {
    Case {
        wires: "H",
        ..odd(id, fault, must, how, ends)
    }
}

/// The same over WebSocket alone.
pub(super) fn socket(id: &'static str, fault: &'static str, must: &'static str, how: How, ends: Ends) -> Case {
    Case {
        wires: "W",
        ..odd(id, fault, must, how, ends)
    }
}

/// Sends these messages and nothing more.
pub(super) fn only(messages: &[&str]) -> Fault {
    said(messages, 1, false)
}

/// Sends these messages so many times, then the answer.
pub(super) fn before(messages: &[&str], times: u32) -> Fault {
    said(messages, times, true)
}

fn said(messages: &[&str], times: u32, then_answer: bool) -> Fault {
    Fault::Says {
        messages: messages.iter().map(|text| (*text).to_owned()).collect(),
        times,
        then_answer,
    }
}

/// A call of a server that says what it likes, then one without the fault.
pub(super) async fn two_calls(stage: &mut Stage) -> String {
    stage.warm().await;
    let first = stage.call().await;
    format!("{first}; {}", stage.then().await)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = messages();
    cases.extend(processes());
    cases.extend(http());
    cases.extend(sockets());
    cases
}

fn messages() -> Vec<Case> {
    vec![
        Case {
            bound: AT_LIMIT,
            ..odd(
                "X01",
                "answers whose ids are a list, an object and a boolean",
                "they reach no call",
                play!(|stage| {
                    let ids = [
                        r#"{"jsonrpc":"2.0","id":[$ID],"result":{"content":[]}}"#,
                        r#"{"jsonrpc":"2.0","id":{"id":$ID},"result":{"content":[]}}"#,
                        r#"{"jsonrpc":"2.0","id":true,"result":{"content":[]}}"#,
                    ];
                    on_call(stage, only(&ids)).await
                }),
                &[("", "", TIMEOUT)],
            )
        },
        odd(
            "X02",
            "two answers that differ",
            "the first counts, and the second reaches no call",
            play!(|stage| {
                let first = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"first"}}"#;
                on_call(stage, before(&[first], 1)).await
            }),
            &[("", "", "failed, may have run, ran 1; then ok, ran 1")],
        ),
        odd(
            "X03",
            "an answer with both a result and an error",
            "that call ends",
            play!(|stage| {
                let both = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":-1,"message":"no"}}"#;
                on_call(stage, only(&[both])).await
            }),
            &[("", "", UNREADABLE)],
        ),
        odd(
            "X04",
            "an answer whose result is null",
            "that call ends",
            play!(|stage| on_call(stage, only(&[r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#])).await),
            &[("", "", UNREADABLE)],
        ),
        odd(
            "X05",
            "an answer whose content is a text and not a list",
            "that call ends",
            play!(|stage| {
                let text = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":"text"}}"#;
                on_call(stage, only(&[text])).await
            }),
            &[("", "", UNREADABLE)],
        ),
        odd(
            "X06",
            "an error whose code is a text",
            "that call ends",
            play!(|stage| {
                let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"E_FAIL","message":"no"}}"#;
                on_call(stage, only(&[error])).await
            }),
            &[("", "", UNREADABLE)],
        ),
        odd(
            "X07",
            "progress without a token, and with tokens that no call has",
            "it is dropped",
            play!(|stage| {
                let notices = [
                    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"no","progress":1}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
                ];
                on_call(stage, before(&notices, 20)).await
            }),
            ONLY_WELL,
        ),
        odd(
            "X08",
            "the server cancels the call and answers it all the same",
            "the answer counts: only the client cancels calls",
            play!(|stage| {
                let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#;
                on_call(stage, before(&[cancel], 1)).await
            }),
            ONLY_WELL,
        ),
        Case {
            bound: 5_000,
            ..odd(
                "X09",
                "2,000 notices of every kind before the answer",
                "the answer arrives",
                play!(|stage| {
                    stage.limit(|limits| (limits.call_idle, limits.call_total) = (secs(10), secs(10)));
                    let notices = [
                        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
                        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}"#,
                        r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#,
                        r#"{"jsonrpc":"2.0","method":"notifications/vendor/unheard_of","params":[]}"#,
                    ];
                    on_call(stage, before(&notices, 500)).await
                }),
                ONLY_WELL,
            )
        },
        odd(
            "X10",
            "an answer that ends within a UTF-8 sequence",
            "that call ends",
            play!(|stage| on_call(stage, Fault::HalfUtf8).await),
            &[("", "", UNREADABLE)],
        ),
        odd(
            "X11",
            "texts that are JSON but no messages, before the answer",
            "they are dropped",
            play!(|stage| on_call(stage, before(&["{}", "[]", "null", "1", r#""text""#], 2)).await),
            ONLY_WELL,
        ),
        odd(
            "X12",
            "an answer without `jsonrpc`",
            "it is read all the same, or that call ends; never a hang",
            play!(|stage| {
                let answer = r#"{"id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"n1"}]}}"#;
                on_call(stage, only(&[answer])).await
            }),
            ONLY_WELL,
        ),
        Case {
            bound: AT_LIMIT,
            ..odd(
                "X13",
                "the server stops reading",
                "the limit ends the call, and a shutdown does not wait for the server",
                play!(|stage| {
                    let fake = stage.fake().fault(Fault::StopsReading).then_after(1, stage.fake());
                    stage.open(&fake).await;
                    stage.warm().await;
                    stage.call().await
                }),
                &[("", "", "lost timeout, may have run, ran 0")],
            )
        },
    ]
}

fn processes() -> Vec<Case> {
    vec![
        Case {
            wires: "S",
            bound: AT_LIMIT,
            ..odd(
                "X20",
                "SIGSTOP during a call, then SIGCONT",
                "the limit ends the call, and the same process serves the next one",
                play!(|stage| {
                    let fake = stage.fake();
                    stage.open(&fake).await;
                    stage.warm().await;
                    let pid = stage.status().pid.unwrap();
                    signal(pid, "-STOP");
                    let first = stage.call().await;
                    signal(pid, "-CONT");
                    let then = stage.then().await;
                    let same = stage.status().pid == Some(pid);
                    format!("{first}; {then}; the same process: {same}")
                }),
                // The request was in the pipe, and the process reads it when it goes on.
                &[(
                    "",
                    "",
                    "lost timeout, may have run, ran 0; then ok, ran 1; the same process: true",
                )],
            )
        },
        Case {
            wires: "S",
            bound: AT_LIMIT,
            ..odd(
                "X21",
                "8 MiB on stderr before the answer",
                "the answer arrives",
                play!(|stage| {
                    stage.limit(|limits| (limits.call_idle, limits.call_total) = (secs(10), secs(10)));
                    on_call(stage, Fault::FloodsStderr { bytes: 8 << 20 }).await
                }),
                ONLY_WELL,
            )
        },
        Case {
            wires: "SM",
            bound: AT_LIMIT,
            ..odd(
                "X22",
                "20,000 lines that are no JSON before the answer",
                "the answer arrives",
                play!(|stage| {
                    stage.limit(|limits| (limits.call_idle, limits.call_total) = (secs(10), secs(10)));
                    on_call(stage, Fault::NoiseBeforeAnswer { lines: 20_000 }).await
                }),
                ONLY_WELL,
            )
        },
        Case {
            wires: "S",
            ..odd(
                "X23",
                "the server closes its output and lives on",
                "the call ends at once, and the process is not left",
                play!(|stage| on_call(stage, Fault::ClosesOutput).await),
                ONLY_CUT,
            )
        },
        Case {
            wires: "S",
            bound: AT_LIMIT,
            ..odd(
                "X24",
                "a shutdown while an answer is pending and the server ignores the end of its input",
                "the call ends once, and no process is left",
                play!(|stage| {
                    let fake = stage.fake().fault(Fault::IgnoresEof).fault(Fault::NeverAnswers);
                    stage.open(&fake).await;
                    stage.warm().await;
                    let board = stage.board().clone();
                    let shutdown = async {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        board.shutdown().await;
                    };
                    let (replies, ()) = tokio::join!(stage.calls(1, json!({})), shutdown);
                    stage.part().await;
                    format!("may have run: {}", replies[0].outcome.may_have_executed())
                }),
                &[("", "", "may have run: true")],
            )
        },
    ]
}

/// Sends a process a signal.
fn signal(pid: u32, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn http() -> Vec<Case> {
    vec![
        raw(
            "X30",
            "headers of 2 MiB",
            "the call may have run, and memory stays bounded",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let header = format!("x-padding: {}\r\n", "x".repeat(2 << 20));
                        vec![Step::Write(response(&header, answer))]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        raw(
            "X31",
            "a body said to be gzip that nobody asked for",
            "that call ends, and nothing is unpacked",
            play!(|stage| {
                stage
                    .open_raw(|_| {
                        let bomb = "\u{1f}\u{7f}bomb";
                        vec![Step::Write(response("content-encoding: gzip\r\n", bomb))]
                    })
                    .await;
                two_calls(stage).await
            }),
            &[("", "", UNREADABLE)],
        ),
        Case {
            bound: AT_LIMIT,
            ..raw(
                "X32",
                "the headers come a byte at a time",
                "the limit ends the call",
                play!(|stage| {
                    stage
                        .open_raw(|answer| vec![Step::Drip(response("", answer), Duration::from_millis(100))])
                        .await;
                    two_calls(stage).await
                }),
                &[("", "", TIMEOUT)],
            )
        },
        raw(
            "X33",
            "fifty 1xx answers before the right one",
            "they are skipped",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let early = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(50);
                        vec![Step::Write(early.into_bytes()), Step::Write(response("", answer))]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        Case {
            bound: AT_LIMIT,
            ..raw(
                "X34",
                "1xx answers without end",
                "the limit ends the call",
                play!(|stage| {
                    stage
                        .open_raw(|_| vec![Step::Flood(b"HTTP/1.1 102 Processing\r\n\r\n".to_vec())])
                        .await;
                    two_calls(stage).await
                }),
                &[("", "", TIMEOUT)],
            )
        },
        raw(
            "X35",
            "a chunked body whose last chunk never comes, then the end",
            "the call may have run",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let half = &answer[..answer.len() / 2];
                        let body = format!("{:x}\r\n{half}\r\n", half.len());
                        vec![Step::Write(
                            (head("transfer-encoding: chunked\r\n") + &body).into_bytes(),
                        )]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        raw(
            "X36",
            "a chunked body without end",
            "the limit of size ends the call",
            play!(|stage| {
                stage
                    .open_raw(|_| {
                        let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16));
                        let head = head("transfer-encoding: chunked\r\n").into_bytes();
                        vec![Step::Write(head), Step::Flood(chunk.into_bytes())]
                    })
                    .await;
                two_calls(stage).await
            }),
            &[("", "", "lost limit_exceeded, may have run, ran 1; then ok, ran 1")],
        ),
        raw(
            "X37",
            "a body shorter than its length",
            "the call may have run",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let long = format!("content-length: {}\r\n", answer.len() + 10);
                        vec![Step::Write((head(&long) + answer).into_bytes())]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        raw(
            "X38",
            "a body longer than its length",
            "that call ends",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let short = format!("content-length: {}\r\n", answer.len() - 10);
                        vec![Step::Write((head(&short) + answer).into_bytes())]
                    })
                    .await;
                two_calls(stage).await
            }),
            &[("", "", UNREADABLE)],
        ),
        raw(
            "X39",
            "two lengths that differ",
            "the call may have run",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let two = format!("content-length: {}\r\ncontent-length: 3\r\n", answer.len());
                        vec![Step::Write((head(&two) + answer).into_bytes())]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        raw(
            "X40",
            "a chunked body with trailers",
            "they are skipped",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let head = head("transfer-encoding: chunked\r\ntrailer: x-sum\r\n");
                        let body = format!("{:x}\r\n{answer}\r\n0\r\nx-sum: 1\r\n\r\n", answer.len());
                        vec![Step::Write((head + &body).into_bytes())]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        raw(
            "X41",
            "bytes that are no HTTP",
            "the call may have run",
            play!(|stage| {
                stage
                    .open_raw(|_| vec![Step::Write(b"\x16\x03\x01 hello\r\n\r\n".to_vec())])
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        raw(
            "X42",
            "the connection is reset before a byte of the answer",
            "the call may have run, and is not made again",
            play!(|stage| {
                stage.open_raw(|_| vec![Step::Reset]).await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        Case {
            bound: AT_LIMIT,
            ..raw(
                "X43",
                "the head of the answer, then silence",
                "the limit ends the call",
                play!(|stage| {
                    stage
                        .open_raw(|_| vec![Step::Write(head("content-length: 9\r\n").into_bytes()), Step::Hang])
                        .await;
                    two_calls(stage).await
                }),
                &[("", "", TIMEOUT)],
            )
        },
        raw(
            "X44",
            "an event stream with an event larger than the limit",
            "the limit of size ends the call",
            play!(|stage| {
                stage
                    .open_raw(|_| {
                        let head =
                            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
                        vec![
                            Step::Write(head.as_bytes().to_vec()),
                            Step::Write(vec![b'x'; 2 * MESSAGE]),
                            Step::Hang,
                        ]
                    })
                    .await;
                two_calls(stage).await
            }),
            &[("", "", "lost limit_exceeded, may have run, ran 1; then ok, ran 1")],
        ),
        raw(
            "X45",
            "an event stream of comments, empty events and CR line ends around the answer",
            "the answer arrives",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                        let body = format!("\u{feff}: hi\r\revent: odd\r\rdata\r\rid\rretry: x\rdata: {answer}\r\r");
                        vec![Step::Write((head.to_owned() + &body).into_bytes())]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        Case {
            wires: WEB,
            ..odd(
                "X46",
                "204 in answer to a call",
                "the call may have run",
                play!(|stage| on_call(stage, status(204, "")).await),
                &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
            )
        },
        Case {
            wires: WEB,
            ..odd(
                "X47",
                "202 in answer to a call",
                "the call may have run",
                play!(|stage| on_call(stage, status(202, "")).await),
                &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
            )
        },
        Case {
            wires: WEB,
            ..odd(
                "X48",
                "a call is redirected to itself without end",
                "the loop ends, and nothing proves that the call did not run",
                play!(|stage| {
                    let (status, to) = (307, "/mcp".to_owned());
                    let fault = Fault::Redirect { status, to };
                    let fake = stage.fake().fault_on(When::tool("pay"), fault);
                    stage.open(&fake).await;
                    stage.warm().await;
                    stage.call().await
                }),
                &[("", "", "lost transport, may have run, ran 0")],
            )
        },
        Case {
            wires: WEB,
            bound: AT_LIMIT,
            ..odd(
                "X49",
                "503 that asks to wait for a day",
                "the call ends within its limit",
                play!(|stage| {
                    let fault = Fault::Status {
                        status: 503,
                        headers: vec![("retry-after".to_owned(), "86400".to_owned())],
                        body: String::new(),
                    };
                    on_call(stage, fault).await
                }),
                &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
            )
        },
        Case {
            wires: WEB,
            eras: "l",
            bound: 8_000,
            ..odd(
                "X50",
                "the session expires between the calls of a hundred callers",
                "each call is made in a new session",
                play!(|stage| {
                    stage.limit(|limits| limits.in_flight = 100);
                    let fake = stage.fake().fault_on(When::tool("pay").nth(50), Fault::SessionGone);
                    stage.open(&fake).await;
                    stage.warm().await;
                    let replies = stage.calls(100, json!({})).await;
                    let well = replies.iter().filter(|reply| !reply.is_error()).count();
                    let unsure = replies
                        .iter()
                        .filter(|reply| reply.is_error() && reply.outcome.may_have_executed());
                    format!("all ok: {}; {} unsure", well == 100, unsure.count())
                }),
                &[("", "", "all ok: true; 0 unsure")],
            )
        },
    ]
}

fn sockets() -> Vec<Case> {
    vec![
        Case {
            bound: 5_000,
            ..socket(
                "X60",
                "2,000 pings before the answer",
                "the answer arrives",
                play!(|stage| {
                    stage.limit(|limits| (limits.call_idle, limits.call_total) = (secs(10), secs(10)));
                    stage
                        .open_socket(|answer| {
                            let mut said = vec![Message::Ping(b"there?".as_slice().into()); 2_000];
                            said.push(Message::text(answer));
                            said
                        })
                        .await;
                    two_calls(stage).await
                }),
                ONLY_WELL,
            )
        },
        socket(
            "X61",
            "the answer in frames of one byte",
            "the answer arrives",
            play!(|stage| {
                stage
                    .open_socket(|answer| {
                        let last = answer.len() - 1;
                        let parts = (0..=last).map(|at| {
                            let code = if at == 0 { Data::Text } else { Data::Continue };
                            part(&answer[at..=at], code, at == last)
                        });
                        parts.collect()
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        socket(
            "X62",
            "a ping between the frames of the answer",
            "the answer arrives",
            play!(|stage| {
                stage
                    .open_socket(|answer| {
                        let (one, two) = answer.split_at(answer.len() / 2);
                        let ping = Message::Ping(Default::default());
                        vec![part(one, Data::Text, false), ping, part(two, Data::Continue, true)]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        socket(
            "X63",
            "a goodbye within the answer",
            "the call may have run",
            play!(|stage| {
                stage
                    .open_socket(|answer| {
                        let goodbye = CloseFrame {
                            code: CloseCode::Away,
                            reason: "bye".into(),
                        };
                        let half = &answer[..answer.len() / 2];
                        vec![part(half, Data::Text, false), Message::Close(Some(goodbye))]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        socket(
            "X64",
            "a frame that continues nothing",
            "the server breaks the protocol, and the call may have run",
            play!(|stage| {
                stage
                    .open_socket(|answer| vec![part(answer, Data::Continue, true)])
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
        socket(
            "X65",
            "a message in frames that never end",
            "the limit of size ends the connection",
            play!(|stage| {
                stage
                    .open_socket(|_| {
                        let piece = "x".repeat(64 << 10);
                        let parts = (0..64).map(|at| {
                            let code = if at == 0 { Data::Text } else { Data::Continue };
                            part(&piece, code, false)
                        });
                        parts.collect()
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_CUT,
        ),
    ]
}
