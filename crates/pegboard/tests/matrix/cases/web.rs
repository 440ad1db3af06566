//! Faults that only HTTP can have.

use pegboard_testkit::{Fault, HttpStyle, When};

use super::{
    BOTH, CUT, TIMEOUT, UNREADABLE, WEB, WELL,
    calls::{AT_LIMIT, AT_ONCE},
    cannot_run, on_call, play,
    starts::status,
};
use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            id: "F062",
            fault: "the body comes a byte at a time",
            must: "the total limit holds",
            wires: WEB,
            eras: BOTH,
            bound: AT_LIMIT,
            how: play!(|stage| on_call(stage, Fault::BodyDrip { every_ms: 100 }).await),
            ends: &[("", "", TIMEOUT)],
        },
        Case {
            id: "F063",
            fault: "the connection is reset within the body",
            must: "the call may have run",
            wires: WEB,
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| on_call(stage, Fault::ResetInBody).await),
            ends: &[("", "", CUT)],
        },
        Case {
            id: "F063b",
            fault: "the connection is reset within the event stream",
            must: "the call may have run",
            wires: "H2L",
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| on_call(stage, Fault::ResetInStream).await),
            ends: &[("", "", CUT)],
        },
        Case {
            id: "F064",
            fault: "the event stream ends before the answer",
            must: "the call may have run",
            wires: WEB,
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| {
                let fake = stage.faulty(When::tool("pay"), Fault::StreamEndsEarly { resumable: false });
                stage.open(&fake).await;
                stage.warm().await;
                let reply = stage.reply().await;
                let then = stage.then().await;
                // The fake ends the stream beside the call, which may run a moment later.
                format!("{}; {then}", stage.word(&reply))
            }),
            ends: &[("", "", CUT)],
        },
        Case {
            id: "F064b",
            fault: "an event stream that can be resumed ends before the answer",
            must: "it is resumed, and the call is not made again",
            wires: WEB,
            eras: "l",
            bound: AT_LIMIT,
            how: play!(|stage| {
                let style = HttpStyle {
                    streams: true,
                    event_ids: true,
                    retry_ms: Some(20),
                    ..HttpStyle::default()
                };
                let fault = Fault::StreamEndsEarly { resumable: true };
                let fake = stage.fake().http(style).fault_on(When::tool("pay").first(1), fault);
                stage.open(&fake).await;
                stage.warm().await;
                let first = stage.call().await;
                format!("{first}; {}", stage.then().await)
            }),
            ends: &[("", "", WELL)],
        },
        Case {
            id: "F065",
            fault: "keep-alive comments and nothing else",
            must: "the total limit ends it",
            wires: WEB,
            eras: BOTH,
            bound: AT_LIMIT,
            how: play!(|stage| on_call(stage, Fault::OnlyKeepAlive { every_ms: 50 }).await),
            ends: &[("", "", TIMEOUT)],
        },
        Case {
            id: "F067",
            fault: "500",
            must: "the call may have run",
            wires: "H2L",
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| on_call(stage, status(500, "broken")).await),
            ends: &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
        },
        Case {
            id: "F067b",
            fault: "502",
            must: "the call may have run",
            wires: "H2L",
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| on_call(stage, status(502, "bad gateway")).await),
            ends: &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
        },
        Case {
            id: "F067c",
            fault: "504",
            must: "the call may have run",
            wires: "H2L",
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| on_call(stage, status(504, "")).await),
            ends: &[("", "", "lost transport, may have run, ran 0; then ok, ran 1")],
        },
        cannot_run(
            "F068",
            "HTTP/2 REFUSED_STREAM, or GOAWAY below our stream",
            "the request is sent again unseen",
            "the fakes cannot refuse a stream; `cargo test -p pegboard --test network http_2` plays it",
        ),
        Case {
            id: "F070",
            fault: "404 for a session that was known",
            must: "a new session, and the call is made again once",
            wires: WEB,
            eras: "l",
            bound: AT_LIMIT,
            how: play!(|stage| on_call(stage, Fault::SessionGone).await),
            ends: &[("", "", WELL)],
        },
        Case {
            id: "F071",
            fault: "the server says that headers and arguments differ (-32020)",
            must: "the tools are listed again, and the call is made again once",
            wires: WEB,
            eras: "m",
            bound: AT_LIMIT,
            how: play!(|stage| {
                let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header mismatch"}}"#;
                let fault = Fault::Status {
                    status: 400,
                    headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                    body: body.to_owned(),
                };
                let word = on_call(stage, fault).await;
                format!("{word}; listed again: {}", stage.count("tools/list") > 1)
            }),
            ends: &[("", "", "ok, ran 1; then ok, ran 1; listed again: true")],
        },
        Case {
            id: "F073",
            fault: "a wrong content type",
            must: "the call may have run",
            wires: WEB,
            eras: BOTH,
            bound: AT_ONCE,
            how: play!(|stage| {
                let content_type = "text/plain".to_owned();
                on_call(stage, Fault::WrongContentType { content_type }).await
            }),
            ends: &[("", "", UNREADABLE)],
        },
    ]
}
