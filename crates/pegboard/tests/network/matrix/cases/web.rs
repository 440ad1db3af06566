//! Faults that only HTTP has.

use pegboard_testkit::{Fault, HttpStyle, When};

use super::{AT_LIMIT, CUT, TIMEOUT, UNREADABLE, WEB, WELL, cannot_run, case, on_call, play, status, two_calls};
use crate::matrix::case::Case;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "F062",
            "the body arrives one byte at a time",
            "the total timeout ends the call",
            play!(|stage| on_call(stage, Fault::BodyDrip { every_ms: 100 }).await),
            TIMEOUT,
        )
        .on(WEB)
        .within(AT_LIMIT),
        case(
            "F063",
            "the connection is reset within the body",
            "the call may have run",
            play!(|stage| on_call(stage, Fault::ResetInBody).await),
            CUT,
        )
        .on(WEB),
        case(
            "F063b",
            "the connection is reset within the event stream",
            "the call may have run",
            play!(|stage| on_call(stage, Fault::ResetInStream).await),
            CUT,
        )
        .on("H2L"),
        case(
            "F064",
            "the event stream ends before the answer",
            "the call may have run",
            play!(|stage| {
                let fake = stage.faulty(When::tool("pay"), Fault::StreamEndsEarly { resumable: false });
                stage.open_listed(&fake).await;
                let reply = stage.reply().await;
                let then = stage.next_call().await;
                // The fake ends the stream concurrently with the call, which may run a moment later.
                format!("{}; {then}", stage.describe(&reply))
            }),
            CUT,
        )
        .on(WEB),
        case(
            "F064b",
            "a resumable event stream ends before the answer",
            "it is resumed, and the call is not retried",
            play!(|stage| {
                let style = HttpStyle {
                    streams: true,
                    event_ids: true,
                    retry_ms: Some(20),
                    ..HttpStyle::default()
                };
                let fault = Fault::StreamEndsEarly { resumable: true };
                let fake = stage.fake().http(style).fault_on(When::tool("pay").first(1), fault);
                stage.open_listed(&fake).await;
                two_calls(stage).await
            }),
            WELL,
        )
        .on(WEB)
        .in_era("l")
        .within(AT_LIMIT),
        case(
            "F065",
            "the event stream has keep-alive comments and nothing else",
            "the total timeout ends the call",
            play!(|stage| on_call(stage, Fault::OnlyKeepAlive { every_ms: 50 }).await),
            TIMEOUT,
        )
        .on(WEB)
        .within(AT_LIMIT),
        case(
            "F067",
            "a call is answered with 500",
            "the call may have run",
            play!(|stage| on_call(stage, status(500, "broken")).await),
            "lost transport, may have run, ran 0; then ok, ran 1",
        )
        .on("H2L"),
        case(
            "F067b",
            "a call is answered with 502",
            "the call may have run",
            play!(|stage| on_call(stage, status(502, "bad gateway")).await),
            "lost transport, may have run, ran 0; then ok, ran 1",
        )
        .on("H2L"),
        case(
            "F067c",
            "a call is answered with 504",
            "the call may have run",
            play!(|stage| on_call(stage, status(504, "")).await),
            "lost transport, may have run, ran 0; then ok, ran 1",
        )
        .on("H2L"),
        cannot_run(
            "F068",
            "HTTP/2 answers with REFUSED_STREAM, or GOAWAY below our stream",
            "the request is retried transparently",
            "the fakes cannot refuse a stream; `cargo test -p pegboard --test network http_2` plays it",
        ),
        case(
            "F070",
            "a call is answered with 404 because the session is gone",
            "a new session is opened, and the call is retried once",
            play!(|stage| on_call(stage, Fault::SessionGone).await),
            WELL,
        )
        .on(WEB)
        .in_era("l")
        .within(AT_LIMIT),
        case(
            "F071",
            "the server reports that headers and arguments differ (-32020)",
            "the tools are listed again, and the call is retried once",
            play!(|stage| {
                let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header mismatch"}}"#;
                let fault = Fault::Status {
                    status: 400,
                    headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                    body: body.to_owned(),
                };
                let outcome = on_call(stage, fault).await;
                format!("{outcome}; listed again: {}", stage.count("tools/list") > 1)
            }),
            "ok, ran 1; then ok, ran 1; listed again: true",
        )
        .on(WEB)
        .in_era("m")
        .within(AT_LIMIT),
        case(
            "F073",
            "the answer has a wrong content type",
            "the call may have run",
            play!(|stage| {
                let content_type = "text/plain".to_owned();
                on_call(stage, Fault::WrongContentType { content_type }).await
            }),
            UNREADABLE,
        )
        .on(WEB),
    ]
}
