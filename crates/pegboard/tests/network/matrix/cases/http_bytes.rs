//! HTTP responses that only a handwritten server sends.

use std::time::Duration;

use pegboard_testkit::{Fault, When};
use serde_json::json;

use super::{AT_LIMIT, CUT, TIMEOUT, TOO_LARGE, UNREADABLE, WEB, WELL, case, on_call, play, raw_http, status};
use crate::matrix::{
    case::Case,
    raw::{Step, event_stream, head, response},
    stage::MESSAGE,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "X30",
            "the response has headers of 2 MiB",
            "the call may have run, and memory stays bounded",
            play!(|stage| raw_http(stage, |answer| {
                let header = format!("x-padding: {}\r\n", "x".repeat(2 << 20));
                vec![Step::Write(response(&header, answer))]
            })
            .await),
            CUT,
        )
        .on("H"),
        case(
            "X31",
            "the response has an unrequested gzip encoding",
            "that call fails, and nothing is decompressed",
            play!(|stage| raw_http(stage, |_| {
                let bomb = "\u{1f}\u{7f}bomb";
                vec![Step::Write(response("content-encoding: gzip\r\n", bomb))]
            })
            .await),
            UNREADABLE,
        )
        .on("H"),
        case(
            "X32",
            "the headers arrive one byte at a time",
            "the timeout ends the call",
            play!(|stage| raw_http(stage, |answer| vec![Step::Drip(
                response("", answer),
                Duration::from_millis(100)
            )])
            .await),
            TIMEOUT,
        )
        .on("H")
        .within(AT_LIMIT),
        case(
            "X33",
            "fifty 1xx responses precede the right one",
            "they are skipped",
            play!(|stage| raw_http(stage, |answer| {
                let early = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(50);
                vec![Step::Write(early.into_bytes()), Step::Write(response("", answer))]
            })
            .await),
            WELL,
        )
        .on("H"),
        case(
            "X34",
            "the server sends endless 1xx responses",
            "the timeout ends the call",
            play!(|stage| raw_http(stage, |_| vec![Step::Flood(
                b"HTTP/1.1 102 Processing\r\n\r\n".to_vec()
            )])
            .await),
            TIMEOUT,
        )
        .on("H")
        .within(AT_LIMIT),
        case(
            "X35",
            "a chunked body ends without its last chunk",
            "the call may have run",
            play!(|stage| raw_http(stage, |answer| {
                let half = &answer[..answer.len() / 2];
                let body = format!("{:x}\r\n{half}\r\n", half.len());
                vec![Step::Write(
                    (head("transfer-encoding: chunked\r\n") + &body).into_bytes(),
                )]
            })
            .await),
            CUT,
        )
        .on("H"),
        case(
            "X36",
            "a chunked body never ends",
            "the size limit ends the call",
            play!(|stage| raw_http(stage, |_| {
                let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16));
                let head = head("transfer-encoding: chunked\r\n").into_bytes();
                vec![Step::Write(head), Step::Flood(chunk.into_bytes())]
            })
            .await),
            TOO_LARGE,
        )
        .on("H"),
        case(
            "X37",
            "the body is shorter than its Content-Length",
            "the call may have run",
            play!(|stage| raw_http(stage, |answer| {
                let long = format!("content-length: {}\r\n", answer.len() + 10);
                vec![Step::Write((head(&long) + answer).into_bytes())]
            })
            .await),
            CUT,
        )
        .on("H"),
        case(
            "X38",
            "the body is longer than its Content-Length",
            "that call fails",
            play!(|stage| raw_http(stage, |answer| {
                let short = format!("content-length: {}\r\n", answer.len() - 10);
                vec![Step::Write((head(&short) + answer).into_bytes())]
            })
            .await),
            UNREADABLE,
        )
        .on("H"),
        case(
            "X39",
            "the response has two different Content-Length headers",
            "the call may have run",
            play!(|stage| raw_http(stage, |answer| {
                let two = format!("content-length: {}\r\ncontent-length: 3\r\n", answer.len());
                vec![Step::Write((head(&two) + answer).into_bytes())]
            })
            .await),
            CUT,
        )
        .on("H"),
        case(
            "X40",
            "a chunked body has trailers",
            "they are ignored",
            play!(|stage| raw_http(stage, |answer| {
                let head = head("transfer-encoding: chunked\r\ntrailer: x-sum\r\n");
                let body = format!("{:x}\r\n{answer}\r\n0\r\nx-sum: 1\r\n\r\n", answer.len());
                vec![Step::Write((head + &body).into_bytes())]
            })
            .await),
            WELL,
        )
        .on("H"),
        case(
            "X41",
            "the response is not HTTP",
            "the call may have run",
            play!(|stage| raw_http(stage, |_| vec![Step::Write(b"\x16\x03\x01 hello\r\n\r\n".to_vec())]).await),
            CUT,
        )
        .on("H"),
        case(
            "X42",
            "the connection is reset before the first byte of the response",
            "the call may have run, and is not retried",
            play!(|stage| raw_http(stage, |_| vec![Step::Reset]).await),
            CUT,
        )
        .on("H"),
        case(
            "X43",
            "the response stops after its head",
            "the timeout ends the call",
            play!(|stage| raw_http(stage, |_| vec![
                Step::Write(head("content-length: 9\r\n").into_bytes()),
                Step::Hang
            ])
            .await),
            TIMEOUT,
        )
        .on("H")
        .within(AT_LIMIT),
        case(
            "X44",
            "an event of the stream is larger than the limit",
            "the size limit ends the call",
            play!(|stage| raw_http(stage, |_| {
                vec![
                    Step::Write((event_stream("") + "data: ").into_bytes()),
                    Step::Write(vec![b'x'; 2 * MESSAGE]),
                    Step::Hang,
                ]
            })
            .await),
            TOO_LARGE,
        )
        .on("H"),
        case(
            "X45",
            "comments, empty events and CR line ends surround the answer in the event stream",
            "the answer arrives",
            play!(|stage| raw_http(stage, |answer| {
                let body = format!("\u{feff}: hi\r\revent: odd\r\rdata\r\rid\rretry: x\rdata: {answer}\r\r");
                vec![Step::Write((event_stream("") + &body).into_bytes())]
            })
            .await),
            WELL,
        )
        .on("H"),
        case(
            "X46",
            "a call is answered with 204",
            "the call may have run",
            play!(|stage| on_call(stage, status(204, "")).await),
            "lost transport, may have run, ran 0; then ok, ran 1",
        )
        .on(WEB),
        case(
            "X47",
            "a call is answered with 202",
            "the call may have run",
            play!(|stage| on_call(stage, status(202, "")).await),
            "lost transport, may have run, ran 0; then ok, ran 1",
        )
        .on(WEB),
        case(
            "X48",
            "a call is redirected to itself in a loop",
            "the loop ends, and the call may have run",
            play!(|stage| {
                let (status, to) = (307, "/mcp".to_owned());
                let fault = Fault::Redirect { status, to };
                let fake = stage.fake().fault_on(When::tool("pay"), fault);
                stage.open_listed(&fake).await;
                stage.call().await
            }),
            "lost transport, may have run, ran 0",
        )
        .on(WEB),
        case(
            "X49",
            "a call is answered with 503 and a Retry-After of one day",
            "the call ends within its timeout",
            play!(|stage| {
                let fault = Fault::Status {
                    status: 503,
                    headers: vec![("retry-after".to_owned(), "86400".to_owned())],
                    body: String::new(),
                };
                on_call(stage, fault).await
            }),
            "lost transport, may have run, ran 0; then ok, ran 1",
        )
        .on(WEB)
        .within(AT_LIMIT),
        case(
            "X50",
            "the session expires during the calls of a hundred callers",
            "each call runs in a new session",
            play!(|stage| {
                stage.limit(|limits| limits.max_in_flight = 100);
                stage.allow_long_calls();
                let fake = stage.fake().fault_on(When::tool("pay").nth(50), Fault::SessionGone);
                stage.open_listed(&fake).await;
                let replies = stage.calls(100, json!({})).await;
                let well = replies.iter().filter(|reply| !reply.is_error()).count();
                let unsure = replies
                    .iter()
                    .filter(|reply| reply.is_error() && reply.outcome.may_have_executed());
                format!("all ok: {}; {} unsure", well == 100, unsure.count())
            }),
            "all ok: true; 0 unsure",
        )
        .on(WEB)
        .in_era("l")
        .within(8_000),
        case(
            "X79",
            "the event stream has a gzip encoding",
            "that call fails, and nothing is decompressed",
            play!(|stage| raw_http(stage, |_| {
                vec![
                    Step::Write(event_stream("content-encoding: gzip\r\n").into_bytes()),
                    Step::Write(vec![0x1f; 64]),
                    Step::Hang,
                ]
            })
            .await),
            UNREADABLE,
        )
        .on("H"),
        case(
            "X80",
            "trailers name another status, length and session",
            "they are ignored",
            play!(|stage| raw_http(stage, |answer| {
                let trailers = "status: 500\r\ncontent-length: 3\r\nmcp-session-id: other\r\n";
                let body = format!("{:x}\r\n{answer}\r\n0\r\n{trailers}\r\n", answer.len());
                vec![Step::Write(
                    (head("transfer-encoding: chunked\r\n") + &body).into_bytes(),
                )]
            })
            .await),
            WELL,
        )
        .on("H"),
        case(
            "X81",
            "chunks of one byte split the answer within a UTF-8 sequence and its event between CR and LF",
            "the answer arrives",
            play!(|stage| raw_http(stage, |answer| {
                let event = format!(": \u{e9}\u{1f980}\r\ndata: {answer}\r\n\r\n");
                let mut body = event_stream("transfer-encoding: chunked\r\n").into_bytes();
                for byte in event.bytes() {
                    body.extend_from_slice(&[b'1', b'\r', b'\n', byte, b'\r', b'\n']);
                }
                body.extend_from_slice(b"0\r\n\r\n");
                vec![Step::Write(body)]
            })
            .await),
            WELL,
        )
        .on("H"),
        case(
            "X82",
            "half of the answer arrives in a body that is delimited by the end of its connection",
            "the answer is unusable, and the call may have run",
            play!(|stage| raw_http(stage, |answer| vec![Step::Write(
                (head("") + &answer[..answer.len() / 2]).into_bytes()
            )])
            .await),
            UNREADABLE,
        )
        .on("H"),
    ]
}
