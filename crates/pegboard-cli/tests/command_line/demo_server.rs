//! The built-in demo server from a client's view: the real process, over each transport, in both eras.

mod client;
mod network;

use client::{Server, Socket, cancel, initialize, modern, request};
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

/// A call that takes far longer than any test waits.
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
    // The id can be reused only once the first request has ended.
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
    assert_eq!(lines.len(), 3, "{lines:?}");
    let is_answered = lines[..2].iter().any(|line| line.contains(r#""id":2"#));
    assert!(is_answered, "what was quick is answered: {lines:?}");
    assert!(lines[2].contains("-32010"), "and what was not is told: {lines:?}");
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
    let (kind, content) = socket.frame();
    let code = u16::from_be_bytes([content[0], content[1]]);
    assert_eq!((kind, code), (8, 1001), "the server goes away");
    assert!(server.wait().0.success());
}
