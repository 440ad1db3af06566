//! Inventions that would have the product tell something untrue about a call.

use pegboard_testkit::{Fault, When};
use tokio_tungstenite::tungstenite::protocol::frame::coding::Data;

use super::{
    UNREADABLE, WEB, at_start,
    calls::AT_LIMIT,
    odd::{Ends, ONLY_WELL, before, odd, only, raw, socket, two_calls},
    on_call, play,
    starts::ONCE,
};
use crate::{
    case::Case,
    raw::{Step, head, part},
    stage::MESSAGE,
};

const ONLY_UNREADABLE: Ends = &[("", "", UNREADABLE)];
const TOO_LARGE: &str = "lost limit_exceeded, may have run, ran 1; then ok, ran 1";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = ids();
    cases.extend(answers());
    cases.extend(bodies());
    cases.extend(frames());
    cases.extend(starts());
    cases
}

/// Messages that are mistaken for the answer to a call, or the other way round.
fn ids() -> Vec<Case> {
    vec![
        odd(
            "X70",
            "the right answer, then an error under the same id",
            "the first counts",
            play!(|stage| {
                let right = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"n1"}]}}"#;
                let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}"#;
                on_call(stage, only(&[right, error])).await
            }),
            ONLY_WELL,
        ),
        Case {
            // The script of a process is an argument, which has no room for the message.
            wires: "MH2LW",
            ..odd(
                "X71",
                "a request of the server under the id of the call, larger than the limit, then the answer",
                "it is not taken for the answer; an event stream is not read on after it",
                play!(|stage| {
                    let padding = "x".repeat(2 * MESSAGE);
                    let request =
                        format!(r#"{{"jsonrpc":"2.0","id":$ID,"method":"ping","params":{{"x":"{padding}"}}}}"#);
                    on_call(stage, before(&[&request], 1)).await
                }),
                &[("H2", "", TOO_LARGE), ("", "", super::WELL)],
            )
        },
        odd(
            "X72",
            "a request of the server under the id of the call, then the answer",
            "each is taken for what it is",
            play!(|stage| {
                let request = r#"{"jsonrpc":"2.0","id":$ID,"method":"ping"}"#;
                on_call(stage, before(&[request], 1)).await
            }),
            ONLY_WELL,
        ),
        odd(
            "X73",
            "a request that cannot be read under the id of the call, then the answer",
            "it is not taken for the answer",
            play!(|stage| {
                let request = r#"{"jsonrpc":"2.0","id":$ID,"method":5,"params":[]}"#;
                on_call(stage, before(&[request], 1)).await
            }),
            ONLY_WELL,
        ),
        Case {
            bound: AT_LIMIT,
            ..odd(
                "X74",
                "an answer under the id with an exponent",
                "it reaches no call",
                play!(|stage| {
                    let answer = r#"{"jsonrpc":"2.0","id":$IDe0,"result":{"resultType":"complete","content":[]}}"#;
                    on_call(stage, only(&[answer])).await
                }),
                &[("", "", super::TIMEOUT)],
            )
        },
        odd(
            "X75",
            "the answer in a batch, in a version that has none",
            "that call ends at once",
            play!(|stage| {
                let batch = r#"[{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}]"#;
                on_call(stage, only(&[batch])).await
            }),
            ONLY_UNREADABLE,
        ),
    ]
}

/// Answers that say two things at once.
fn answers() -> Vec<Case> {
    vec![
        odd(
            "X76",
            "an answer that is both a success and a failure: `isError` twice",
            "that call ends, and neither is believed",
            play!(|stage| {
                let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":true,"isError":false}}"#;
                on_call(stage, only(&[answer])).await
            }),
            ONLY_UNREADABLE,
        ),
        odd(
            "X77",
            "an answer whose `isError` is a text",
            "that call ends: it is not taken for a success",
            play!(|stage| {
                let answer =
                    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":"true"}}"#;
                on_call(stage, only(&[answer])).await
            }),
            ONLY_UNREADABLE,
        ),
        Case {
            wires: WEB,
            ..odd(
                "X78",
                "200 with a page of HTML in answer to a call",
                "the answer cannot be used, and the call may have run",
                play!(|stage| on_call(stage, Fault::HtmlPage).await),
                &[("", "", "lost internal, may have run, ran 0; then ok, ran 1")],
            )
        },
    ]
}

