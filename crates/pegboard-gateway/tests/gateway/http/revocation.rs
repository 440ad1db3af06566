//! What a client has open ends with its token: when it is removed, when its rights change, and when it expires.

use std::time::{Duration, SystemTime};

use futures_util::{SinkExt, StreamExt};
use pegboard_gateway::Token;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::Instant};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::frame::coding::CloseCode},
};

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers, modern_meta, request, text_of},
    door::{ALICE, BOB, token},
    service::{Running, start, start_with},
    websocket::connect_with,
};

/// The limit on the time from the end of a token to the end of what was opened with it. Shorter than the time between two sweeps of sessions and
/// between two keep-alives, which would notice it too.
const SOON: Duration = Duration::from_secs(9);

async fn with(tokens: &[Token]) -> Running {
    start_with(|builder| {
        tokens
            .iter()
            .cloned()
            .fold(builder, |builder, token| builder.token(token))
    })
    .await
}

fn alice_and_bob() -> [Token; 2] {
    [token("alice", "pgb_alice"), token("bob", "pgb_bob")]
}

/// Everything that one client can have open.
struct Open {
    websocket: WebSocketStream<TcpStream>,
    /// The general stream of a legacy session, HTTP+SSE, and `subscriptions/listen`.
    streams: Vec<Http>,
    /// Modern and legacy calls that were not answered yet.
    calls: Vec<Http>,
}

/// The calls of [`Open`] that run, one of them without a client that waits.
const RUNNING: usize = 4;

impl Open {
    async fn by(server: &Running, token: (&'static str, &'static str)) -> Self {
        let running = server.probe.waiting.load(std::sync::atomic::Ordering::SeqCst);
        let mut websocket = connect_with(server, &[token]).await;
        websocket.send(Message::text(modern_call(1, "wait"))).await.unwrap();
        let mut http = Http::connect(server.address).await;
        let session = initialize(&mut http, "2025-11-25", &[token]).await;
        let legacy = [BOTH, JSON, ("mcp-session-id", &*session), token];
        let streams = vec![
            opened(server, "GET", "/mcp", &legacy, "").await,
            opened(server, "GET", "/sse", &[token], "").await,
            listening(server, token).await,
        ];
        // A call whose client has gone away, but could come back.
        let mut away = opened(server, "POST", "/mcp", &legacy, &call(1, "step_and_wait")).await;
        away.event().await.unwrap();
        let mut calls = Vec::new();
        for (headers, body) in [
            (&legacy[..], call(2, "wait")),
            (
                &[&modern_headers("wait")[..], &[token]].concat(),
                modern_call(3, "wait"),
            ),
        ] {
            let mut http = Http::connect(server.address).await;
            http.send("POST", "/mcp", headers, &body).await;
            calls.push(http);
        }
        server.probe.until_waiting(running + RUNNING).await;
        drop(away);
        Self {
            websocket,
            streams,
            calls,
        }
    }

    /// Everything ends with the token, and calls in flight are lost.
    async fn ends(mut self) {
        let started = Instant::now();
        let frame = self.websocket.next().await.unwrap().unwrap();
        is_lost(&serde_json::from_str(frame.to_text().unwrap()).unwrap());
        let frame = self.websocket.next().await.unwrap().unwrap();
        let Message::Close(Some(close)) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(close.code, CloseCode::Policy);
        for stream in &mut self.streams {
            assert_eq!(stream.event().await, None);
        }
        for call in &mut self.calls {
            let response = call.response().await;
            assert_eq!(response.status, 200);
            is_lost(&response.json());
        }
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    }

    /// Calls in flight outlast the time of the token, and the rest ends.
    async fn outlasts(mut self, server: &Running) {
        for stream in &mut self.streams {
            assert_eq!(stream.event().await, None);
        }
        server.probe.until_waiting(RUNNING).await;
        server.probe.release.notify_waiters();
        let frame = self.websocket.next().await.unwrap().unwrap();
        assert_eq!(
            text_of(&serde_json::from_str(frame.to_text().unwrap()).unwrap()),
            "released"
        );
        let frame = self.websocket.next().await.unwrap().unwrap();
        let Message::Close(Some(close)) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(close.code, CloseCode::Policy);
        for call in &mut self.calls {
            assert_eq!(call.response().await.text(), "released");
        }
    }
}

fn is_lost(answer: &Value) {
    assert_eq!(answer["error"]["code"], -32010, "{answer}");
    let data = json!({"may_have_executed": true, "reason": "token_withdrawn"});
    assert_eq!(answer["error"]["data"], data);
}

