//! Posted messages that come in parts, one behind the other, or mixed with other requests on one connection.

use serde_json::json;

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers},
    service::{Running, start, start_with},
};

/// The text of a request that calls a tool.
fn text_of_call(id: u64, tool: &str) -> String {
    let body = modern_call(id, tool);
    let mut text = "POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_owned();
    for (name, value) in modern_headers(tool) {
        text += &format!("{name}: {value}\r\n");
    }
    text + &format!("content-length: {}\r\n\r\n{body}", body.len())
}

async fn connect(server: &Running) -> Http {
    Http::connect(server.address).await
}

#[tokio::test]
async fn a_request_may_come_in_any_number_of_parts() {
    let server = start().await;
    let text = text_of_call(7, "echo");
    for size in [1, 7, 50, 200, text.len() - 1] {
        let mut http = connect(&server).await;
        // Twice, because what a head says is remembered.
        for _ in 0..2 {
            for part in text.as_bytes().chunks(size) {
                http.write(part).await;
                tokio::task::yield_now().await;
            }
            let response = http.response().await;
            assert_eq!(
                (response.status, response.json()["id"].as_u64()),
                (200, Some(7)),
                "{size}"
            );
        }
    }
}

#[tokio::test]
async fn requests_that_come_together_are_answered_in_order() {
    let server = start().await;
    let mut http = connect(&server).await;
    let texts: String = (1..=20).map(|id| text_of_call(id, "echo")).collect();
    http.write(texts.as_bytes()).await;
    for id in 1..=20 {
        assert_eq!(http.response().await.json()["id"], id);
    }
}

#[tokio::test]
async fn all_kinds_of_requests_may_share_a_connection() {
    let server = start().await;
    let mut http = connect(&server).await;
    let calls = async |http: &mut Http, id: u64| {
        let response = http
            .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(id, "echo"))
            .await;
        assert_eq!((response.status, response.json()["id"].as_u64()), (200, Some(id)));
    };
    calls(&mut http, 1).await;
    calls(&mut http, 2).await;
    assert_eq!(http.ask("GET", "/livez", &[], "").await.status, 200);
    calls(&mut http, 3).await;
    // A body without a length, right behind a request that has one.
    let mut http = connect(&server).await;
    let body = modern_call(5, "echo");
    let head = text_of_call(4, "echo");
    let length = format!("content-length: {}\r\n", modern_call(4, "echo").len());
    let (head, _) = head.split_at(head.find("\r\n\r\n").unwrap() + 4);
    let chunked = head.replace(&length, "transfer-encoding: chunked\r\n");
    let chunks = format!("{chunked}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    http.write((text_of_call(4, "echo") + &chunks).as_bytes()).await;
    assert_eq!(http.response().await.json()["id"], 4);
    assert_eq!(http.response().await.json()["id"], 5);
}

#[tokio::test]
async fn a_head_is_not_taken_for_another_one() {
    let server = start().await;
    let mut http = connect(&server).await;
    for _ in 0..2 {
        for (tool, named) in [
            ("echo", "echo"),
            ("echo", "wait"),
            ("echo", "echo2"),
            ("echo", "ech"),
            ("echo", "x"),
        ] {
            let response = http
                .ask("POST", "/mcp", &modern_headers(named), &modern_call(1, tool))
                .await;
            assert_eq!(response.status, if tool == named { 200 } else { 400 }, "{named}");
        }
        let refused = http
            .ask("POST", "/mcp", &[("host", "evil.example"), BOTH, JSON], "{}")
            .await;
        assert_eq!(refused.status, 403);
        let missing = http
            .ask("POST", "/mcp/none", &modern_headers("echo"), &modern_call(1, "echo"))
            .await;
        assert_eq!(missing.status, 404);
    }
}

#[tokio::test]
async fn two_lengths_are_no_request() {
    let server = start().await;
    let text = text_of_call(1, "echo").replace("\r\n\r\n", "\r\ncontent-length: 5\r\n\r\n");
    let mut http = connect(&server).await;
    http.write((text_of_call(1, "echo") + &text).as_bytes()).await;
    assert_eq!(http.response().await.status, 200);
    assert_eq!(http.response().await.status, 400);
}

