//! Streamable HTTP in both eras.

use std::net::SocketAddr;

use pegboard_protocol::meta;
use pegboard_testkit::{
    Ask, Era, FakeServer, Fault, HttpStyle, NetHandle, Tool, When, refused_address, stalled_listener,
};
use serde_json::{Value, json};

use crate::wires::{
    lines::{LIMIT, call, initialize_params, modern, request},
    raw_http::{Reply, SHORT, post, send, try_post},
};

fn k8s() -> FakeServer {
    FakeServer::new("k8s").tool(Tool::new("get_pods").answers_text("pod-1"))
}

/// Starts the server and opens a legacy session.
async fn session(fake: FakeServer) -> (NetHandle, String) {
    let server = fake.serve_http().await.unwrap();
    let reply = post(
        server.address(),
        &[],
        &request(0, "initialize", initialize_params("2025-06-18")),
    )
    .await;
    let id = reply.header("mcp-session-id").expect("a session id").to_owned();
    (server, id)
}

async fn call_in(server: &NetHandle, session: &str) -> Option<Reply> {
    try_post(
        server.address(),
        &[("mcp-session-id", session)],
        &call(1, "get_pods", json!({})),
    )
    .await
}

async fn modern_post(address: SocketAddr, method: &str, params: Value) -> Reply {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    post(address, &headers, &request(1, method, modern(params))).await
}

#[tokio::test]
async fn a_legacy_session_lives_from_initialize_to_delete() {
    let (server, id) = session(k8s()).await;
    assert_eq!(server.sessions(), std::slice::from_ref(&id));
    let address = server.address();
    let with_id = [("mcp-session-id", id.as_str())];
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(address, &with_id, &note).await.status, 202);
    let answer = call_in(&server, &id).await.unwrap();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["result"]["content"][0]["text"], "pod-1");
    assert_eq!(
        post(address, &[], &request(2, "tools/list", json!({}))).await.status,
        400
    );
    assert_eq!(call_in(&server, "unknown").await.unwrap().status, 404);
    let wrong = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "1999-01-01")];
    assert_eq!(post(address, &wrong, &request(3, "ping", json!({}))).await.status, 400);
    assert_eq!(
        send(address, "DELETE /mcp", &with_id, "", LIMIT).await.unwrap().status,
        200
    );
    assert_eq!(call_in(&server, &id).await.unwrap().status, 404);
    assert_eq!(server.requests()[2].header("mcp-session-id"), Some(id.as_str()));
}

#[tokio::test]
async fn a_restarted_server_forgets_sessions_and_keeps_its_port() {
    let (server, id) = session(k8s()).await;
    server.restart().await.unwrap();
    assert_eq!(call_in(&server, &id).await.unwrap().status, 404);
    server.stop().await;
    assert!(call_in(&server, &id).await.is_none());
    assert_eq!(server.starts(), 2);
}

#[tokio::test]
async fn answers_come_as_events_when_the_script_says_so() {
    let (server, id) = session(k8s().streams()).await;
    let reply = call_in(&server, &id).await.unwrap();
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.events()[0]["id"], 1);
    assert!(reply.complete);
}

#[tokio::test]
async fn a_question_in_a_call_is_answered_by_another_post() {
    let (server, id) = session(FakeServer::new("asks").tool(Tool::new("get_pods").asks(Ask::Roots))).await;
    let (address, headers) = (server.address(), [("mcp-session-id", id.as_str())]);
    let answering = async {
        server.wait_for("tools/call", 1).await;
        let reply = json!({ "jsonrpc": "2.0", "id": "ask-roots/list-1", "result": { "roots": [] } });
        post(address, &headers, &reply).await
    };
    let (reply, answered) = tokio::join!(call_in(&server, &id), answering);
    assert_eq!(answered.status, 202);
    let events = reply.unwrap().events();
    assert_eq!(events[0]["method"], "roots/list");
    assert_eq!(events[1]["id"], 1);
}

