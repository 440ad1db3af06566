//! The legacy era: sessions, their streams, questions and their end.

use pegboard_gateway::Event;
use serde_json::json;

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, request, text_of},
    service::{start, start_with},
};

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let id = initialize(&mut http, version, &[]).await;
        assert_eq!(id.find('.'), Some(32), "a secret, and what was settled");
        let headers = [BOTH, JSON, ("mcp-session-id", &*id), ("mcp-protocol-version", version)];
        let response = http.ask("POST", "/mcp", &headers, &call(1, "echo")).await;
        assert_eq!(response.text(), "hello");
        assert_eq!(server.gateway.open_sessions(), 1);
        assert_eq!(http.ask("DELETE", "/mcp", &headers, "").await.status, 204);
        assert_eq!(server.gateway.open_sessions(), 0);
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        for (method, body) in [
            ("POST", &*call(2, "echo")),
            ("POST", &notification),
            ("GET", ""),
            ("DELETE", ""),
        ] {
            assert_eq!(http.ask(method, "/mcp", &headers, body).await.status, 404, "{method}");
        }
    }
}

#[tokio::test]
async fn a_session_id_must_be_exact_and_the_version_a_supported_one() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-06-18", &[]).await;
    let body = call(1, "echo");
    let upper = id.to_uppercase();
    let longer = format!("{id}0");
    for wrong in [&*upper, &longer, &id[1..], "", "00000000000000000000000000000000"] {
        if wrong == id {
            continue;
        }
        let response = http
            .ask("POST", "/mcp", &[BOTH, JSON, ("mcp-session-id", wrong)], &body)
            .await;
        assert_eq!(response.status, 404, "{wrong}");
        assert!(!String::from_utf8_lossy(&response.body).contains(&id));
    }
    let session = ("mcp-session-id", &*id);
    assert_eq!(
        http.ask("POST", "/mcp", &[BOTH, JSON, session, session], &body)
            .await
            .status,
        404
    );
    assert_eq!(http.ask("POST", "/mcp", &[BOTH, JSON], &body).await.status, 400);
    for (version, status) in [("2025-06-18", 200), ("2025-11-25", 200), ("2020-01-01", 400)] {
        let headers = [BOTH, JSON, session, ("mcp-protocol-version", version)];
        assert_eq!(
            http.ask("POST", "/mcp", &headers, &body).await.status,
            status,
            "{version}"
        );
    }
}

#[tokio::test]
async fn the_general_stream_carries_events_and_ends_with_the_session() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, ("mcp-session-id", &*id)];
    let mut stream = Http::connect(server.address).await;
    assert!(stream.ask("GET", "/mcp", &headers, "").await.is_events());
    server.probe.events.send(Event::ToolsChanged).unwrap();
    let event = stream.event().await.unwrap();
    assert_eq!(event.json()["method"], "notifications/tools/list_changed");
    assert!(event.id.is_some());
    let response = http
        .ask("GET", "/mcp", &[("accept", "application/json"), headers[1]], "")
        .await;
    assert_eq!(response.status, 406);
    assert_eq!(http.ask("DELETE", "/mcp", &headers, "").await.status, 204);
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn a_question_is_asked_on_the_stream_of_its_request() {
    let server = start().await;
    let (mut http, mut answering) = (Http::connect(server.address).await, Http::connect(server.address).await);
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    assert!(http.ask("POST", "/mcp", &headers, &call(1, "ask")).await.is_events());
    let primed = http.event().await.unwrap();
    assert_eq!(primed.data, "");
    assert!(primed.id.is_some());
    let question = http.event().await.unwrap().json();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}).to_string();
    assert_eq!(answering.ask("POST", "/mcp", &headers, &answer).await.status, 202);
    let result = http.event().await.unwrap().json();
    assert!(text_of(&result).contains("decline"), "{result}");
    assert_eq!(http.event().await, None);
}

