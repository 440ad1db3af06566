//! Cases on streamable HTTP.

use http::{HeaderName, HeaderValue};
use pegboard_protocol::{
    Era, header,
    method::{self, notification},
};
use serde_json::json;

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    http::HttpTarget,
    stop::{Stop, ensure, fail, skip},
};

const GROUP: &str = "http";
const HTTP: Spec = Spec::Each("basic/transports#streamable-http", "basic/transports/streamable-http");

pub(super) const CASES: &[Case] = &[
    Case {
        id: "origin",
        group: GROUP,
        title: "a request with a foreign Origin is refused",
        applies: Applies::Http,
        spec: HTTP,
        mend: "check the Origin header and answer a foreign one with 403, so that web pages cannot use the server (DNS rebinding)",
        run: |bench| Box::pin(origin(bench)),
    },
    Case {
        id: "unknown-session",
        group: GROUP,
        title: "an unknown session id gets status 404",
        applies: Applies::Http,
        spec: HTTP,
        mend: "answer requests with an unknown `Mcp-Session-Id` with 404, so that clients begin a new session",
        run: |bench| Box::pin(unknown_session(bench)),
    },
    Case {
        id: "accepted",
        group: GROUP,
        title: "a notification gets status 202 without a body",
        applies: Applies::Http,
        spec: HTTP,
        mend: "answer a POST of a notification with 202 (accepted) and no body",
        run: |bench| Box::pin(accepted(bench)),
    },
];

fn endpoint<'a>(bench: &Bench<'a>) -> Result<&'a HttpTarget, Stop> {
    match bench.target.endpoint() {
        Some(target) => Ok(target),
        None => skip("the server is reached over stdio"),
    }
}

/// Posts a message with more headers and returns the status.
async fn status(bench: &Bench<'_>, body: String, headers: &[(&str, &str)]) -> Result<u16, Stop> {
    bench.transcript.record_sent(&format!("{headers:?} {body}"));
    let header =
        |(name, value): &(&str, &str)| Some((HeaderName::try_from(*name).ok()?, HeaderValue::from_str(value).ok()?));
    let posting = endpoint(bench)?.post(body, headers.iter().filter_map(header).collect());
    let Ok(sent) = tokio::time::timeout(bench.wait, posting).await else {
        return fail(format!("there was no response within {} s", bench.wait.as_secs_f32()));
    };
    match sent {
        Ok(response) => {
            bench.transcript.record_received(&format!("HTTP {}", response.status()));
            Ok(response.status().as_u16())
        }
        Err(error) => fail(error.to_string()),
    }
}

async fn origin(bench: &Bench<'_>) -> Result<(), Stop> {
    let client = bench.connect().await?;
    let (method, params) = match bench.era {
        Era::Modern => (method::SERVER_DISCOVER, json!({})),
        Era::Legacy => (
            method::INITIALIZE,
            json!({"protocolVersion": bench.era.latest_version().as_str(), "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        ),
    };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": client.with_meta(params)});
    let headers = [
        ("origin", "https://evil.example"),
        (header::PROTOCOL_VERSION, bench.era.latest_version().as_str()),
        (header::METHOD, method),
    ];
    let status = status(bench, body.to_string(), &headers).await?;
    ensure(status == 403 || status == 401, || {
        format!("a request from https://evil.example got status {status} in place of 403")
    })
}

async fn unknown_session(bench: &Bench<'_>) -> Result<(), Stop> {
    if bench.era == Era::Modern {
        return skip("there are no sessions in this era");
    }
    let client = bench.session().await?;
    if client.session_id().is_none() {
        return skip("the server assigns no session ids");
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method::PING, "params": {}});
    let headers = [
        (header::SESSION_ID, "no-such-session"),
        (header::PROTOCOL_VERSION, bench.era.latest_version().as_str()),
    ];
    let status = status(bench, body.to_string(), &headers).await?;
    ensure(status == 404, || {
        format!("an unknown session id got status {status} in place of 404")
    })
}

async fn accepted(bench: &Bench<'_>) -> Result<(), Stop> {
    if bench.era == Era::Modern {
        return skip("clients send no notifications over HTTP in this era");
    }
    let client = bench.session().await?;
    let body = json!({"jsonrpc": "2.0", "method": notification::INITIALIZED});
    let id = client.session_id();
    let mut headers = vec![(header::PROTOCOL_VERSION, bench.era.latest_version().as_str())];
    headers.extend(id.as_deref().map(|id| (header::SESSION_ID, id)));
    let status = status(bench, body.to_string(), &headers).await?;
    ensure(status == 202, || {
        format!("a notification got status {status} in place of 202")
    })
}
