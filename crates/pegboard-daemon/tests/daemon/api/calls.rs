//! Calls: what their replies say, and what becomes of them.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::api::fixture::{API, Fixture, PATIENCE, Who, json as parsed, read};

#[tokio::test]
async fn the_status_says_how_a_call_ended_and_the_body_is_always_the_reply() {
    let fixture = Fixture::open("").await;
    for (body, status, kind) in [
        (r#"{"name": "fx.read", "id": "7"}"#, 200, "ok"),
        (r#"{"name": "fx__read", "arguments": {}}"#, 200, "ok"),
        (r#"{"name": "fx.add", "arguments": "{\"a\": 3}"}"#, 200, "ok"),
        (r#"{"name": "fx.add", "arguments": "three"}"#, 422, "invalid_arguments"),
        (r#"{"name": "fx.fail"}"#, 200, "tool_error"),
        (r#"{"name": "fx.nothing_like_it"}"#, 404, "unknown_tool"),
        (r#"{"name": "fx.add"}"#, 422, "invalid_arguments"),
        (r#"{"name": "fx.mute", "timeout_ms": 50}"#, 504, "timeout"),
        (
            r#"{"name": "fx.read", "selection": {"servers": [{"name": "nobody"}]}}"#,
            403,
            "not_permitted",
        ),
        (r#"{"name": "away.tool", "timeout_ms": 5000}"#, 503, "unavailable"),
    ] {
        let (found, text) = fixture.post(Who::Nobody, &format!("{API}/call"), body).await;
        let reply = parsed(&text);
        assert_eq!(
            (found, reply["outcome"]["kind"].as_str()),
            (status, Some(kind)),
            "{body}: {text}"
        );
        for field in ["id", "name", "status", "is_error", "text", "content", "outcome", "hint"] {
            assert!(reply.get(field).is_some(), "{field} in {text}");
        }
    }
}

#[tokio::test]
async fn the_operation_of_a_tool_takes_its_arguments_and_answers_with_its_result() {
    let fixture = Fixture::open("").await;
    for (path, body, status) in [
        ("tools/fx/add", r#"{"a": 3}"#, 200),
        ("tools/fx/add", "{}", 422),
        ("tools/fx/add", r#"{"a": 1, "a": 2}"#, 422),
        ("tools/fx/fail", "{}", 422),
        ("tools/fx/nothing_like_it", "{}", 404),
        ("tools/nobody/read", "{}", 404),
    ] {
        let (found, text) = fixture.post(Who::Nobody, &format!("{API}/{path}"), body).await;
        assert_eq!(found, status, "{path} {body}: {text}");
    }
}

#[tokio::test]
async fn a_stream_tells_the_progress_and_ends_with_the_reply() {
    let fixture = Fixture::open("").await;
    let headers = [("content-type", "application/json"), ("accept", "text/event-stream")];
    let body = r#"{"name": "fx.steps", "id": "s"}"#;
    let response = fixture
        .send(Who::Nobody, "POST", &format!("{API}/call"), &headers, body)
        .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (_, text) = read(response).await;
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(
        kinds,
        ["created", "progress", "progress", "progress", "completed"],
        "{text}"
    );
    let last = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .next_back()
        .unwrap();
    assert_eq!(
        (&parsed(last)["id"], &parsed(last)["status"]),
        (&"s".into(), &"done".into())
    );
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let fixture = Fixture::open("").await;
    let path = format!("{API}/call");
    let calls = || {
        fixture
            .fx
            .requests()
            .iter()
            .filter(|one| one.tool() == Some("mute"))
            .count()
    };
    for (before, accept) in ["application/json", "text/event-stream"].into_iter().enumerate() {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let call = async {
            let response = fixture
                .send(Who::Nobody, "POST", &path, &headers, r#"{"name": "fx.mute"}"#)
                .await;
            read(response).await
        };
        let arrived = async {
            while calls() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = call => panic!("it never answers"),
            arrived = tokio::time::timeout(PATIENCE, arrived) => arrived.unwrap(),
        }
        let idle = async {
            while fixture.board.status().servers.iter().any(|row| row.in_flight > 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, idle).await.unwrap();
    }
}

#[tokio::test]
async fn a_call_that_a_shutdown_cuts_off_is_told_that_it_may_have_run() {
    for accept in ["application/json", "text/event-stream"] {
        let fixture = Fixture::open("").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = fixture.gateway.serve(vec![listener], stop.clone().cancelled_owned());
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let body = r#"{"name": "fx.mute", "id": "seven"}"#;
            let head = format!(
                "POST {API}/call HTTP/1.1\r\nhost: {address}\r\naccept: {accept}\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            while !fixture.fx.requests().iter().any(|one| one.tool() == Some("mute")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stop.cancel();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            response
        };
        let (served, response) = tokio::time::timeout(PATIENCE, async { tokio::join!(serving, client) })
            .await
            .unwrap();
        served.unwrap();
        let lower = response.to_ascii_lowercase();
        assert!(
            !lower.contains("retry-after"),
            "a call that may have run is not asked for again: {response}"
        );
        for words in [
            r#""id":"seven""#,
            r#""status":"lost""#,
            r#""may_have_executed":true"#,
            r#""kind":"cancelled""#,
        ] {
            assert!(response.contains(words), "{words}: {response}");
        }
        match accept {
            "application/json" => assert!(response.starts_with("HTTP/1.1 502 "), "{response}"),
            _ => assert_eq!(response.matches("event: completed").count(), 1, "{response}"),
        }
    }
}

#[tokio::test]
async fn the_limits_of_a_token_count_at_the_api_and_at_mcp_together() {
    let digest = pegboard::config::TokenDigest::compute(&Who::Client.token());
    let fixture =
        Fixture::with_settings(&format!("[serve.tokens.Client]\nsha256 = '{digest}'\nrate = '2/min'\n")).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "fx__read", "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "fx__read"),
    ];
    let (status, text) = read(fixture.send(Who::Client, "POST", "/mcp", &headers, &body).await).await;
    assert_eq!(status, 200, "{text}");
    let call = async || {
        let headers = [("content-type", "application/json")];
        let path = format!("{API}/call");
        fixture
            .send(Who::Client, "POST", &path, &headers, r#"{"name": "fx.read"}"#)
            .await
    };
    assert_eq!(call().await.status().as_u16(), 200);
    let refused = call().await;
    assert!(refused.headers().contains_key("retry-after"));
    let (status, text) = read(refused).await;
    assert_eq!(
        (status, &parsed(&text)["outcome"]["kind"]),
        (429, &"limit_exceeded".into()),
        "{text}"
    );
}

#[tokio::test]
async fn a_call_without_the_scope_is_refused_with_a_reply_and_never_sent() {
    let fixture = Fixture::new().await;
    for (path, body) in [("call", r#"{"name": "fx.read"}"#), ("tools/fx/read", "{}")] {
        let (status, text) = fixture.post(Who::Read, &format!("{API}/{path}"), body).await;
        let reply = parsed(&text);
        assert_eq!(
            (status, &reply["outcome"]["kind"]),
            (403, &"not_permitted".into()),
            "{text}"
        );
        assert!(reply["text"].as_str().unwrap().contains("`call`"), "{text}");
    }
    assert_eq!(
        fixture
            .fx
            .requests()
            .iter()
            .filter(|one| one.method == "tools/call")
            .count(),
        0
    );
}