/// Bodies of HTTP that end, or are packed, in odd ways.
fn bodies() -> Vec<Case> {
    vec![
        raw(
            "X79",
            "an event stream said to be gzip",
            "that call ends, and nothing is unpacked",
            play!(|stage| {
                stage
                    .open_raw(|_| {
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\
                                    connection: close\r\n\r\n";
                        vec![
                            Step::Write(head.as_bytes().to_vec()),
                            Step::Write(vec![0x1f; 64]),
                            Step::Hang,
                        ]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_UNREADABLE,
        ),
        raw(
            "X80",
            "trailers that name another status, length and session",
            "they are skipped",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let trailers = "status: 500\r\ncontent-length: 3\r\nmcp-session-id: other\r\n";
                        let body = format!("{:x}\r\n{answer}\r\n0\r\n{trailers}\r\n", answer.len());
                        vec![Step::Write(
                            (head("transfer-encoding: chunked\r\n") + &body).into_bytes(),
                        )]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        raw(
            "X81",
            "chunks of one byte that cut the answer within a UTF-8 sequence and its event at CR and LF",
            "the answer arrives",
            play!(|stage| {
                stage
                    .open_raw(|answer| {
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\
                                    transfer-encoding: chunked\r\n\r\n";
                        let event = format!(": \u{e9}\u{1f980}\r\ndata: {answer}\r\n\r\n");
                        let mut body = head.as_bytes().to_vec();
                        for byte in event.bytes() {
                            body.extend_from_slice(&[b'1', b'\r', b'\n', byte, b'\r', b'\n']);
                        }
                        body.extend_from_slice(b"0\r\n\r\n");
                        vec![Step::Write(body)]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
        raw(
            "X82",
            "half of the answer in a body that ends with its connection",
            "the answer cannot be used, and the call may have run",
            play!(|stage| {
                stage
                    .open_raw(|answer| vec![Step::Write((head("") + &answer[..answer.len() / 2]).into_bytes())])
                    .await;
                two_calls(stage).await
            }),
            ONLY_UNREADABLE,
        ),
    ]
}

/// Frames of a WebSocket.
fn frames() -> Vec<Case> {
    vec![
        socket(
            "X83",
            "an answer larger than the limit, in frames that each are within it",
            "that call ends, the limit is named, and the next one works",
            play!(|stage| {
                stage
                    .open_socket(|answer| {
                        let padding = "x".repeat(MESSAGE / 2);
                        let (start, end) = answer.split_at(answer.len() - 3);
                        vec![
                            part(start, Data::Text, false),
                            part(&padding, Data::Continue, false),
                            part(&padding, Data::Continue, false),
                            part(end, Data::Continue, true),
                        ]
                    })
                    .await;
                two_calls(stage).await
            }),
            &[("", "", TOO_LARGE)],
        ),
        socket(
            "X84",
            "a byte order mark cut in two by frames",
            "it is skipped",
            play!(|stage| {
                stage
                    .open_socket(|answer| {
                        use tokio_tungstenite::tungstenite::{
                            Message,
                            protocol::frame::{Frame, coding::OpCode},
                        };
                        let rest = [b"\xbf", answer.as_bytes()].concat();
                        let frame = |bytes, code, last| Message::Frame(Frame::message(bytes, OpCode::Data(code), last));
                        vec![
                            frame(b"\xef\xbb".to_vec(), Data::Binary, false),
                            frame(rest, Data::Continue, true),
                        ]
                    })
                    .await;
                two_calls(stage).await
            }),
            ONLY_WELL,
        ),
    ]
}

/// Programs that are no MCP servers.
fn starts() -> Vec<Case> {
    vec![Case {
        wires: "SM",
        eras: "l",
        bound: 3_000,
        ..odd(
            "X85",
            "the program prints thousands of lines of text instead of messages",
            "unavailable with the first line, started once, and not tried again",
            play!(|stage| {
                let noise = Fault::NoiseBeforeAnswer { lines: 3_000 };
                let word = at_start(stage, When::method("initialize"), noise, &["lines of text", ONCE]).await;
                format!("{word}; {} starts", stage.count("initialize"))
            }),
            &[("", "", "refused unavailable, ran 0; 1 starts")],
        )
    }]
}