/// Sends a request whose response is a stream.
async fn opened(server: &Running, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Http {
    let mut http = Http::connect(server.address).await;
    let response = http.ask(method, path, headers, body).await;
    assert!(response.is_events(), "{response:?}");
    // The first event names the path for messages.
    if path == "/sse" {
        http.event().await.unwrap();
    }
    http
}

async fn listening(server: &Running, token: (&str, &str)) -> Http {
    let method = ("mcp-method", "subscriptions/listen");
    let headers = [BOTH, JSON, ("mcp-protocol-version", "2026-07-28"), method, token];
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": modern_meta()});
    let body = request(1, "subscriptions/listen", &params);
    let mut http = opened(server, "POST", "/mcp", &headers, &body).await;
    let event = http.event().await.unwrap().json();
    assert_eq!(event["method"], "notifications/subscriptions/acknowledged");
    http
}

#[tokio::test]
async fn what_a_removed_token_has_open_ends_and_nothing_else() {
    let server = with(&alice_and_bob()).await;
    let alice = Open::by(&server, ALICE).await;
    let mut bob = Open::by(&server, BOB).await;
    assert_eq!(server.gateway.open_sessions(), 2);
    assert!(server.gateway.set_tokens(vec![token("bob", "pgb_bob")], true));
    alice.ends().await;
    server.probe.until_waiting(RUNNING).await;
    assert_eq!(server.gateway.open_sessions(), 1);
    server.probe.release.notify_waiters();
    assert!(matches!(bob.websocket.next().await, Some(Ok(Message::Text(_)))));
    for call in &mut bob.calls {
        assert_eq!(call.response().await.status, 200);
    }
    for stream in &mut bob.streams[..1] {
        server.probe.events.send(pegboard_gateway::Event::ToolsChanged).unwrap();
        assert!(stream.event().await.is_some());
    }
}

#[tokio::test]
async fn a_token_that_is_narrowed_to_a_view_loses_what_it_has_open() {
    let server = with(&alice_and_bob()).await;
    let alice = Open::by(&server, ALICE).await;
    let narrowed = token("alice", "pgb_alice").view("coding");
    assert!(server.gateway.set_tokens(vec![narrowed], true));
    alice.ends().await;
    server.probe.until_waiting(0).await;
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires() {
    for seconds in [1, 4] {
        let expires = SystemTime::now() + Duration::from_secs(seconds);
        let server = with(&[token("alice", "pgb_alice").expires(expires)]).await;
        let mut http = Http::connect(server.address).await;
        if http.ask("GET", "/sse", &[ALICE], "").await.status == 401 {
            // The machine is so busy that the token has expired already.
            continue;
        }
        assert!(http.event().await.is_some());
        assert_eq!(http.event().await, None);
        assert!(SystemTime::now() >= expires);
        return;
    }
    panic!("no stream could be opened in time");
}

#[tokio::test]
async fn calls_outlast_a_token_that_expires_and_nothing_else_does() {
    let server = with(&alice_and_bob()).await;
    let alice = Open::by(&server, ALICE).await;
    let expires = SystemTime::now() + Duration::from_millis(200);
    let sooner = token("alice", "pgb_alice").expires(expires);
    assert!(server.gateway.set_tokens(vec![sooner], true));
    alice.outlasts(&server).await;
    assert!(SystemTime::now() >= expires);
    let mut http = Http::connect(server.address).await;
    let headers = [&modern_headers("echo")[..], &[ALICE]].concat();
    let response = http.ask("POST", "/mcp", &headers, &modern_call(9, "echo")).await;
    assert_eq!(response.status, 401);
}

#[tokio::test]
async fn the_first_token_ends_what_was_open_without_one() {
    let server = start().await;
    let anyone = Open::by(&server, ("x-nothing", "")).await;
    assert!(server.gateway.set_tokens(alice_and_bob().to_vec(), true));
    anyone.ends().await;
    server.probe.until_waiting(0).await;
}

#[tokio::test]
async fn a_call_that_waits_for_the_client_ends_with_the_token() {
    let server = with(&alice_and_bob()).await;
    let headers = [&modern_headers("ask_and_wait")[..], &[ALICE]].concat();
    let mut http = Http::connect(server.address).await;
    let response = http
        .ask("POST", "/mcp", &headers, &modern_call(1, "ask_and_wait"))
        .await;
    assert_eq!(response.json()["result"]["resultType"], "input_required");
    server.probe.until_waiting(1).await;
    assert!(server.gateway.set_tokens(vec![token("bob", "pgb_bob")], true));
    server.probe.until_waiting(0).await;
}