#[tokio::test]
async fn a_get_stream_carries_notices() {
    let (server, id) = session(k8s()).await;
    let headers = [("mcp-session-id", id.as_str()), ("accept", "text/event-stream")];
    let notifying = async {
        server.wait_for("GET", 1).await;
        while server.listeners() == 0 {
            tokio::task::yield_now().await;
        }
        server.tools_changed().await;
    };
    let (reply, ()) = tokio::join!(send(server.address(), "GET /mcp", &headers, "", SHORT), notifying);
    assert_eq!(reply.unwrap().events()[0]["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_broken_stream_can_be_resumed() {
    let style = HttpStyle {
        event_ids: true,
        retry_ms: Some(50),
        ..HttpStyle::default()
    };
    let (server, id) = session(k8s().http(style).fault(Fault::StreamEndsEarly { resumable: true })).await;
    let reply = call_in(&server, &id).await.unwrap();
    assert!(reply.complete && reply.events().is_empty());
    assert!(reply.text().contains("retry: 50"));
    let event = reply
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("id: ").map(str::to_owned))
        .unwrap();
    let headers = [
        ("mcp-session-id", id.as_str()),
        ("accept", "text/event-stream"),
        ("last-event-id", event.as_str()),
    ];
    let resumed = send(server.address(), "GET /mcp", &headers, "", LIMIT).await.unwrap();
    assert_eq!(resumed.events()[0]["result"]["content"][0]["text"], "pod-1");
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_modern_server_has_no_sessions_and_checks_headers() {
    let server = k8s().era(Era::Modern).serve_http().await.unwrap();
    let address = server.address();
    let hello = modern_post(address, "server/discover", json!({})).await;
    assert_eq!((hello.status, hello.header("mcp-session-id")), (200, None));
    let answer = modern_post(address, "tools/call", json!({ "name": "get_pods" })).await;
    assert_eq!(answer.json()["result"]["resultType"], "complete");
    let unheaded = post(address, &[], &request(1, "tools/list", modern(json!({})))).await;
    assert_eq!(
        (unheaded.status, &unheaded.json()["error"]["code"]),
        (400, &json!(-32020))
    );
    assert_eq!(modern_post(address, "ping", json!({})).await.status, 404);
    let old = post(address, &[], &request(0, "initialize", initialize_params("2025-06-18"))).await;
    assert_eq!((old.status, &old.json()["error"]["code"]), (404, &json!(-32601)));
    let headers = [("accept", "text/event-stream")];
    assert_eq!(
        send(address, "GET /mcp", &headers, "", LIMIT).await.unwrap().status,
        405
    );
    let mut params = modern(json!({}));
    params["_meta"][meta::PROTOCOL_VERSION] = "2030-01-01".into();
    let headers = [("mcp-protocol-version", "2030-01-01"), ("mcp-method", "tools/list")];
    let newer = post(address, &headers, &request(1, "tools/list", params)).await;
    assert_eq!((newer.status, &newer.json()["error"]["code"]), (400, &json!(-32022)));
}

#[tokio::test]
async fn a_modern_subscription_is_acknowledged_and_heard() {
    let server = k8s().era(Era::Modern).serve_http().await.unwrap();
    let notifying = async {
        while server.listeners() == 0 {
            tokio::task::yield_now().await;
        }
        server.tools_changed().await;
    };
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let (reply, ()) = tokio::join!(modern_post(server.address(), "subscriptions/listen", params), notifying);
    let methods: Vec<_> = reply.events().iter().map(|event| event["method"].clone()).collect();
    assert_eq!(
        methods,
        [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed"
        ]
    );
    server.wait_for("$closed", 1).await;
}

#[tokio::test]
async fn a_legacy_server_turns_discovery_down_without_a_modern_word() {
    let server = k8s().serve_http().await.unwrap();
    let reply = modern_post(server.address(), "server/discover", json!({})).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32000)));
}

#[tokio::test]
async fn faulty_replies_are_faulty_in_their_own_way() {
    let reply_to = async |fault: Fault| {
        let (server, id) = session(k8s().fault_on(When::tool("get_pods"), fault)).await;
        call_in(&server, &id).await.unwrap()
    };
    let retry_after = vec![("retry-after".to_owned(), "7".to_owned())];
    let busy = reply_to(Fault::Status {
        status: 429,
        headers: retry_after,
        body: "slow down".into(),
    })
    .await;
    assert_eq!(
        (busy.status, busy.header("retry-after"), busy.text().as_str()),
        (429, Some("7"), "slow down")
    );
    let page = reply_to(Fault::HtmlPage).await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let odd = reply_to(Fault::WrongContentType {
        content_type: "text/plain".into(),
    })
    .await;
    assert_eq!(
        (odd.header("content-type"), &odd.json()["id"]),
        (Some("text/plain"), &json!(1))
    );
    let away = reply_to(Fault::Redirect {
        status: 307,
        to: "http://127.0.0.1:1/mcp".into(),
    })
    .await;
    assert_eq!(
        (away.status, away.header("location")),
        (307, Some("http://127.0.0.1:1/mcp"))
    );
    let cut = reply_to(Fault::ResetInBody).await;
    assert!(!cut.complete && !cut.body.is_empty() && serde_json::from_slice::<Value>(&cut.body).is_err());
    let torn = reply_to(Fault::ResetInStream).await;
    assert!(!torn.complete && torn.text().starts_with("event: message") && torn.events().is_empty());
    let early = reply_to(Fault::StreamEndsEarly { resumable: false }).await;
    assert!(early.complete && early.body.is_empty());
    let alive = reply_to(Fault::OnlyKeepAlive { every_ms: 20 }).await;
    assert!(!alive.complete && alive.text().starts_with(": still here"));
    let endless = reply_to(Fault::EndlessBody).await;
    assert!(!endless.complete && endless.body.len() > 1 << 20);
    let drip = reply_to(Fault::BodyDrip { every_ms: 50 }).await;
    assert!(!drip.complete && (1..30).contains(&drip.body.len()));
    let half = reply_to(Fault::CutThenEof).await;
    assert!(half.complete && serde_json::from_slice::<Value>(&half.body).is_err());
    assert_eq!(reply_to(Fault::SessionGone).await.status, 404);
    assert_eq!(reply_to(Fault::WrongId).await.json()["id"], 777_777);
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_refuses_connections_until_its_restart() {
    let (server, id) = session(k8s().fault_on(When::default().nth(1), Fault::DiesAfterExecuting { code: 1 })).await;
    assert!(call_in(&server, &id).await.is_none());
    server.died().await;
    assert!(
        try_post(server.address(), &[], &request(0, "ping", json!({})))
            .await
            .is_none()
    );
    server.restart().await.unwrap();
    assert_eq!(call_in(&server, &id).await.unwrap().status, 404);
}

#[tokio::test]
async fn a_bearer_token_is_asked_for() {
    let server = k8s().bearer("s3cret").serve_http().await.unwrap();
    let hello = request(0, "initialize", initialize_params("2025-06-18"));
    let refused = post(server.address(), &[], &hello).await;
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").is_some());
    assert_eq!(
        post(server.address(), &[("authorization", "Bearer s3cret")], &hello)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn nobody_listens_or_nobody_speaks() {
    let ping = request(0, "ping", json!({}));
    assert!(try_post(refused_address().await.unwrap(), &[], &ping).await.is_none());
    let (address, _guard) = stalled_listener().await.unwrap();
    assert!(send(address, "POST /mcp", &[], "", SHORT).await.is_none());
}
