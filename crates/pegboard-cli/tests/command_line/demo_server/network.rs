//! The network transports: streamable HTTP in both eras, HTTP with SSE, and WebSocket.

use serde_json::{Value, json};

use crate::demo_server::client::{Address, Response, Server, Socket, cancel, initialize, modern, request};
use crate::demo_server::{HANDSHAKES, TOOLS, counting, endless, names};

/// Opens a legacy session. Returns its id.
fn session(address: &Address, version: &str) -> String {
    let mut welcome = address.post("/mcp", &[], &initialize(version));
    let id = welcome.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(welcome.json()["result"]["protocolVersion"], version);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(address.post("/mcp", &[("Mcp-Session-Id", &id)], &ready).status, 202);
    id
}

#[test]
fn legacy_http_has_sessions() {
    let (_server, address) = Server::listen("http");
    for version in HANDSHAKES {
        let id = session(&address, version);
        let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", version)];
        let mut list = address.post("/mcp", &headers, &request(1, "tools/list", json!({})));
        assert_eq!(list.header("content-type"), Some("application/json"));
        assert_eq!(names(&list.json()), TOOLS);
        let mut missing = address.post("/mcp", &headers, &request(2, "no/such", json!({})));
        assert_eq!(
            (missing.status, missing.json()["error"]["code"].clone()),
            (200, json!(-32601))
        );
        assert_eq!(address.request("DELETE", "/mcp", &headers, "").status, 204);
        assert_eq!(
            address.post("/mcp", &headers, &request(3, "ping", json!({}))).status,
            404
        );
    }
    assert_eq!(
        address.post("/mcp", &[], &request(1, "tools/list", json!({}))).status,
        400
    );
}

#[test]
fn legacy_http_streams_progress_and_takes_cancellation() {
    let (_server, address) = Server::listen("http");
    let id = session(&address, "2025-06-18");
    let headers = [("Mcp-Session-Id", id.as_str())];
    let listen = || address.request("GET", "/mcp", &[headers[0], ("Accept", "text/event-stream")], "");
    let (mut lost, mut quiet) = (listen(), listen());
    assert_eq!(
        (quiet.status, quiet.header("content-type")),
        (200, Some("text/event-stream"))
    );
    assert_eq!(lost.event(), None, "a client that connects again takes the stream over");

    let mut endless = endless(5);
    endless["params"] = counting(100);
    endless["params"]["arguments"]["delay_ms"] = json!(50);
    let mut stream = address.post("/mcp", &headers, &endless);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.message().unwrap()["params"]["progress"], 1);
    assert_eq!(address.post("/mcp", &headers, &cancel(5)).status, 202);
    let rest: Vec<_> = std::iter::from_fn(|| stream.message()).collect();
    assert!(
        rest.iter().all(|message| message["method"] == "notifications/progress"),
        "no answer: {rest:?}"
    );

    assert_eq!(address.request("DELETE", "/mcp", &headers, "").status, 204);
    assert_eq!(quiet.event(), None, "the stream ends with its session");
}

fn post_modern(address: &Address, name: Option<&str>, message: &Value) -> Response {
    let method = message["method"].as_str().unwrap();
    let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    address.post("/mcp", &headers, message)
}

#[test]
fn modern_http_is_stateless() {
    let (_server, address) = Server::listen("http");
    let mut found = post_modern(&address, None, &modern(1, "server/discover", json!({})));
    assert_eq!(found.header("mcp-session-id"), None);
    assert_eq!(found.json()["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(
        names(&post_modern(&address, None, &modern(1, "tools/list", json!({}))).json()),
        TOOLS
    );
    let call = modern(
        1,
        "tools/call",
        json!({"name": "now", "arguments": {"timezone": "+01:00"}}),
    );
    assert_eq!(
        post_modern(&address, Some("now"), &call).json()["result"]["structuredContent"]["timezone"],
        "+01:00"
    );
    let read = modern(1, "resources/read", json!({"uri": "demo://count/1"}));
    assert_eq!(post_modern(&address, Some("demo://count/1"), &read).status, 200);

    let mut stream = post_modern(&address, Some("count_slowly"), &modern(1, "tools/call", counting(2)));
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let messages: Vec<_> = std::iter::from_fn(|| stream.message()).collect();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[2]["result"]["content"][0]["text"], "counted to 2");

    let accept_json = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "count_slowly"),
    ];
    let body = modern(1, "tools/call", counting(2)).to_string();
    assert_eq!(
        address.request("POST", "/mcp", &accept_json, &body).json()["result"]["isError"],
        false
    );
}