#[tokio::test]
async fn a_stream_of_events_is_followed_by_the_next_response() {
    let server = start().await;
    let mut http = connect(&server).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    for number in 1..=3 {
        let params = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": number}});
        let message = crate::http::client::request(number, "tools/call", &params);
        let response = http.ask("POST", "/mcp", &headers, &message).await;
        assert!(response.is_events(), "{response:?}");
        while let Some(event) = http.event().await {
            assert!(event.id.is_some());
        }
        let response = http.ask("POST", "/mcp", &headers, &call(10, "echo")).await;
        assert_eq!(response.json()["id"], 10);
    }
}

/// The head of a call with a body of this length, none of which has come.
fn head_of_call(length: usize, from: &str, to: &str) -> String {
    let text = text_of_call(1, "echo");
    let (head, body) = text.split_at(text.find("\r\n\r\n").unwrap() + 4);
    let length = format!("content-length: {length}\r\n");
    head.replace(&format!("content-length: {}\r\n", body.len()), &length)
        .replace(from, to)
}

#[tokio::test]
async fn what_its_head_refuses_is_answered_before_its_body_comes() {
    let server = start_with(|builder| builder.max_body(1000)).await;
    for (length, from, to, status) in [
        (500, "host: localhost", "host: evil.example", 403),
        (500, JSON.1, "text/plain", 415),
        (500, BOTH.1, "text/html", 406),
        (1001, "", "", 413),
    ] {
        let mut http = connect(&server).await;
        http.write(head_of_call(length, from, to).as_bytes()).await;
        assert_eq!(http.response().await.status, status, "{to}");
        // The connection goes on when the body has come.
        http.write(&vec![b'x'; length]).await;
        let response = http
            .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(2, "echo"))
            .await;
        assert_eq!(
            (response.status, response.json()["id"].as_u64()),
            (200, Some(2)),
            "{to}"
        );
    }
}

#[tokio::test]
async fn a_refusal_before_the_body_has_come_is_that_after_it() {
    let origin = "https://app.example.com";
    let server = start_with(|builder| builder.origins([origin.to_owned()])).await;
    let text = text_of_call(1, "echo").replace("host: localhost", &format!("host: localhost\r\norigin: {origin}"));
    for (from, to, status) in [
        (JSON.1, "text/plain", 415),
        (BOTH.1, "text/html", 406),
        ("/mcp HTTP", "/mcp/none HTTP", 404),
    ] {
        let text = text.replace(from, to);
        let (head, body) = text.split_at(text.find("\r\n\r\n").unwrap() + 4);
        let (mut whole, mut split) = (connect(&server).await, connect(&server).await);
        whole.write(text.as_bytes()).await;
        split.write(head.as_bytes()).await;
        let (whole, early) = (whole.response().await, split.response().await);
        split.write(body.as_bytes()).await;
        assert_eq!((whole.status, early.status), (status, status), "{to}");
        let allowed = "access-control-allow-origin";
        assert_eq!((whole.header(allowed), early.header(allowed)), (origin, origin), "{to}");
    }
}

#[tokio::test]
async fn a_connection_whose_request_was_refused_may_rest_like_others() {
    let server = start().await;
    let mut http = connect(&server).await;
    http.write(head_of_call(500, JSON.1, "text/plain").as_bytes()).await;
    assert_eq!(http.response().await.status, 415);
    http.write(&[b'x'; 500]).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    // Longer than a head may take.
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    tokio::time::resume();
    let response = http
        .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(2, "echo"))
        .await;
    assert_eq!((response.status, response.json()["id"].as_u64()), (200, Some(2)));
}

#[tokio::test]
async fn a_head_that_has_not_come_holds_no_shutdown_up() {
    let server = start_with(|builder| builder.drain_time(std::time::Duration::from_secs(1000))).await;
    let mut http = connect(&server).await;
    http.write((text_of_call(1, "echo") + "POST /mcp HTTP/1.1\r\nhost: loc").as_bytes())
        .await;
    assert_eq!(http.response().await.status, 200);
    tokio::time::timeout(std::time::Duration::from_secs(30), server.stop())
        .await
        .unwrap();
}
