//! Who is let in: Host, Origin and Sec-Fetch-Site on every route, tokens, and whose session is whose.

use std::time::{Duration, SystemTime};

use pegboard_gateway::{Gateway, ServeError, Token};
use ring::digest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers},
    service::{Running, start, start_with},
};

/// Every route, with a method that it has.
const ROUTES: [(&str, &str); 13] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("POST", "/mcp/server"),
    ("POST", "/mcp/view/name"),
    ("GET", "/sse"),
    ("POST", "/messages?session=00000000000000000000000000000000"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("POST", "/api/v1/mcp/call"),
    ("GET", "/"),
];

/// HAProxy sends no host by default, Kubernetes the address of the pod.
#[tokio::test]
async fn probes_of_load_balancers_are_answered_whatever_address_they_name() {
    let server = start().await;
    for (_, path) in ROUTES {
        for host in ["", "host: 10.1.2.3:7337\r\n"] {
            let version = if host.is_empty() { "1.0" } else { "1.1" };
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let request = format!("GET {path} HTTP/{version}\r\n{host}connection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            let status = response.split(' ').nth(1).unwrap_or_default();
            let is_probe = ["/livez", "/readyz"].contains(&path);
            assert_eq!(
                !["400", "403"].contains(&status),
                is_probe,
                "{path} {host:?}: {response}"
            );
        }
    }
}

#[tokio::test]
async fn every_route_checks_host_origin_and_site() {
    const HERE: (&str, &str) = ("host", "localhost");
    let cases: [(&[(&str, &str)], bool); 40] = [
        (&[HERE], true),
        (&[("host", "LocalHost:7337")], true),
        (&[("host", "127.0.0.1")], true),
        (&[("host", "127.0.0.1:7337")], true),
        (&[("host", "127.1.2.3")], true),
        (&[("host", "[::1]:7337")], true),
        (&[("host", "gateway.example.com")], true),
        (&[("host", "evil.example")], false),
        (&[("host", "evil.example:7337")], false),
        (&[("host", "localhost.evil.example")], false),
        (&[("host", "127.0.0.1.evil.example")], false),
        (&[("host", "evil.localhost")], false),
        (&[("host", "localhost.")], false),
        (&[("host", "0.0.0.0")], false),
        (&[("host", "2130706433")], false),
        (&[("host", "0x7f.1")], false),
        (&[("host", "[::]")], false),
        (&[("host", "localhost:99999")], false),
        (&[HERE, HERE], false),
        (&[HERE, ("host", "evil.example")], false),
        (&[HERE, ("origin", "http://localhost")], true),
        (&[HERE, ("origin", "http://localhost:3000")], true),
        (&[HERE, ("origin", "https://127.0.0.1:1")], true),
        (&[HERE, ("origin", "http://[::1]")], true),
        (&[HERE, ("origin", "https://app.example.com")], true),
        (&[HERE, ("origin", "http://app.example.com")], false),
        (&[HERE, ("origin", "https://app.example.com:444")], false),
        (&[HERE, ("origin", "null")], false),
        (&[HERE, ("origin", "http://evil.example")], false),
        (&[HERE, ("origin", "http://localhost.evil.example")], false),
        (&[HERE, ("origin", "http://localhost@evil.example")], false),
        (&[HERE, ("origin", "file://")], false),
        (&[HERE, ("origin", "moz-extension://localhost")], false),
        (
            &[HERE, ("origin", "http://localhost"), ("origin", "http://localhost")],
            false,
        ),
        (&[HERE, ("sec-fetch-site", "same-origin")], true),
        (&[HERE, ("sec-fetch-site", "same-site")], true),
        (&[HERE, ("sec-fetch-site", "none")], true),
        (&[HERE, ("sec-fetch-site", "cross-site")], false),
        (
            &[
                HERE,
                ("origin", "https://app.example.com"),
                ("sec-fetch-site", "cross-site"),
            ],
            true,
        ),
        (
            &[
                HERE,
                ("origin", "http://localhost:3000"),
                ("sec-fetch-site", "cross-site"),
            ],
            false,
        ),
    ];
    let server = start_with(|builder| {
        let builder = builder.hosts(["gateway.example.com".to_owned()]);
        builder.origins(["https://app.example.com".to_owned()])
    })
    .await;
    for (method, path) in ROUTES {
        for (headers, is_admitted) in cases {
            let mut http = Http::connect(server.address).await;
            let response = http.ask(method, path, headers, "").await;
            let is_refused =
                [400, 403].contains(&response.status) && response.header("content-type").contains("problem");
            let detail = String::from_utf8_lossy(&response.body).into_owned();
            let by_door = is_refused && (detail.contains("header") || detail.contains("another site"));
            assert_eq!(
                !by_door, is_admitted,
                "{method} {path} {headers:?}: {} {detail}",
                response.status
            );
        }
    }
}

#[tokio::test]
async fn a_websocket_handshake_is_checked_too() {
    let server = start().await;
    let handshake = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (more, status) in [
        (("x-nothing", ""), 101),
        (("host", "evil.example"), 403),
        (("origin", "http://evil.example"), 403),
        (("origin", "null"), 403),
        (("sec-fetch-site", "cross-site"), 403),
    ] {
        let mut http = Http::connect(server.address).await;
        let headers = [&handshake[..], &[more]].concat();
        http.send("GET", "/mcp", &headers, "").await;
        assert_eq!(http.response().await.status, status, "{more:?}");
    }
}

#[tokio::test]
async fn a_page_of_a_configured_origin_may_read_responses() {
    let server = start_with(|builder| {
        let builder = builder.origins(["https://app.example.com".to_owned()]);
        builder.token(token("alice", "pgb_alice"))
    })
    .await;
    let mut http = Http::connect(server.address).await;
    let origin = ("origin", "https://app.example.com");
    let asks = [
        origin,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type, mcp-session-id"),
    ];
    let response = http.ask("OPTIONS", "/mcp", &asks, "").await;
    assert_eq!(response.status, 204);
    assert_eq!(response.header("access-control-allow-origin"), origin.1);
    assert_eq!(response.header("access-control-allow-headers"), asks[2].1);
    let response = http.ask("POST", "/mcp", &[origin, JSON, BOTH], "").await;
    assert_eq!(response.status, 401, "a preflight needs no token, a request does");
    assert!(
        response
            .header("access-control-expose-headers")
            .contains("mcp-session-id")
    );
    let local = [("origin", "http://localhost:3000"), asks[1]];
    let response = http.ask("OPTIONS", "/mcp", &local, "").await;
    assert_eq!(response.header("access-control-allow-origin"), "");
}

pub(crate) fn token(name: &str, text: &str) -> Token {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    Token::new(name, digest.as_ref().try_into().unwrap())
}

async fn with_tokens() -> Running {
    start_with(|builder| {
        builder
            .token(token("alice", "pgb_alice"))
            .token(token("bob", "pgb_bob"))
            .token(token("viewer", "pgb_viewer").view("coding"))
            .token(token("past", "pgb_past").expires(SystemTime::now() - Duration::from_secs(1)))
    })
    .await
}

pub(crate) const ALICE: (&str, &str) = ("authorization", "Bearer pgb_alice");
pub(crate) const BOB: (&str, &str) = ("authorization", "Bearer pgb_bob");

#[tokio::test]
async fn a_token_is_needed_and_names_the_principal() {
    let server = with_tokens().await;
    let mut http = Http::connect(server.address).await;
    for (value, status) in [
        (Some("Bearer pgb_alice"), 200),
        (Some("bearer pgb_bob"), 200),
        (None, 401),
        (Some("Bearer pgb_past"), 401),
        (Some("Bearer pgb_unknown"), 401),
        (Some("Basic pgb_alice"), 401),
        (Some("pgb_alice"), 401),
    ] {
        let mut headers = modern_headers("who").to_vec();
        headers.extend(value.map(|value| ("authorization", value)));
        let response = http.ask("POST", "/mcp", &headers, &modern_call(1, "who")).await;
        assert_eq!(response.status, status, "{value:?}");
        if status == 401 {
            assert!(response.header("www-authenticate").starts_with("Bearer"), "{value:?}");
        } else {
            let name = value.unwrap().rsplit('_').next().unwrap();
            assert_eq!(response.text(), name);
        }
    }
    for (method, path) in ROUTES {
        let status = http.ask(method, path, &[BOTH, JSON], "").await.status;
        let is_probe = ["/livez", "/readyz"].contains(&path);
        assert_eq!(status == 401, !is_probe, "{path}: {status}");
    }
}

#[tokio::test]
async fn a_session_of_one_principal_does_not_exist_for_another() {
    let server = with_tokens().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[ALICE]).await;
    let session = ("mcp-session-id", &*id);
    for (method, body) in [("POST", &*call(1, "echo")), ("GET", ""), ("DELETE", "")] {
        let response = http.ask(method, "/mcp", &[BOTH, JSON, session, BOB], body).await;
        assert_eq!(response.status, 404, "{method}");
    }
    let response = http
        .ask("POST", "/mcp", &[BOTH, JSON, session, ALICE], &call(1, "who"))
        .await;
    assert_eq!(response.text(), "alice");
}

