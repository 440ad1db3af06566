//! Who may use which route.

use http::{Request, StatusCode};
use pegboard::{ToolCall, View};
use pegboard_testkit::{FakeServer, Fault, Rule, Tool, When};
use serde_json::json;
use tower_service::Service as _;

use crate::api::fixture::{API, Fixture, Who, read};

const CALL: &str = r#"{"name": "fx.read"}"#;

/// Every route, and the status for a token that may read, call, change what runs, and for one of another view that may do everything. No
/// token is 401 everywhere.
const ROUTES: &[(&str, &str, &str, [u16; 4])] = &[
    ("GET", "/api/v1/mcp/servers", "", [200, 403, 403, 200]),
    ("GET", "/api/v1/mcp/servers/fx", "", [200, 403, 403, 404]),
    ("GET", "/api/v1/mcp/servers/nobody", "", [404, 403, 403, 404]),
    // This daemon cannot add servers at all.
    ("PUT", "/api/v1/mcp/servers/fx", "", [403, 403, 403, 403]),
    (
        "PUT",
        "/api/v1/mcp/servers/new",
        r#"{"command": "true"}"#,
        [403, 403, 403, 403],
    ),
    ("POST", "/api/v1/mcp/servers/fx/refresh", "", [403, 403, 200, 404]),
    ("POST", "/api/v1/mcp/servers/fx/reconnect", "", [403, 403, 200, 404]),
    ("POST", "/api/v1/mcp/servers/fx/disable", "", [403, 403, 200, 404]),
    ("POST", "/api/v1/mcp/servers/fx/enable", "", [403, 403, 200, 404]),
    ("POST", "/api/v1/mcp/servers/nobody/enable", "", [403, 403, 404, 404]),
    // This gateway has no address for browsers.
    ("POST", "/api/v1/mcp/servers/fx/signin", "", [403, 409, 403, 404]),
    ("POST", "/api/v1/mcp/signin", "", [403, 409, 403, 409]),
    ("GET", "/api/v1/mcp/sign-ins", "", [403, 403, 200, 200]),
    ("GET", "/api/v1/mcp/tools", "", [200, 403, 403, 200]),
    ("GET", "/api/v1/mcp/tools?server=fx", "", [200, 403, 403, 404]),
    ("GET", "/api/v1/mcp/tools?provider=openai", "", [200, 403, 403, 200]),
    ("GET", "/api/v1/mcp/tools?search=read", "", [200, 403, 403, 200]),
    ("POST", "/api/v1/mcp/tools/fx/read", "{}", [403, 200, 403, 404]),
    ("POST", "/api/v1/mcp/call", CALL, [403, 200, 403, 404]),
    ("GET", "/api/v1/mcp/resources", "", [200, 403, 403, 200]),
    ("GET", "/api/v1/mcp/prompts", "", [200, 403, 403, 200]),
    ("GET", "/api/v1/mcp/warnings", "", [200, 403, 403, 200]),
    ("GET", "/api/v1/mcp/events", "", [200, 403, 403, 200]),
    ("POST", "/api/v1/mcp/reload", "", [403, 403, 503, 403]),
    ("GET", "/openapi.json", "", [200, 403, 403, 200]),
    ("GET", "/health", "", [200, 403, 403, 200]),
    ("GET", "/metrics", "", [200, 403, 403, 403]),
    ("DELETE", "/api/v1/mcp/servers/nobody", "", [403, 403, 404, 404]),
    ("DELETE", "/api/v1/mcp/servers/fx", "", [403, 403, 204, 404]),
];

#[tokio::test]
async fn every_route_needs_its_scope_and_shows_only_the_view_of_the_token() {
    let mut fixture = Fixture::new().await;
    // Nothing reloads, so a reload that is admitted is answered at once.
    fixture.requests = None;
    for (method, path, body, [reading, calling, admin, other]) in ROUTES {
        // The one that may most comes last, because it changes what runs.
        for (who, expected) in [
            (Who::Nobody, 401),
            (Who::Read, *reading),
            (Who::Lesser, *reading),
            (Who::Call, *calling),
            (Who::Other, *other),
            (Who::Admin, *admin),
        ] {
            let headers: &[(&str, &str)] = match body.is_empty() {
                true => &[],
                false => &[("content-type", "application/json")],
            };
            let response = fixture.send(who, method, path, headers, body).await;
            let status = response.status();
            assert_eq!(status.as_u16(), expected, "{who:?}: {method} {path}");
            // A call that is refused has a reply.
            let is_call = path.ends_with("/call") || path.contains("/tools/");
            if status.is_client_error() && who != Who::Nobody && !is_call {
                let kind = response.headers()["content-type"].to_str().unwrap();
                assert_eq!(kind, "application/problem+json", "{who:?}: {method} {path}");
            }
            if who == Who::Other && status == StatusCode::OK && !path.ends_with("/events") {
                let (_, text) = read(response).await;
                for hidden in ["\"fx\"", "fx__", "fx.", "\"away\""] {
                    assert!(!text.contains(hidden), "{method} {path} shows {hidden}: {text}");
                }
            }
        }
    }
}