#[tokio::test]
async fn a_json_request_whose_connection_closes_is_cancelled_at_once() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    http.send("POST", "/mcp", &headers, &call(1, "wait")).await;
    server.probe.until_waiting(1).await;
    drop(http);
    server.probe.until_waiting(0).await;
}

#[tokio::test]
async fn delete_frees_the_calls_of_the_session() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    let mut waiting = Vec::new();
    for (number, tool) in [(1, "wait"), (2, "step_and_wait")] {
        let mut call_http = Http::connect(server.address).await;
        call_http.send("POST", "/mcp", &headers, &call(number, tool)).await;
        waiting.push(call_http);
    }
    server.probe.until_waiting(2).await;
    assert_eq!(http.ask("DELETE", "/mcp", &headers, "").await.status, 204);
    server.probe.until_waiting(0).await;
    // The one whose response has not begun is told why, and that it may have run.
    let response = waiting[0].response().await;
    assert_eq!((response.status, response.json()["id"].as_i64()), (200, Some(1)));
    let error = response.json()["error"].clone();
    assert_eq!(
        (error["code"].as_i64(), &error["data"]),
        (
            Some(-32010),
            &json!({"may_have_executed": true, "reason": "session_ended"})
        )
    );
}

#[tokio::test]
async fn a_cancelled_request_gets_no_response_message() {
    let server = start().await;
    let (mut http, mut other) = (Http::connect(server.address).await, Http::connect(server.address).await);
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    http.send("POST", "/mcp", &headers, &call(7, "wait")).await;
    server.probe.until_waiting(1).await;
    let params = json!({"requestId": 7});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string();
    assert_eq!(other.ask("POST", "/mcp", &headers, &cancel).await.status, 202);
    assert_eq!(http.response().await.status, 202);
    server.probe.until_waiting(0).await;
}

#[tokio::test]
async fn batches_work_in_their_one_version() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let batch = |tools: &[&str]| {
        let calls: Vec<_> = (1..).zip(tools).map(|(id, tool)| call(id, tool)).collect();
        format!("[{}]", calls.join(","))
    };
    let id = initialize(&mut http, "2025-03-26", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    let response = http
        .ask("POST", "/mcp", &headers, &batch(&["echo", "none", "who"]))
        .await;
    let mut answers = response.json().as_array().unwrap().clone();
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(text_of(&answers[0]), "hello");
    assert_eq!(answers[1]["error"]["code"], -32602);
    assert_eq!(answers.len(), 3);
    let response = http.ask("POST", "/mcp", &headers, &batch(&["echo", "steps"])).await;
    assert!(response.is_events());
    let mut ids = Vec::new();
    while let Some(event) = http.event().await {
        ids.extend(event.json()["id"].as_i64());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    let response = http.ask("POST", "/mcp", &headers, &batch(&["echo"])).await;
    assert_eq!(
        (response.status, response.json()["error"]["code"].as_i64()),
        (400, Some(-32600))
    );
}

#[tokio::test]
async fn a_call_that_a_limit_refuses_is_an_error_that_the_session_survives() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    let response = http.ask("POST", "/mcp", &headers, &call(1, "busy")).await;
    // Clients of this era take any other status for the end of the session.
    assert_eq!((response.status, response.header("retry-after")), (200, "7"));
    assert_eq!(response.json()["error"]["code"], -32000);
    let response = http.ask("POST", "/mcp", &headers, &call(2, "echo")).await;
    assert_eq!(response.text(), "hello");
}

#[tokio::test]
async fn sessions_are_bounded_in_number() {
    let server = start_with(|builder| builder.max_sessions(2)).await;
    let mut http = Http::connect(server.address).await;
    initialize(&mut http, "2025-11-25", &[]).await;
    initialize(&mut http, "2025-11-25", &[]).await;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let response = http
        .ask("POST", "/mcp", &[BOTH, JSON], &request(1, "initialize", &params))
        .await;
    assert_eq!((response.status, response.header("retry-after")), (503, "1"));
    assert_eq!(response.json()["error"]["code"], -32000);
    assert_eq!(server.gateway.open_sessions(), 2);
}