#[tokio::test]
async fn a_token_for_a_view_reaches_nothing_else() {
    let server = with_tokens().await;
    let mut http = Http::connect(server.address).await;
    let viewer = ("authorization", "Bearer pgb_viewer");
    for (path, status) in [
        // There is no such view here, so that it is asked for and not found.
        ("/mcp", 404),
        ("/mcp/view/coding", 404),
        ("/mcp/view/other", 403),
        ("/mcp/server", 403),
        ("/server/sse", 403),
        ("/sse", 404),
    ] {
        let response = http.ask("POST", path, &[BOTH, JSON, viewer], &call(1, "who")).await;
        assert_eq!(response.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_token_that_is_removed_is_refused_from_then_on() {
    let server = with_tokens().await;
    let mut http = Http::connect(server.address).await;
    let headers = [&modern_headers("who")[..], &[ALICE]].concat();
    assert_eq!(
        http.ask("POST", "/mcp", &headers, &modern_call(1, "who")).await.status,
        200
    );
    assert!(server.gateway.set_tokens(vec![token("bob", "pgb_bob")], false));
    assert_eq!(
        http.ask("POST", "/mcp", &headers, &modern_call(1, "who")).await.status,
        401
    );
}

#[tokio::test]
async fn beyond_loopback_tokens_are_demanded() {
    let server = start().await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refused = server.gateway.serve(vec![listener], std::future::pending()).await;
    assert!(
        matches!(refused, Err(ServeError::NeedsToken(named)) if named == address),
        "{refused:?}"
    );
    let tokens = with_tokens().await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let gateway: Gateway = tokens.gateway.clone();
    gateway.serve(vec![listener], std::future::ready(())).await.unwrap();
}

#[tokio::test]
async fn a_gateway_with_tokens_does_not_become_an_open_one() {
    let server = with_tokens().await;
    let mut http = Http::connect(server.address).await;
    assert!(!server.gateway.set_tokens(vec![], false));
    for (headers, status) in [
        (&modern_headers("who")[..], 401),
        (&[&modern_headers("who")[..], &[ALICE]].concat(), 200),
    ] {
        let response = http.ask("POST", "/mcp", headers, &modern_call(1, "who")).await;
        assert_eq!(response.status, status);
    }
    assert!(
        server.gateway.set_tokens(vec![], true),
        "a gateway may be closed to all"
    );
    let open = start().await;
    assert!(open.gateway.set_tokens(vec![], false), "it needs no token now either");
}