/// The files that name the routes of a daemon.
const SOURCES: [&str; 3] = [
    include_str!("../../../src/api/routes.rs"),
    include_str!("../../../src/daemon.rs"),
    include_str!("../../../src/sign_in/routes.rs"),
];

/// What needs no token: probes have none, and neither have browsers, which need a link.
const WITHOUT_TOKEN: [&str; 4] = ["/readyz", "/signin", "/signin/server/fx", "/signin/callback"];

#[test]
fn every_route_of_the_daemon_is_in_the_table() {
    let routes = SOURCES.iter().flat_map(|source| source.lines());
    let routes: Vec<_> = routes
        .filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once('"'))
        .collect();
    assert!(routes.len() > 20, "{routes:?}");
    for (path, handlers) in routes {
        let path = path.replace("{name}", "fx").replace("{server}/{tool}", "fx/read");
        for method in ["get", "put", "post", "delete"] {
            let is_served = handlers.contains(&format!("{method}("));
            let is_tested = ROUTES
                .iter()
                .any(|(known, route, ..)| known.eq_ignore_ascii_case(method) && *route == path);
            assert!(
                !is_served || is_tested || WITHOUT_TOKEN.contains(&&*path),
                "{method} {path}"
            );
        }
    }
}

#[tokio::test]
async fn every_route_of_the_document_is_in_the_table() {
    let fixture = Fixture::open("").await;
    let (_, text) = fixture.get(Who::Nobody, "/openapi.json").await;
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let is_method = |key: &&String| matches!(key.as_str(), "get" | "put" | "post" | "delete");
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Each tool has a path of its own. The routes of probes and metrics have a table where they are tested.
        if path.starts_with("/api/v1/mcp/tools/") || !(path.starts_with(API) || path == "/openapi.json") {
            continue;
        }
        for method in methods.as_object().unwrap().keys().filter(is_method) {
            let path = path.replace("{name}", "fx");
            let is_tested = ROUTES
                .iter()
                .any(|(known, route, ..)| known.eq_ignore_ascii_case(method) && *route == path);
            assert!(is_tested, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_request_that_no_gateway_has_admitted_is_refused() {
    let fixture = Fixture::open("").await;
    let daemon = pegboard_daemon::Daemon::new(fixture.board.clone(), fixture.reloads.clone());
    for (method, path, ..) in ROUTES {
        let request = Request::builder().method(*method).uri(*path);
        let request = request.body(axum::body::Body::empty()).unwrap();
        let response = daemon.router().call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{method} {path}");
    }
}

#[tokio::test]
async fn nothing_of_a_clients_headers_reaches_a_server() {
    let fixture = Fixture::new().await;
    let secret = "canary-4711";
    let headers = [
        ("content-type", "application/json"),
        ("cookie", secret),
        ("x-canary", secret),
        ("x-api-key", secret),
        ("traceparent", secret),
        ("mcp-session-id", secret),
    ];
    for (path, body) in [("call", CALL), ("tools/fx/read", "{}")] {
        let response = fixture
            .send(Who::Call, "POST", &format!("{API}/{path}"), &headers, body)
            .await;
        assert_eq!(response.status(), StatusCode::OK);
    }
    let received = fixture.fx.requests();
    assert!(received.iter().filter(|one| one.method == "tools/call").count() >= 2);
    let text = format!("{received:?}");
    for hidden in [secret, "pgb_", "Bearer"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

#[tokio::test]
async fn a_token_without_a_view_sees_the_rest_of_the_board() {
    let fixture = Fixture::new().await;
    let (_, text) = fixture.get(Who::Read, "/api/v1/mcp/servers").await;
    let names: Vec<String> = json!(crate::api::fixture::json(&text))["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["away", "fx", "other"]);
}

#[tokio::test]
async fn queues_and_failed_reloads_are_shown_to_tokens_without_a_view_only() {
    let fixture = Fixture::with_settings("[queues]\nshared = 2\n").await;
    let _ = fixture.reloads.note_failed("it has errors", Some("line 3"));
    for (who, path, is_shown) in [
        (Who::Read, "servers", true),
        (Who::Operator, "servers", true),
        (Who::Other, "servers", false),
        // The document of one server is not that of the board.
        (Who::Read, "servers/other", false),
        (Who::Other, "servers/other", false),
    ] {
        let (status, text) = fixture.get(who, &format!("{API}/{path}")).await;
        assert_eq!(status, 200, "{who:?}: {text}");
        let document = crate::api::fixture::json(&text);
        let has_queue = document["queues"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["name"] == "shared");
        assert_eq!(has_queue, is_shown, "{who:?} {path}: {text}");
        assert_eq!(text.contains("it has errors"), is_shown, "{who:?} {path}: {text}");
    }
    for (who, is_shown) in [(Who::Read, true), (Who::Other, false)] {
        let (_, text) = fixture.get(who, &format!("{API}/warnings")).await;
        assert_eq!(text.contains("it has errors"), is_shown, "{who:?}: {text}");
        let (_, text) = fixture.get(who, "/health").await;
        assert_eq!(text.contains("it has errors"), is_shown, "{who:?}: {text}");
    }
}

/// The board's own connection works, and that of one principal does not, so every row of the document is a principal's.
#[tokio::test]
async fn readiness_names_principals_and_errors_to_those_who_may_read_the_whole_board_only() {
    let needed = FakeServer::new("needed").tool(Tool::new("peek").answers_text("seen"));
    let needed = needed.serve_http().await.unwrap();
    let settings = format!("[servers.needed]\nurl = '{}'\nrequired = true\n", needed.url());
    let fixture = Fixture::with_settings(&settings).await;
    needed.change(|script| {
        for method in ["initialize", "server/discover"] {
            script.faults.push(Rule {
                when: When::method(method),
                fault: Fault::HtmlPage,
            });
        }
    });
    let call = r#"{"name": "needed.peek"}"#;
    let (_, reply) = fixture.post(Who::Client, &format!("{API}/call"), call).await;
    assert_ne!(crate::api::fixture::json(&reply)["outcome"]["kind"], "ok", "{reply}");
    let rows = fixture.board.status().servers;
    let down = rows
        .iter()
        .find(|row| row.principal.is_some() && row.last_error.is_some());
    let why = down.unwrap().last_error.as_ref().unwrap().message.clone();
    for (who, is_told) in [
        (Who::Nobody, false),
        (Who::Call, false),
        (Who::Admin, false),
        (Who::Other, false),
        (Who::Read, true),
        (Who::Operator, true),
    ] {
        let (_, text) = fixture.get(who, "/readyz").await;
        assert!(text.contains("\"needed\""), "{who:?}: {text}");
        assert_eq!(text.contains("Client"), is_told, "{who:?}: {text}");
        let document = crate::api::fixture::json(&text);
        let errors = document["not_ready"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|row| row["error"].as_str());
        assert_eq!(
            errors.filter(|error| *error == why).count(),
            usize::from(is_told),
            "{who:?}: {text}"
        );
    }
}

#[tokio::test]
async fn a_token_for_a_view_sees_no_connections_of_other_principals() {
    let fixture = Fixture::new().await;
    let peek = r#"{"name": "other.peek"}"#;
    // One principal has a connection of its own that works, another one that does not.
    let (status, text) = fixture.post(Who::Call, &format!("{API}/call"), peek).await;
    assert_eq!(status, 200, "{text}");
    fixture.other.change(|script| {
        for method in ["initialize", "server/discover"] {
            script.faults.push(Rule {
                when: When::method(method),
                fault: Fault::HtmlPage,
            });
        }
    });
    for who in [Who::Client, Who::Other] {
        let (_, reply) = fixture.post(who, &format!("{API}/call"), peek).await;
        assert_ne!(crate::api::fixture::json(&reply)["outcome"]["kind"], "ok", "{reply}");
    }
    for (who, is_shown) in [(Who::Operator, true), (Who::Other, false)] {
        let (_, text) = fixture.get(who, &format!("{API}/servers")).await;
        let document = crate::api::fixture::json(&text);
        let rows = document["servers"].as_array().unwrap();
        let of_call = rows
            .iter()
            .any(|row| row["name"] == "other" && row["principal"] == "Call");
        assert_eq!(of_call, is_shown, "{who:?}: {text}");
        let (_, text) = fixture.get(who, &format!("{API}/warnings")).await;
        assert_eq!(text.contains("principal:Client"), is_shown, "{who:?}: {text}");
        assert!(text.contains("principal:Other"), "{who:?}: {text}");
    }
}

/// Each agent has a connection of its own, so the rows name views.
#[tokio::test]
async fn a_token_for_a_view_sees_its_own_connections_and_none_of_other_agents() {
    let fixture = Fixture::with_settings("scope = 'session'\n").await;
    let agent = fixture.board.toolset_with(View::new().name("agent"));
    assert!(!agent.call(ToolCall::new("other.peek")).await.is_error());
    let peek = r#"{"name": "other.peek"}"#;
    let (status, text) = fixture.post(Who::Other, &format!("{API}/call"), peek).await;
    assert_eq!(status, 200, "{text}");
    for (who, sees_agent) in [(Who::Operator, true), (Who::Other, false)] {
        let (_, text) = fixture.get(who, &format!("{API}/servers/other")).await;
        let document = crate::api::fixture::json(&text);
        let rows = document["servers"].as_array().unwrap();
        let of_agent = rows.iter().any(|row| row["view"] == "agent");
        let of_other = rows
            .iter()
            .any(|row| row["view"].is_string() && row["principal"] == "Other");
        assert_eq!((of_agent, of_other), (sees_agent, true), "{who:?}: {text}");
    }
}
