//! The built-in demo server as its clients see it: the real process, over each wire, in both eras.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

#[path = "demo_server/client.rs"]
mod client;

use client::{Address, Server, Socket, cancel, initialize, modern, request};
use serde_json::{Value, json};

const TOOLS: [&str; 7] = [
    "now",
    "calculate",
    "search_text",
    "echo",
    "draw",
    "count_slowly",
    "fail",
];
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn names(answer: &Value) -> Vec<&str> {
    answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// A call that counts for far longer than any test waits.
fn endless(id: u64) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": "count_slowly", "arguments": {"n": 100, "delay_ms": 5000}}),
    )
}

fn counting(n: u64) -> Value {
    json!({"name": "count_slowly", "arguments": {"n": n, "delay_ms": 1}, "_meta": {"progressToken": "t"}})
}

#[test]
fn every_handshake_version_is_served_on_stdio() {
    for version in HANDSHAKES {
        let mut server = Server::start(&[]);
        let welcome = server.ask(&initialize(version));
        assert_eq!(welcome["result"]["protocolVersion"], version);
        assert_eq!(welcome["result"]["capabilities"]["tools"], json!({}));
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let list = server.ask(&request(1, "tools/list", json!({})));
        assert_eq!(names(&list), TOOLS);
        assert_eq!(
            list["result"]["tools"][0]["title"].is_string(),
            version >= "2025-06-18",
            "{version}"
        );
        let call = json!({"name": "calculate", "arguments": {"expression": "6 * 7"}});
        let answer = server.ask(&request(2, "tools/call", call));
        assert_eq!(answer["result"]["content"][0]["text"], r#"{"value":42}"#);
        assert_eq!(server.ask(&request(3, "ping", json!({})))["result"], json!({}));
    }
}

#[test]
fn modern_requests_need_no_handshake_on_stdio() {
    let mut server = Server::start(&[]);
    let found = server.ask(&modern(1, "server/discover", json!({})));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["result"]["resultType"], "complete");
    let list = server.ask(&modern(2, "tools/list", json!({})));
    assert_eq!(names(&list), TOOLS);
    assert_eq!(list["result"]["cacheScope"], "public");
    let answer = server.ask(&modern(
        3,
        "tools/call",
        json!({"name": "echo", "arguments": {"json": [1, null]}}),
    ));
    assert_eq!(answer["result"]["structuredContent"], json!({"json": [1, null]}));
    assert_eq!(server.ask(&modern(4, "ping", json!({})))["error"]["code"], -32601);
    assert_eq!(
        server.ask(&modern(5, "subscriptions/listen", json!({})))["error"]["code"],
        -32601
    );
    assert_eq!(
        server.ask(&request(6, "tools/list", json!({})))["error"]["code"],
        -32600
    );
    let mut unknown = modern(7, "tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    assert_eq!(server.ask(&unknown)["error"]["code"], -32022);
}

#[test]
fn resources_prompts_and_completions_are_served() {
    let mut server = Server::start(&[]);
    let about = server.ask(&modern(1, "resources/read", json!({"uri": "demo://about"})));
    assert!(
        about["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("demo server")
    );
    let logo = server.ask(&modern(2, "resources/read", json!({"uri": "demo://logo.png"})));
    assert!(
        logo["result"]["contents"][0]["blob"]
            .as_str()
            .unwrap()
            .starts_with("iVBORw0KGgo")
    );
    let count = server.ask(&modern(3, "resources/read", json!({"uri": "demo://count/2"})));
    assert_eq!(count["result"]["contents"][0]["text"], "1\n2\n");
    let templates = server.ask(&modern(4, "resources/templates/list", json!({})));
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "demo://count/{n}"
    );
    let greeting = server.ask(&modern(
        5,
        "prompts/get",
        json!({"name": "greet", "arguments": {"name": "Ada"}}),
    ));
    assert!(
        greeting["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("Ada")
    );
    assert_eq!(
        server.ask(&modern(6, "prompts/get", json!({"name": "greet"})))["error"]["code"],
        -32602
    );
    let reference = json!({"type": "ref/prompt", "name": "greet"});
    let typed = json!({"ref": reference, "argument": {"name": "name", "value": "gr"}});
    let completed = server.ask(&modern(7, "completion/complete", typed));
    assert_eq!(completed["result"]["completion"]["values"], json!(["Grace"]));
}

#[test]
fn the_search_stays_in_the_folder_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "first\nthe needle\n").unwrap();
    let mut server = Server::start(&["--folder", folder.path().to_str().unwrap()]);
    let answer = server.ask(&modern(
        1,
        "tools/call",
        json!({"name": "search_text", "arguments": {"query": "needle"}}),
    ));
    assert_eq!(answer["result"]["content"][0]["text"], "notes.txt:2: the needle");
    assert_eq!(answer["result"]["content"][1]["text"], "1 match in 1 file");
}