#[test]
fn modern_http_refuses_what_does_not_fit_together() {
    let (_server, address) = Server::listen("http");
    let call = modern(1, "tools/call", json!({"name": "now"}));
    let check = |mut response: Response, status, code| {
        let answer = response.json();
        assert_eq!(
            (response.status, answer["error"]["code"].clone()),
            (status, json!(code)),
            "{answer}"
        );
        assert_eq!(answer["id"], 1);
    };
    check(post_modern(&address, None, &call), 400, -32020);
    check(post_modern(&address, Some("later"), &call), 400, -32020);
    check(address.post("/mcp", &[], &call), 400, -32020);
    check(
        address.post("/mcp", &[("MCP-Protocol-Version", "2025-11-25")], &call),
        400,
        -32020,
    );
    check(
        address.post(
            "/mcp",
            &[("MCP-Protocol-Version", "2031-01-01")],
            &request(1, "ping", json!({})),
        ),
        400,
        -32022,
    );
    check(
        post_modern(&address, None, &request(1, "tools/list", json!({}))),
        400,
        -32602,
    );
    check(
        post_modern(&address, None, &modern(1, "no/such", json!({}))),
        404,
        -32601,
    );
    check(
        post_modern(
            &address,
            Some("none"),
            &modern(1, "tools/call", json!({"name": "none"})),
        ),
        200,
        -32602,
    );
    for verb in ["GET", "DELETE"] {
        assert_eq!(
            address
                .request(verb, "/mcp", &[("Accept", "text/event-stream")], "")
                .status,
            405,
            "{verb}"
        );
    }
}

#[test]
fn a_body_must_be_json_and_of_bearable_length() {
    let (_server, address) = Server::listen("http");
    let json = [("Content-Type", "application/json")];
    assert_eq!(
        address
            .request("POST", "/mcp", &[("Content-Type", "text/plain")], "{}")
            .status,
        415
    );
    assert_eq!(
        address
            .request("POST", "/mcp", &[json[0], ("Accept", "text/html")], "{}")
            .status,
        406
    );
    assert_eq!(
        address.request("POST", "/mcp", &json, "{nonsense").json()["error"]["code"],
        -32700
    );
    assert_eq!(
        address
            .request("POST", "/mcp", &json, &" ".repeat(4 * 1024 * 1024 + 1))
            .status,
        413
    );
}

#[test]
fn strangers_are_refused_on_every_network_wire() {
    for (transport, path) in [("http", "/mcp"), ("sse", "/sse"), ("ws", "/")] {
        let (_server, address) = Server::listen(transport);
        assert!(address.url.ends_with(path), "{}", address.url);
        assert!(address.url.contains("://127.0.0.1:"), "loopback only: {}", address.url);
        for (name, value) in [
            ("Host", "evil.example"),
            ("Host", "127.0.0.1.evil.example"),
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
        ] {
            let refused = match transport {
                "ws" => Socket::open(&address, &[(name, value)]).err().unwrap(),
                "sse" => address.request("GET", path, &[(name, value)], "").status,
                _ => address.post(path, &[(name, value)], &initialize("2025-11-25")).status,
            };
            assert_eq!(refused, 403, "{transport} {name}: {value}");
        }
    }
}

#[test]
fn it_serves_only_this_machine() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let server = Server::start(&["--transport", "http", "--listen", address]);
        let (status, lines) = server.wait();
        assert!(!status.success(), "{address}");
        assert!(lines.is_empty(), "nothing is announced: {lines:?}");
    }
}

#[test]
fn http_with_sse_answers_on_its_stream() {
    let (_server, address) = Server::listen("sse");
    let mut stream = address.request("GET", "/sse", &[("Accept", "text/event-stream")], "");
    let (event, endpoint) = stream.event().unwrap();
    assert_eq!(event, "endpoint");
    let mut ask = |message: &Value| {
        assert_eq!(address.post(&endpoint, &[], message).status, 202);
        stream.message().unwrap()
    };
    assert_eq!(
        ask(&initialize("2024-11-05"))["result"]["protocolVersion"],
        "2024-11-05"
    );
    assert_eq!(names(&ask(&request(1, "tools/list", json!({})))), TOOLS);
    assert_eq!(
        ask(&request(2, "tools/call", counting(1)))["method"],
        "notifications/progress"
    );
    assert_eq!(
        stream.message().unwrap()["result"]["content"][0]["text"],
        "counted to 1"
    );
    assert_eq!(
        address
            .post("/messages?session=none", &[], &request(3, "ping", json!({})))
            .status,
        404
    );
    assert_eq!(
        address.post("/messages", &[], &request(3, "ping", json!({}))).status,
        400
    );
}

#[test]
fn a_web_socket_serves_both_eras() {
    let (_server, address) = Server::listen("ws");
    let mut socket = Socket::open(&address, &[("Sec-WebSocket-Protocol", "mcp")]).unwrap();
    assert_eq!(
        socket.ask(&initialize("2025-11-25"))["result"]["protocolVersion"],
        "2025-11-25"
    );
    assert_eq!(names(&socket.ask(&request(1, "tools/list", json!({})))), TOOLS);
    socket.send(&endless(2));
    assert_eq!(
        socket.ask(&request(3, "tools/call", counting(1)))["method"],
        "notifications/progress"
    );
    assert_eq!(socket.receive()["id"], 3);
    socket.send(&cancel(2));
    let mut socket = Socket::open(&address, &[]).unwrap();
    assert_eq!(
        socket.ask(&modern(1, "server/discover", json!({})))["result"]["resultType"],
        "complete"
    );
    assert_eq!(
        Socket::open(&address, &[("Sec-WebSocket-Protocol", "chat")]).err(),
        Some(400)
    );
}
