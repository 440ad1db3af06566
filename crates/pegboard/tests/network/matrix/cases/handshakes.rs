//! Faults of handshakes, ids and sessions.

use pegboard::State;
use pegboard_testkit::{Era, Fault, Refusal, When};

use super::{CUT, DOWN, TIMEOUT, UNREADABLE, WEB, at_start, case, on_call, play, status, two_calls};
use crate::{
    matrix::case::{self, Case},
    support::at,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "F018",
            "a legacy server answers the probe for the modern era with an unexpected error",
            "initialize follows, and the call succeeds",
            play!(|stage| {
                let fake = stage.fake().on_discover(Refusal::Error { code: -32000 });
                stage.open(&fake).await;
                stage.call().await
            }),
            "ok, ran 1",
        )
        .on("SMW")
        .in_era("l")
        .within(3_000),
        case(
            "F020",
            "a legacy server answers the probe for the modern era with 400 and no body",
            "initialize follows, and the call succeeds",
            play!(|stage| {
                let fault = status(400, "");
                let fake = stage.fake().fault_on(When::method("server/discover"), fault);
                stage.open(&fake).await;
                stage.call().await
            }),
            "ok, ran 1",
        )
        .on(WEB)
        .in_era("l")
        .within(3_000),
        case(
            "F021",
            "a server of version 2024-11-05 rejects POST with 405",
            "the HTTP+SSE transport is used",
            play!(|stage| {
                let net = stage.serve(&stage.fake()).await;
                stage.addresses.push(net.address());
                stage.open_at(at(&net.url())).await;
                stage.call().await
            }),
            "ok, ran 1",
        )
        .on("L")
        .in_era("l")
        .within(3_000),
        case(
            "F022",
            "the endpoint event of HTTP+SSE never arrives",
            "the connect timeout ends the start",
            play!(|stage| at_start(stage, When::default(), Fault::NoEndpoint, &["did not name an address"]).await),
            DOWN,
        )
        .on("L")
        .in_era("l")
        .within(4_000),
        case(
            "F023",
            "the endpoint event of HTTP+SSE names another origin",
            "refused, and the other origin gets no request",
            play!(|stage| {
                let other = stage.serve(&stage.fake()).await;
                let url = format!("http://{}/messages?session=SESSION", other.address());
                let outcome = at_start(
                    stage,
                    When::default(),
                    Fault::Endpoint { url },
                    &["nothing is sent there"],
                )
                .await;
                format!("{outcome}; {} requests there", other.requests().len())
            }),
            "refused unavailable, ran 0; 0 requests there",
        )
        .on("L")
        .in_era("l")
        .within(2_000),
        case(
            "F026",
            "a call is answered under another id",
            "the answer reaches no call; over HTTP it cannot belong to another call, so the call fails at once",
            play!(|stage| on_call(stage, Fault::WrongId).await),
            TIMEOUT,
        )
        .except("H2", "", UNREADABLE)
        .within(2_500),
        case(
            "F026b",
            "a call is answered under its id as a string",
            "the answer reaches no call",
            play!(|stage| on_call(stage, Fault::StringId).await),
            TIMEOUT,
        )
        .except("H2", "", UNREADABLE)
        .within(2_500),
        case(
            "F026c",
            "a call is answered under its id as a float",
            "the answer reaches no call",
            play!(|stage| on_call(stage, Fault::FloatId).await),
            TIMEOUT,
        )
        .except("H2", "", UNREADABLE)
        .within(2_500),
        case(
            "F026d",
            "a call is answered without an id",
            "the answer reaches no call",
            play!(|stage| on_call(stage, Fault::MissingId).await),
            TIMEOUT,
        )
        .except("H2", "", UNREADABLE)
        .within(2_500),
        case(
            "F026e",
            "a call is answered with a null id",
            "the answer reaches no call",
            play!(|stage| on_call(stage, Fault::NullId).await),
            TIMEOUT,
        )
        .except("H2", "", UNREADABLE)
        .within(2_500),
        case(
            "F026f",
            "the handshake is answered under another id",
            "unavailable within the connect timeout",
            play!(|stage| {
                let when = if stage.cell.era == case::Era::Legacy {
                    "initialize"
                } else {
                    "server/discover"
                };
                at_start(stage, When::method(when), Fault::WrongId, &[]).await
            }),
            DOWN,
        )
        .within(4_000),
        case(
            "F027",
            "the server speaks another era after a restart",
            "the era is detected again, and the next call uses it",
            play!(|stage| {
                let other = if stage.cell.era == case::Era::Legacy {
                    Era::Modern
                } else {
                    Era::Legacy
                };
                let dying = stage.fake().fault(Fault::DiesAfterExecuting { code: 1 });
                let fake = dying.then_after(1, stage.fake_of(other));
                stage.open_listed(&fake).await;
                two_calls(stage).await
            }),
            CUT,
        )
        .on("SMH2W")
        .within(3_000),
        case(
            "F028",
            "a call is answered with 401 without metadata",
            "the call did not run, and needs authentication",
            play!(|stage| {
                let fake = stage.fake().fault_on(When::tool("pay"), status(401, ""));
                stage.open_listed(&fake).await;
                let outcome = stage.call().await;
                let calls = stage.count("tools/call");
                format!("{outcome}; at most 3 rounds: {}", calls <= 3)
            }),
            "refused needs_auth, ran 0; at most 3 rounds: true",
        )
        .on(WEB)
        .within(2_000),
        case(
            "F028b",
            "the start is answered with 401",
            "the server waits for authentication",
            play!(|stage| {
                let fake = stage.fake().bearer("secret");
                stage.open(&fake).await;
                let outcome = stage.call().await;
                format!(
                    "{outcome}; {}",
                    if stage.status().state == State::NeedsAuth {
                        "needs_auth"
                    } else {
                        "not so"
                    }
                )
            }),
            "refused needs_auth, ran 0; needs_auth",
        )
        .on("H2LW")
        .within(2_000),
        case(
            "F029",
            "the server assigns a session id with invalid characters",
            "refused",
            play!(|stage| {
                let id = "no spaces allowed".to_owned();
                at_start(stage, When::default(), Fault::SessionId { id }, &["session"]).await
            }),
            DOWN,
        )
        .on(WEB)
        .in_era("l")
        .within(2_000),
        case(
            "F029b",
            "the answer to a call carries another session id",
            "the answer is not used, and a new session is opened",
            play!(|stage| {
                let id = "another".to_owned();
                let outcome = on_call(stage, Fault::SessionId { id }).await;
                format!("{outcome}; {} sessions", stage.count("initialize"))
            }),
            "lost internal, may have run, ran 1; then ok, ran 1; 2 sessions",
        )
        .on(WEB)
        .in_era("l")
        .within(2_000),
    ]
}
