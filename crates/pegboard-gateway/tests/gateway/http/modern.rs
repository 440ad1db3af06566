//! The modern era: no session, headers that repeat the body, and closing cancels.

use serde_json::json;

use crate::http::{
    client::{BOTH, Http, JSON, call, modern_call, modern_headers, modern_meta, request, text_of},
    service::start,
};

#[tokio::test]
async fn a_result_that_comes_first_is_json() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    for id in 1..=3 {
        let response = http
            .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(id, "echo"))
            .await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, "application/json")
        );
        assert_eq!(response.json()["id"], id);
        assert_eq!(response.text(), "hello");
        assert_eq!(response.header("mcp-session-id"), "");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_notification_makes_it_an_event_stream() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let response = http
        .ask("POST", "/mcp", &modern_headers("steps"), &modern_call(1, "steps"))
        .await;
    assert!(response.is_events(), "{response:?}");
    for step in 1..=3 {
        let event = http.event().await.unwrap();
        assert_eq!(event.json()["params"]["step"], step);
        assert_eq!(event.id, None, "a modern stream cannot be resumed");
    }
    assert_eq!(text_of(&http.event().await.unwrap().json()), "stepped");
    assert_eq!(http.event().await, None);
}

#[tokio::test]
async fn a_client_that_accepts_one_kind_gets_that_kind() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let only = |kind| {
        let mut headers = modern_headers("steps");
        headers[0] = ("accept", kind);
        headers
    };
    let response = http
        .ask("POST", "/mcp", &only("application/json"), &modern_call(1, "steps"))
        .await;
    assert_eq!(response.text(), "stepped");
    let response = http
        .ask("POST", "/mcp", &only("text/html"), &modern_call(1, "steps"))
        .await;
    assert_eq!(response.status, 406);
    let mut headers = modern_headers("echo");
    headers[0] = ("accept", "text/event-stream");
    let response = http.ask("POST", "/mcp", &headers, &modern_call(1, "echo")).await;
    assert!(response.is_events());
    assert_eq!(text_of(&http.event().await.unwrap().json()), "hello");
}

#[tokio::test]
async fn closing_the_connection_cancels_the_call_at_once() {
    let server = start().await;
    for tool in ["wait", "step_and_wait"] {
        let mut http = Http::connect(server.address).await;
        http.send("POST", "/mcp", &modern_headers(tool), &modern_call(1, tool))
            .await;
        server.probe.until_waiting(1).await;
        drop(http);
        server.probe.until_waiting(0).await;
    }
}

#[tokio::test]
async fn errors_have_the_status_that_the_version_says() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let meta = modern_meta();
    let bare = json!({"name": "echo", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    let unknown = json!({"name": "echo", "_meta": {"io.modelcontextprotocol/protocolVersion": "v999"}});
    let call = |params: &serde_json::Value| request(1, "tools/call", params);
    let named = modern_headers("echo");
    let mut other_name = named;
    other_name[4].1 = "other";
    let mut other_version = named;
    other_version[2].1 = "2025-11-25";
    let mut unknown_version = named;
    unknown_version[2].1 = "v999";
    let mut initialize = named;
    initialize[3].1 = "initialize";
    let mut nothing = named;
    nothing[3].1 = "test/nothing";
    for (headers, body, status, code) in [
        (&named[..], call(&json!({"name": "echo", "_meta": meta})), 200, None),
        (&named, call(&json!({"name": "echo"})), 400, Some(-32602)),
        (&named, call(&bare), 400, Some(-32602)),
        (
            &other_name,
            call(&json!({"name": "echo", "_meta": meta})),
            400,
            Some(-32020),
        ),
        (
            &other_version,
            call(&json!({"name": "echo", "_meta": meta})),
            400,
            Some(-32020),
        ),
        (&unknown_version, call(&unknown), 400, Some(-32022)),
        (&unknown_version, call(&json!({"name": "echo"})), 400, Some(-32022)),
        (
            &initialize,
            request(1, "initialize", &json!({"_meta": meta})),
            404,
            Some(-32601),
        ),
        (
            &nothing,
            request(1, "test/nothing", &json!({"_meta": meta})),
            404,
            Some(-32601),
        ),
        (&named, "{".to_owned(), 400, Some(-32700)),
        (&named, "[]".to_owned(), 400, Some(-32600)),
    ] {
        let response = http.ask("POST", "/mcp", headers, &body).await;
        let answer = response.json();
        assert_eq!(response.status, status, "{body}: {answer}");
        assert_eq!(answer["error"]["code"].as_i64(), code, "{body}: {answer}");
    }
    let busy = modern_headers("busy");
    let response = http.ask("POST", "/mcp", &busy, &modern_call(1, "busy")).await;
    assert_eq!((response.status, response.header("retry-after")), (429, "7"));
}

#[tokio::test]
async fn only_post_and_json_work_without_a_session() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    for method in ["GET", "DELETE", "PUT"] {
        let response = http.ask(method, "/mcp", &[BOTH], "").await;
        assert_eq!(response.status, 405, "{method}");
        assert!(response.header("allow").contains("POST"), "{method}");
    }
    for kind in ["text/plain", "application/jsonx", "application/x-www-form-urlencoded"] {
        let headers = [BOTH, ("content-type", kind)];
        assert_eq!(
            http.ask("POST", "/mcp", &headers, &call(1, "echo")).await.status,
            415,
            "{kind}"
        );
    }
    let response = http.ask("POST", "/mcp", &[BOTH], &call(1, "echo")).await;
    assert_eq!(response.status, 415);
    let response = http.ask("POST", "/mcp", &[BOTH, JSON], &call(1, "echo")).await;
    assert_eq!(response.status, 400, "{response:?}");
    for path in ["/", "/mcp/server", "/mcp/view/x", "/server/sse", "/nothing"] {
        assert_eq!(
            http.ask("POST", path, &[BOTH, JSON], &call(1, "echo")).await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(http.ask("GET", "/livez", &[], "").await.status, 200);
}

#[tokio::test]
async fn shutdown_answers_what_is_in_flight_and_ends_subscriptions() {
    let server = start().await;
    let mut waiting = Http::connect(server.address).await;
    waiting
        .send("POST", "/mcp", &modern_headers("wait"), &modern_call(1, "wait"))
        .await;
    server.probe.until_waiting(1).await;
    let mut listening = Http::connect(server.address).await;
    let mut headers = modern_headers("");
    headers[3].1 = "subscriptions/listen";
    let params = json!({"_meta": modern_meta(), "notifications": {"toolsListChanged": true}});
    let body = request(2, "subscriptions/listen", &params);
    let response = listening.ask("POST", "/mcp", &headers[..4], &body).await;
    assert!(response.is_events(), "{response:?}");
    let acknowledged = listening.event().await.unwrap().json();
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
    let release = server.probe.release.clone();
    let stopped = tokio::spawn(server.stop());
    while listening.event().await.is_some() {}
    release.notify_waiters();
    assert_eq!(waiting.response().await.text(), "released");
    stopped.await.unwrap();
}
