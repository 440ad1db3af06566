//! The headers of every request.

use base64::{Engine, prelude::BASE64_STANDARD};
use pegboard::{
    Secret, ServerConfig,
    config::{Auth, Transport},
};
use pegboard_testkit::{Ask, Era, FakeServer, HttpStyle, Tool};
use serde_json::json;

use crate::{fixtures::*, support::*};

fn with_headers(url: &str, headers: &[(&str, &str)]) -> ServerConfig {
    let mut endpoint = endpoint(url);
    endpoint.auth = Auth::Bearer(Secret::new("t0ken"));
    for (name, value) in headers {
        endpoint.headers.insert((*name).to_owned(), Secret::new(*value));
    }
    ServerConfig::new(Transport::http(endpoint))
}

#[tokio::test]
async fn every_modern_request_repeats_its_method_name_and_marked_arguments() {
    let fake = FakeServer::new("fx")
        .era(Era::Modern)
        .bearer("t0ken")
        .resource("file:///ré sumé", "text")
        .prompt("greet", "hello")
        .tool(Tool::new("plain").answers_text("hi"))
        .tool(
            Tool::new("deploy")
                .mirrors("region", "Region")
                .mirrors("who", "Authorization"),
        )
        .serve_http()
        .await
        .unwrap();
    let board = board(with_headers(&fake.url(), &[]));
    let tools = board.toolset();
    call(&tools, "fx.plain", json!({})).await;
    call(&tools, "fx.deploy", json!({"region": "eu west", "who": "Bearer other"})).await;
    call(
        &tools,
        "fx.deploy",
        json!({"region": "日本\r\nHost: evil", "who": " padded"}),
    )
    .await;
    call(&tools, "fx.deploy", json!({"region": "=?base64?eA==?="})).await;
    tools.read_resource(&name("fx"), "file:///ré sumé").await.unwrap();
    tools
        .get_prompt(&name("fx"), "greet", &Default::default())
        .await
        .unwrap();
    received(&fake, "subscriptions/listen", 1).await;
    board.shutdown().await;
    let encoded = |text: &str| format!("=?base64?{}?=", BASE64_STANDARD.encode(text));
    // The listen stream is opened in parallel with the calls.
    let (listening, mut told): (Vec<_>, Vec<_>) = fake
        .requests()
        .iter()
        .map(mcp_headers)
        .partition(|headers| headers["mcp-method"] == "subscriptions/listen");
    let expected = |method: &str, more: serde_json::Value| {
        let mut all = json!({
            "authorization": "Bearer t0ken", "mcp-protocol-version": "2026-07-28", "mcp-method": method,
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(listening, [expected("subscriptions/listen", json!({}))]);
    // Resources and prompts are listed concurrently.
    told[2..5].sort_by_key(|headers| headers["mcp-method"].to_string());
    assert_eq!(
        told,
        [
            expected("server/discover", json!({})),
            expected("tools/list", json!({})),
            expected("prompts/list", json!({})),
            expected("resources/list", json!({})),
            expected("resources/templates/list", json!({})),
            expected("tools/call", json!({"mcp-name": "plain"})),
            expected(
                "tools/call",
                json!({"mcp-name": "deploy", "mcp-param-region": "eu west", "mcp-param-authorization": "Bearer other"})
            ),
            expected(
                "tools/call",
                json!({
                    "mcp-name": "deploy", "mcp-param-region": encoded("日本\r\nHost: evil"),
                    "mcp-param-authorization": encoded(" padded"),
                })
            ),
            expected(
                "tools/call",
                json!({"mcp-name": "deploy", "mcp-param-region": encoded("=?base64?eA==?=")})
            ),
            expected("resources/read", json!({"mcp-name": encoded("file:///ré sumé")})),
            expected("prompts/get", json!({"mcp-name": "greet"})),
        ]
    );
    let host = fake.address().to_string();
    assert!(
        fake.requests()
            .iter()
            .all(|received| received.header("host") == Some(&host))
    );
}

#[tokio::test]
async fn a_tool_that_wants_other_headers_now_is_listed_again_and_called_with_them() {
    let (_folder, ledger) = ledger();
    let server = |tool: Tool| FakeServer::new("fx").era(Era::Modern).ledger(&ledger).tool(tool);
    let deploy = || Tool::new("deploy").answers_text("done");
    let fake = server(deploy()).serve_http().await.unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    let arguments = |nonce: &str| json!({"region": "eu", "nonce": nonce});
    assert_eq!(call(&tools, "fx.deploy", arguments("before")).await.text(), "done");
    // No notification announces this change.
    fake.change(|script| *script = server(deploy().mirrors("region", "Region")).script().clone());
    let reply = call(&tools, "fx.deploy", arguments("after")).await;
    assert_eq!(
        (reply.text().as_str(), reply.attempts),
        ("done", 2),
        "{:?}",
        reply.outcome
    );
    let told: Vec<_> = received(&fake, "tools/call", 3).await;
    let regions: Vec<_> = told.iter().map(|call| call.header("mcp-param-region")).collect();
    assert_eq!(regions, [None, None, Some("eu")]);
    assert_eq!((fake.count("tools/list"), fake.count("server/discover")), (2, 1));
    assert_eq!(executed(&ledger), ["after", "before"]);
    assert_eq!(call(&tools, "fx.deploy", arguments("later")).await.attempts, 1);
}

#[tokio::test]
async fn a_tool_whose_name_is_no_header_text_is_called_by_its_encoded_name() {
    let fake = FakeServer::new("fx")
        .era(Era::Modern)
        .tool(Tool::new("résumé").answers_text("hi"))
        .serve_http()
        .await
        .unwrap();
    let board = board(http(&fake.url()));
    let reply = call(&board.toolset(), "fx.résumé", json!({})).await;
    assert_eq!(reply.text(), "hi");
    let calls = received(&fake, "tools/call", 1).await;
    assert_eq!(calls[0].header("mcp-name"), Some("=?base64?csOpc3Vtw6k=?="));
}

#[tokio::test]
async fn legacy_requests_carry_version_and_session_once_both_are_known() {
    for style in [HttpStyle::default(), resumable()] {
        let fake = FakeServer::new("fx")
            .bearer("t0ken")
            .http(style)
            .tool(
                Tool::new("ask")
                    .asks(Ask::Ping)
                    .asks(Ask::Unknown)
                    .answers_text("asked"),
            )
            .serve_http()
            .await
            .unwrap();
        let board = board(with_headers(&fake.url(), &[]));
        let tools = board.toolset();
        let reply = call(&tools, "fx.ask", json!({})).await;
        assert!(reply.text().starts_with("asked"), "{:?}", reply.outcome);
        let session = fake.sessions().remove(0);
        board.shutdown().await;
        received(&fake, "DELETE", 1).await;
        for received in fake.requests() {
            let expected = match received.method.as_str() {
                "server/discover" => json!({
                    "authorization": "Bearer t0ken", "mcp-protocol-version": "2026-07-28",
                    "mcp-method": "server/discover",
                }),
                "initialize" => json!({"authorization": "Bearer t0ken"}),
                _ => json!({
                    "authorization": "Bearer t0ken", "mcp-protocol-version": "2025-11-25", "mcp-session-id": session,
                }),
            };
            assert_eq!(mcp_headers(&received), expected, "{}", received.method);
        }
        assert_eq!(fake.count("$response"), 2);
        assert_eq!(fake.count("GET"), 1);
        assert_eq!(fake.count("DELETE"), 1);
        assert!(fake.sessions().is_empty());
    }
}

#[tokio::test]
async fn headers_of_the_config_are_sent_everywhere_and_never_take_the_place_of_ours() {
    for era in BOTH_ERAS {
        let fake = fake(era).serve_http().await.unwrap();
        let board = board(with_headers(
            &fake.url(),
            &[
                ("X-Tenant", "blue"),
                ("Accept", "text/plain"),
                ("Content-Type", "text/plain"),
                ("MCP-Protocol-Version", "1999-01-01"),
                ("Mcp-Session-Id", "mine"),
                ("Mcp-Method", "mine"),
            ],
        ));
        assert_greets(&board.toolset(), "with headers").await;
        board.shutdown().await;
        for received in fake.requests() {
            assert_eq!(received.header("x-tenant"), Some("blue"), "{}", received.method);
            let (accept, kind) = match received.method.as_str() {
                "GET" => (Some("text/event-stream"), None),
                "DELETE" => (None, None),
                _ => (Some("application/json, text/event-stream"), Some("application/json")),
            };
            if received.method != "DELETE" {
                assert_eq!(received.header("accept"), accept, "{}", received.method);
            }
            if kind.is_some() {
                assert_eq!(received.header("content-type"), kind, "{}", received.method);
            }
            for ours in ["mcp-protocol-version", "mcp-session-id", "mcp-method"] {
                let value = received.header(ours).unwrap_or_default();
                assert!(!value.contains("mine") && !value.contains("1999"), "{ours}: {value}");
            }
        }
    }
}
