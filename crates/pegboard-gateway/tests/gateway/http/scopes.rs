//! What a token may do: every wire and era asks for the scope that a request needs.

use futures_util::SinkExt;
use pegboard_gateway::{Scope, Token};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers, modern_meta, request},
    door::token,
    service::{Running, start_with},
    websocket::{connect_with, next},
};

const READER: (&str, &str) = ("authorization", "Bearer pgb_reader");
const RUNNER: (&str, &str) = ("authorization", "Bearer pgb_runner");
const ADMIN: (&str, &str) = ("authorization", "Bearer pgb_admin");
const CLIENT: (&str, &str) = ("authorization", "Bearer pgb_client");

async fn server() -> Running {
    let with = |name: &str, scope| token(name, &format!("pgb_{name}")).scopes([scope].into_iter().collect());
    let tokens: [Token; 4] = [
        with("reader", Scope::Read),
        with("runner", Scope::Call),
        with("admin", Scope::Admin),
        token("client", "pgb_client"),
    ];
    start_with(|builder| tokens.into_iter().fold(builder, |builder, token| builder.token(token))).await
}

/// What a message says of a call and of a listing: `true` if the scope allows it. The service knows no listing, which is another error.
fn is_allowed(message: &Value) -> bool {
    let code = message["error"]["code"].as_i64();
    if code == Some(-32011) {
        let text = message["error"]["message"].as_str().unwrap();
        let scope = message["error"]["data"]["scope"].as_str().unwrap();
        assert!(text.contains(&format!("lacks the scope `{scope}`")), "{message}");
    }
    code != Some(-32011)
}

const CASES: [((&str, &str), bool, bool); 4] = [
    (READER, true, false),
    (RUNNER, false, true),
    (ADMIN, false, false),
    (CLIENT, true, true),
];

fn list(id: u64) -> String {
    request(id, "tools/list", &json!({"_meta": modern_meta()}))
}

#[tokio::test]
async fn a_modern_request_needs_its_scope() {
    let server = server().await;
    let mut http = Http::connect(server.address).await;
    for (token, lists, calls) in CASES {
        let headers = [&modern_headers("echo")[..], &[token]].concat();
        let response = http.ask("POST", "/mcp", &headers, &modern_call(1, "echo")).await;
        assert_eq!(is_allowed(&response.json()), calls, "{token:?}");
        assert_eq!(response.status, if calls { 200 } else { 403 });
        let method = ("mcp-method", "tools/list");
        let headers = [BOTH, JSON, ("mcp-protocol-version", "2026-07-28"), method, token];
        let response = http.ask("POST", "/mcp", &headers, &list(2)).await;
        assert_eq!(is_allowed(&response.json()), lists, "{token:?}");
    }
}

#[tokio::test]
async fn a_request_of_a_session_needs_its_scope() {
    let server = server().await;
    let mut http = Http::connect(server.address).await;
    for (token, lists, calls) in CASES {
        let session = initialize(&mut http, "2025-11-25", &[token]).await;
        let headers = [BOTH, JSON, ("mcp-session-id", &*session), token];
        for (body, allowed) in [
            (call(1, "echo"), calls),
            (request(2, "tools/list", &json!({})), lists),
            (request(3, "tasks/list", &json!({})), calls),
            (request(4, "vendor/run", &json!({})), calls),
            (request(5, "ping", &json!({})), true),
        ] {
            let response = http.ask("POST", "/mcp", &headers, &body).await;
            assert_eq!(response.status, 200, "a legacy client keeps its session");
            assert_eq!(is_allowed(&response.json()), allowed, "{token:?} {body}");
        }
    }
}

#[tokio::test]
async fn a_message_of_a_batch_needs_its_scope() {
    let server = server().await;
    let mut http = Http::connect(server.address).await;
    let session = initialize(&mut http, "2025-03-26", &[READER]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*session), READER];
    let batch = format!("[{},{}]", call(1, "echo"), request(2, "tools/list", &json!({})));
    let answers = http.ask("POST", "/mcp", &headers, &batch).await.json();
    for answer in answers.as_array().unwrap() {
        assert_eq!(is_allowed(answer), answer["id"] == 2, "{answer}");
    }
}

#[tokio::test]
async fn a_message_on_a_websocket_needs_its_scope() {
    let server = server().await;
    for (token, lists, calls) in CASES {
        let mut socket = connect_with(&server, &[token]).await;
        for (message, allowed) in [(modern_call(1, "echo"), calls), (list(2), lists)] {
            socket.send(Message::text(message)).await.unwrap();
            assert_eq!(is_allowed(&next(&mut socket).await.unwrap()), allowed, "{token:?}");
        }
    }
}

#[tokio::test]
async fn a_message_on_an_sse_stream_needs_its_scope() {
    let server = server().await;
    for (token, lists, calls) in CASES {
        let (mut stream, mut http) = (Http::connect(server.address).await, Http::connect(server.address).await);
        stream.ask("GET", "/sse", &[token], "").await;
        let path = stream.event().await.unwrap().data;
        for (message, allowed) in [(modern_call(1, "echo"), calls), (list(2), lists)] {
            http.ask("POST", &path, &[JSON, token], &message).await;
            let answer = stream.event().await.unwrap().json();
            assert_eq!(is_allowed(&answer), allowed, "{token:?} {answer}");
        }
    }
}

#[tokio::test]
async fn a_token_that_loses_a_scope_loses_what_it_has_open() {
    let server = server().await;
    let mut socket = connect_with(&server, &[CLIENT]).await;
    socket.send(Message::text(modern_call(1, "wait"))).await.unwrap();
    server.probe.until_waiting(1).await;
    let narrowed = token("client", "pgb_client").scopes([Scope::Read].into_iter().collect());
    assert!(server.gateway.set_tokens(vec![narrowed], true));
    server.probe.until_waiting(0).await;
    let lost = next(&mut socket).await.unwrap();
    assert_eq!(lost["error"]["data"]["may_have_executed"], true, "{lost}");
    assert_eq!(next(&mut socket).await, None);
}
