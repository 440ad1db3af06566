//! Every method of MCP × every way to use it with a right that one does not have: without a token, with one that may do less, with one of another
//! view, and in a session that another token with the right has opened.

use axum::body::Body;
use http::{Response, header::CONTENT_TYPE};
use pegboard_gateway::Scope;
use serde_json::{Value, json};

use crate::api::fixture::{Fixture, Who, json, read};

/// Every method, the params of a request, and the scope that it needs; `None` for those of the connection itself.
const METHODS: &[(&str, &str, Option<Scope>)] = &[
    ("ping", "{}", None),
    ("server/discover", "{}", None),
    ("logging/setLevel", r#"{"level": "info"}"#, None),
    ("tools/list", "{}", Some(Scope::Read)),
    (
        "tools/call",
        r#"{"name": "fx__read", "arguments": {}}"#,
        Some(Scope::Call),
    ),
    ("resources/list", "{}", Some(Scope::Read)),
    ("resources/templates/list", "{}", Some(Scope::Read)),
    ("resources/read", r#"{"uri": "fx://note"}"#, Some(Scope::Read)),
    ("resources/subscribe", r#"{"uri": "fx://note"}"#, Some(Scope::Read)),
    ("resources/unsubscribe", r#"{"uri": "fx://note"}"#, Some(Scope::Read)),
    ("prompts/list", "{}", Some(Scope::Read)),
    ("prompts/get", r#"{"name": "fx__greet"}"#, Some(Scope::Read)),
    (
        "completion/complete",
        r#"{"ref": {"type": "ref/prompt", "name": "fx__greet"}, "argument": {"name": "a", "value": ""}}"#,
        Some(Scope::Read),
    ),
    (
        "subscriptions/listen",
        r#"{"notifications": {"toolsListChanged": true}}"#,
        Some(Scope::Read),
    ),
    ("tasks/get", r#"{"taskId": "x"}"#, Some(Scope::Call)),
    ("tasks/list", "{}", Some(Scope::Call)),
    ("tasks/result", r#"{"taskId": "x"}"#, Some(Scope::Call)),
    (
        "tasks/update",
        r#"{"taskId": "x", "inputResponses": {}}"#,
        Some(Scope::Call),
    ),
    ("tasks/cancel", r#"{"taskId": "x"}"#, Some(Scope::Call)),
    ("vendor/run", "{}", Some(Scope::Call)),
];

const PATHS: [&str; 3] = ["/mcp", "/mcp/fx", "/mcp/view/other"];

/// The files that name the methods of MCP that the gateway knows.
const SOURCES: [&str; 3] = [
    include_str!("../../../../pegboard-gateway/src/protocol/scope_check.rs"),
    include_str!("../../../../pegboard-gateway/src/endpoints/board.rs"),
    include_str!("../../../../pegboard-gateway/src/endpoints/tasks.rs"),
];

#[test]
fn every_method_of_the_gateway_is_in_the_table() {
    let families = [
        "tools/",
        "resources/",
        "prompts/",
        "completion/",
        "tasks/",
        "logging/",
        "server/",
        "subscriptions/",
    ];
    for source in SOURCES {
        let texts = source.split('"').skip(1).step_by(2);
        let is_method = |text: &&str| families.iter().any(|family| text.starts_with(family) && text != family);
        for method in texts.filter(is_method) {
            assert!(METHODS.iter().any(|(known, ..)| *known == method), "{method}");
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    /// Refused with this status before it was read.
    Status(u16),
    /// Refused, because the token lacks a scope.
    NoScope,
    /// It was answered, as it may be: with a result, or with an error of its own.
    Answer,
}

/// How a caller comes.
#[derive(Clone, Copy, Debug)]
enum Manner<'a> {
    Modern,
    /// In the session with this id.
    Legacy(&'a str),
}

async fn ask(
    fixture: &Fixture,
    who: Who,
    path: &str,
    manner: Manner<'_>,
    (method, params): (&str, &str),
) -> (Got, String) {
    let mut params = json(params);
    let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    match manner {
        Manner::Legacy(session) => headers.push(("mcp-session-id", session)),
        Manner::Modern => {
            headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)]);
            headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            });
        }
    }
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    got(fixture.send(who, "POST", path, &headers, &request).await).await
}

async fn got(response: Response<Body>) -> (Got, String) {
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == "text/event-stream");
    if is_stream {
        // A refusal is a document.
        return (Got::Answer, String::new());
    }
    let (status, text) = read(response).await;
    let message: Value = serde_json::from_str(&text).unwrap_or_default();
    let got = match (message["error"]["code"].as_i64(), message["jsonrpc"].is_string()) {
        (Some(-32011), _) => Got::NoScope,
        // There is no such session for this caller.
        (Some(-32600), _) => Got::Status(status),
        (_, true) => Got::Answer,
        (_, false) => Got::Status(status),
    };
    (got, text)
}

/// Opens a session. Returns its id, or the status of the refusal.
async fn open(fixture: &Fixture, who: Who, path: &str) -> Result<String, u16> {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let response = fixture.send(who, "POST", path, &headers, &request).await;
    match response.status().as_u16() {
        200 => Ok(response.headers()["mcp-session-id"].to_str().unwrap().to_owned()),
        status => Err(status),
    }
}

/// What the door says to a caller at a path, before it reads the request.
fn refusal_at_the_door(who: Who, path: &str) -> Option<u16> {
    match who {
        Who::Nobody => Some(401),
        Who::Other if path == "/mcp/fx" => Some(403),
        _ => None,
    }
}

const CALLERS: [Who; 8] = [
    Who::Nobody,
    Who::Read,
    Who::Call,
    Who::Admin,
    Who::Other,
    Who::Lesser,
    Who::Client,
    Who::Operator,
];

#[tokio::test]
async fn every_method_needs_its_scope_and_shows_only_the_view_of_the_token() {
    let fixture = Fixture::new().await;
    for who in CALLERS {
        for path in PATHS {
            let opened = open(&fixture, who, path).await;
            let at_door = refusal_at_the_door(who, path);
            assert_eq!(opened.as_ref().err(), at_door.as_ref(), "{who:?} {path}");
            let session = opened.unwrap_or_default();
            for (method, params, scope) in METHODS {
                for manner in [Manner::Modern, Manner::Legacy(&session)] {
                    let (got, text) = ask(&fixture, who, path, manner, (method, params)).await;
                    let expected = match (at_door, scope) {
                        (Some(status), _) => Got::Status(status),
                        (None, Some(scope)) if !who.scopes().contains(scope) => Got::NoScope,
                        (None, _) => Got::Answer,
                    };
                    // A method of the other era does not exist for a client, whatever its rights.
                    let is_missing = text.contains("-32601") && expected == Got::NoScope;
                    assert!(
                        got == expected || is_missing,
                        "{who:?} {path} {manner:?} {method}: {text}"
                    );
                    if who == Who::Other {
                        // Errors name what was asked for.
                        let is_list = method.ends_with("/list");
                        let hidden = ["read it", "\"fx\"", "\"away\"", if is_list { "fx" } else { "read it" }];
                        let shown = hidden.iter().find(|hidden| text.contains(**hidden));
                        assert_eq!(shown, None, "{path} {manner:?} {method}: {text}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_session_is_of_no_use_to_anybody_but_its_owner() {
    let fixture = Fixture::new().await;
    for path in PATHS {
        let session = open(&fixture, Who::Operator, path).await.unwrap();
        for (method, params, _) in METHODS {
            // The owner comes last: its session has to be there still.
            for who in CALLERS {
                let (got, text) = ask(&fixture, who, path, Manner::Legacy(&session), (method, params)).await;
                let expected = match who {
                    Who::Operator => Got::Answer,
                    who => Got::Status(refusal_at_the_door(who, path).unwrap_or(404)),
                };
                assert_eq!(got, expected, "{who:?} {path} {method}: {text}");
            }
        }
        // Neither its stream nor its end.
        for (method, owned) in [("GET", 200), ("DELETE", 204)] {
            for who in CALLERS {
                let headers = [("accept", "text/event-stream"), ("mcp-session-id", session.as_str())];
                let status = fixture.send(who, method, path, &headers, "").await.status().as_u16();
                let expected = match who {
                    Who::Operator => owned,
                    who => refusal_at_the_door(who, path).unwrap_or(404),
                };
                assert_eq!(status, expected, "{who:?} {method} {path}");
            }
        }
    }
}
