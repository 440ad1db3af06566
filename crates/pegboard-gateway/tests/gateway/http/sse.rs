//! HTTP+SSE of 2024-11-05.

use serde_json::json;

use crate::http::{
    client::{Http, JSON, call, request, text_of},
    door::token,
    service::{start, start_with},
};

#[tokio::test]
async fn messages_go_to_the_named_path_and_come_back_on_the_stream() {
    let server = start().await;
    let (mut stream, mut http) = (Http::connect(server.address).await, Http::connect(server.address).await);
    assert!(
        stream
            .ask("GET", "/sse", &[("accept", "text/event-stream")], "")
            .await
            .is_events()
    );
    let path = stream.event().await.unwrap().data;
    assert!(path.starts_with("/messages?session="), "{path}");
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(
        http.ask("POST", &path, &[JSON], &request(0, "initialize", &params))
            .await
            .status,
        202
    );
    let answer = stream.event().await.unwrap().json();
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    for tool in ["echo", "steps"] {
        assert_eq!(http.ask("POST", &path, &[JSON], &call(1, tool)).await.status, 202);
    }
    assert_eq!(text_of(&stream.event().await.unwrap().json()), "hello");
    for step in 1..=3 {
        assert_eq!(stream.event().await.unwrap().json()["params"]["step"], step);
    }
    assert_eq!(text_of(&stream.event().await.unwrap().json()), "stepped");
    server.stop().await;
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn closing_the_stream_ends_the_connection_and_its_calls() {
    let server = start().await;
    let (mut stream, mut http) = (Http::connect(server.address).await, Http::connect(server.address).await);
    stream.ask("GET", "/sse", &[], "").await;
    let path = stream.event().await.unwrap().data;
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    http.ask("POST", &path, &[JSON], &request(0, "initialize", &params))
        .await;
    stream.event().await.unwrap();
    http.ask("POST", &path, &[JSON], &call(1, "wait")).await;
    server.probe.until_waiting(1).await;
    drop(stream);
    server.probe.until_waiting(0).await;
    assert_eq!(http.ask("POST", &path, &[JSON], &call(2, "echo")).await.status, 404);
}

#[tokio::test]
async fn a_stream_takes_messages_of_its_own_token_only() {
    let server = start_with(|builder| builder.token(token("alice", "a")).token(token("bob", "b"))).await;
    let [alice, bob] = ["Bearer a", "Bearer b"].map(|token| ("authorization", token));
    let mut stream = Http::connect(server.address).await;
    stream.ask("GET", "/sse", &[alice], "").await;
    let path = stream.event().await.unwrap().data;
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for (who, status) in [(bob, 404), (alice, 202)] {
        let mut http = Http::connect(server.address).await;
        let sent = http
            .ask("POST", &path, &[JSON, who], &request(0, "initialize", &params))
            .await;
        assert_eq!(sent.status, status, "{who:?}");
    }
}

#[tokio::test]
async fn what_is_not_of_this_transport_is_refused() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    for (method, path, status) in [
        ("POST", "/sse", 405),
        ("GET", "/messages?session=x", 405),
        ("POST", "/messages", 400),
        ("POST", "/messages?session=x", 404),
        ("GET", "/other/sse", 404),
    ] {
        assert_eq!(
            http.ask(method, path, &[JSON], "{}").await.status,
            status,
            "{method} {path}"
        );
    }
    let response = http.ask("GET", "/sse", &[("accept", "application/json")], "").await;
    assert_eq!(response.status, 406);
}
