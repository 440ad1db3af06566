//! Messages that could make the library report a wrong outcome of a call.

use pegboard_testkit::{Fault, When};

use super::{
    AT_LIMIT, RARELY_RETRIED, TIMEOUT, TOO_LARGE, UNREADABLE, WEB, WELL, at_start, before, case, on_call, only, play,
};
use crate::matrix::{case::Case, stage::MESSAGE};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = ids();
    cases.extend(answers());
    cases.extend(starts());
    cases
}

/// Messages that could be mistaken for the answer to a call, and answers that could be mistaken for other messages.
fn ids() -> Vec<Case> {
    vec![
        case(
            "X70",
            "the right answer is followed by an error under the same id",
            "the first one counts",
            play!(|stage| {
                let right = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"n1"}]}}"#;
                let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}"#;
                on_call(stage, only(&[right, error])).await
            }),
            WELL,
        ),
        // The script of a process is a command line argument, which is too short for the message.
        case(
            "X71",
            "an oversized request of the server under the id of the call precedes the answer",
            "it is not taken for the answer; an event stream is not read any further",
            play!(|stage| {
                let padding = "x".repeat(2 * MESSAGE);
                let request = format!(r#"{{"jsonrpc":"2.0","id":$ID,"method":"ping","params":{{"x":"{padding}"}}}}"#);
                on_call(stage, before(&[&request], 1)).await
            }),
            WELL,
        )
        .except("H2", "", TOO_LARGE)
        .on("MH2LW"),
        case(
            "X72",
            "a request of the server under the id of the call precedes the answer",
            "each is taken for what it is",
            play!(|stage| {
                let request = r#"{"jsonrpc":"2.0","id":$ID,"method":"ping"}"#;
                on_call(stage, before(&[request], 1)).await
            }),
            WELL,
        ),
        case(
            "X73",
            "a malformed request under the id of the call precedes the answer",
            "it is not taken for the answer",
            play!(|stage| {
                let request = r#"{"jsonrpc":"2.0","id":$ID,"method":5,"params":[]}"#;
                on_call(stage, before(&[request], 1)).await
            }),
            WELL,
        ),
        case(
            "X74",
            "a call is answered under its id with an exponent",
            "the answer reaches no call",
            play!(|stage| {
                let answer = r#"{"jsonrpc":"2.0","id":$IDe0,"result":{"resultType":"complete","content":[]}}"#;
                on_call(stage, only(&[answer])).await
            }),
            TIMEOUT,
        )
        .within(AT_LIMIT),
        case(
            "X75",
            "the answer is in a batch, in a version without batches",
            "that call fails at once",
            play!(|stage| {
                let batch = r#"[{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}]"#;
                on_call(stage, only(&[batch])).await
            }),
            UNREADABLE,
        ),
    ]
}

/// Ambiguous answers.
fn answers() -> Vec<Case> {
    vec![
        case(
            "X76",
            "the answer has `isError` twice, true and false",
            "that call fails, and neither value is believed",
            play!(|stage| {
                let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":true,"isError":false}}"#;
                on_call(stage, only(&[answer])).await
            }),
            UNREADABLE,
        ),
        case(
            "X77",
            "the answer has a string as `isError`",
            "that call fails and is not taken for a success",
            play!(|stage| {
                let answer =
                    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":"true"}}"#;
                on_call(stage, only(&[answer])).await
            }),
            UNREADABLE,
        ),
        case(
            "X78",
            "a call is answered with 200 and an HTML page",
            "the answer is unusable, and the call may have run",
            play!(|stage| on_call(stage, Fault::HtmlPage).await),
            "lost internal, may have run, ran 0; then ok, ran 1",
        )
        .on(WEB),
    ]
}

/// Programs that are not MCP servers.
fn starts() -> Vec<Case> {
    vec![
        case(
            "X85",
            "the program prints thousands of lines of text in place of messages",
            "unavailable with the first line, started once, and not retried",
            play!(|stage| {
                let noise = Fault::NoiseBeforeAnswer { lines: 3_000 };
                let outcome = at_start(
                    stage,
                    When::method("initialize"),
                    noise,
                    &["lines of text", RARELY_RETRIED],
                )
                .await;
                format!("{outcome}; {} starts", stage.count("initialize"))
            }),
            "refused unavailable, ran 0; 1 starts",
        )
        .on("SM")
        .in_era("l")
        .within(3_000),
    ]
}