#[test]
fn a_quick_answer_overtakes_a_slow_one_and_progress_comes_before_its_answer() {
    let mut server = Server::start(&[]);
    server.ask(&initialize("2025-11-25"));
    server.send(&endless(1));
    server.send(&request(2, "tools/call", counting(3)));
    for step in 1..=3 {
        let notice = server.receive();
        assert_eq!(notice["method"], "notifications/progress");
        let message = format!("step {step} of 3");
        let params = json!({"progressToken": "t", "progress": step, "total": 3, "message": message});
        assert_eq!(notice["params"], params);
    }
    assert_eq!(server.receive()["id"], 2);
}

#[test]
fn a_cancelled_call_is_never_answered() {
    let mut server = Server::start(&[]);
    server.ask(&initialize("2025-11-25"));
    server.send(&endless(1));
    server.send(&cancel(1));
    // The same id can only be used again once the first request is over.
    let mut answer = server.ask(&request(1, "ping", json!({})));
    while answer["error"]["code"] == -32600 {
        answer = server.ask(&request(1, "ping", json!({})));
    }
    assert_eq!(answer["result"], json!({}));
}

#[test]
fn broken_lines_cost_nothing_but_themselves() {
    let mut server = Server::start(&[]);
    for (line, code) in [
        ("{nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        ("[]", -32600),
    ] {
        server.send_line(line);
        assert_eq!(server.receive()["error"]["code"], code, "{line}");
    }
    server.send_line(&format!("\"{}\"", "x".repeat(4 * 1024 * 1024)));
    assert!(
        server.receive()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("longer than")
    );
    server.send_line("");
    assert_eq!(server.ask(&request(1, "ping", json!({})))["result"], json!({}));
}

#[test]
fn log_messages_come_once_they_are_asked_for() {
    let mut server = Server::start(&[]);
    server.ask(&initialize("2025-06-18"));
    let fail = json!({"name": "fail", "arguments": {"message": "oh no"}});
    assert_eq!(
        server.ask(&request(1, "tools/call", fail.clone()))["result"]["isError"],
        true
    );
    server.ask(&request(2, "logging/setLevel", json!({"level": "warning"})));
    server.send(&request(3, "tools/call", fail));
    let notice = server.receive();
    assert_eq!(
        (&notice["method"], &notice["params"]["level"]),
        (&json!("notifications/message"), &json!("warning"))
    );
    assert_eq!(server.receive()["id"], 3);
}

#[test]
fn a_batch_is_answered_as_a_batch_where_batches_exist() {
    let batch = json!([
        request(1, "ping", json!({})),
        cancel(9),
        request(2, "tools/list", json!({}))
    ]);
    let mut server = Server::start(&[]);
    server.ask(&initialize("2025-03-26"));
    server.send(&batch);
    assert_eq!(server.receive().as_array().unwrap().len(), 2);
    let mut server = Server::start(&[]);
    server.ask(&initialize("2025-06-18"));
    server.send(&batch);
    assert_eq!(server.receive()["error"]["code"], -32600);
}

#[test]
fn the_end_of_input_ends_the_process() {
    let mut server = Server::start(&[]);
    server.send(&initialize("2025-11-25"));
    server.send(&endless(1));
    server.send(&request(2, "ping", json!({})));
    server.close_stdin();
    let (status, lines) = server.wait();
    assert!(status.success());
    assert_eq!(lines.len(), 2, "what was quick is answered: {lines:?}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_process_on_every_wire() {
    let mut server = Server::start(&[]);
    server.ask(&modern(1, "server/discover", json!({})));
    server.send(&endless(2));
    server.terminate();
    assert!(server.wait().0.success());
    for transport in ["http", "sse", "ws"] {
        let (server, _) = Server::listen(transport);
        server.terminate();
        assert!(server.wait().0.success(), "{transport}");
    }
    let (server, address) = Server::listen("ws");
    let mut socket = Socket::open(&address, &[]).unwrap();
    server.terminate();
    assert_eq!(socket.frame().0, 8, "a close frame");
    assert!(server.wait().0.success());
}

/// Opens a legacy session; gives its id.
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
    let mut quiet = address.request("GET", "/mcp", &[headers[0], ("Accept", "text/event-stream")], "");
    assert_eq!(
        (quiet.status, quiet.header("content-type")),
        (200, Some("text/event-stream"))
    );
    assert_eq!(
        address
            .request("GET", "/mcp", &[headers[0], ("Accept", "text/event-stream")], "")
            .status,
        409
    );

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

fn post_modern(address: &Address, name: Option<&str>, message: &Value) -> client::Response {
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
    let check = |mut response: client::Response, status, code| {
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
