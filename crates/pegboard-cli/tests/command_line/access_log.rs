//! The access log of `pegboard serve`, and the ids by which all lines of a request are found.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
};

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served, initialize},
    home::{Home, until},
    serve_log::lines,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: (&str, &str) = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
const ALICE: (&str, &str) = ("Authorization", "Bearer pgb_alice");

fn home(serve: &str) -> Home {
    let home = Home::new();
    let digest = pegboard::config::TokenDigest::compute("pgb_alice");
    let fx = FakeServer::new("fx")
        .tool(Tool::new("read").answers_text("read it"))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers)
        .tool(Tool::new("die"))
        .fault_on(When::tool("die"), Fault::DiesBeforeExecuting { code: 3 });
    let entry = home.entry("fx", fx, "");
    home.config(&format!(
        "audit = 'calls.jsonl'\n[serve]\n{serve}\n[serve.tokens.alice]\nsha256 = '{digest}'\n{entry}"
    ));
    home
}

fn in_config(home: &Home, name: &str) -> std::path::PathBuf {
    home.path(".config/pegboard").join(name)
}

/// The lines of a log in JSON; none if there is no file.
fn read(path: &Path) -> Vec<Value> {
    lines(&fs::read_to_string(path).unwrap_or_default())
}

/// Waits for a line that fits.
#[track_caller]
fn line(path: &Path, fits: impl Fn(&Value) -> bool) -> Value {
    until(&format!("a line: {:#?}", read(path)), || read(path).iter().any(&fits));
    read(path).into_iter().find(fits).unwrap()
}

fn call(served: &Served, session: &str, tool: &str, more: &[(&str, &str)]) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let headers = [&[ALICE, ("Mcp-Session-Id", session)], more].concat();
    served.post("/mcp", &headers, &body.to_string())
}

#[test]
fn each_request_has_a_line_in_the_file_that_the_config_names() {
    let home = home("access_log = 'access.jsonl'");
    let file = in_config(&home, "access.jsonl");
    let served = Served::start(&home, &["--log-format", "json"]);
    until("the server is ready", || !served.tools("/mcp", &[ALICE]).is_empty());
    let (session, _) = served.initialize("/mcp", &[ALICE]);
    let more = [
        ("X-Request-Id", "req-1"),
        TRACEPARENT,
        ("User-Agent", "agent \u{202e}/1.0"),
    ];
    let response = call(&served, &session, "fx__read", &more);
    assert_eq!(response.header("x-request-id"), Some("req-1"));
    let said = line(&file, |line| line["request_id"] == "req-1");
    let expected = json!({
        "level": "info", "event": "access", "request_id": "req-1", "trace_id": TRACE, "principal": "alice",
        "http_method": "POST", "path": "/mcp", "method": "tools/call", "tool": "fx__read", "status": 200,
        "sent_bytes": response.body.len(),
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&said[field], value, "{field}: {said}");
    }
    assert!(said["received_bytes"].as_u64().unwrap() > 50 && said["duration_ms"].as_f64().unwrap() > 0.0);
    assert!(said["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{said}");
    assert!(!said["user_agent"].as_str().unwrap().contains('\u{202e}'), "{said}");
    let digest = said["session"].as_str().unwrap();
    assert!(digest.len() == 32 && !session.contains(digest), "{said}");
    assert!(said.get("cut").is_none() && said.get("failure").is_none(), "{said}");
    // Without an id, each response has one of its own.
    let [first, second] = [0, 1].map(|_| call(&served, &session, "fx__none", &[]));
    let ids = [first, second].map(|response| response.header("x-request-id").unwrap().to_owned());
    assert_ne!(ids[0], ids[1]);
    for id in &ids {
        let said = line(&file, |line| line["request_id"] == id.as_str());
        assert!(said["failure"].is_string() && said["status"] == 200, "{said}");
    }
    let refused = served.post("/mcp", &[("X-Request-Id", "req 2")], &initialize().to_string());
    let id = refused.header("x-request-id").unwrap();
    assert_ne!(id, "req 2", "it is not sane");
    let said = line(&file, |line| line["request_id"] == id);
    assert_eq!(
        (&said["status"], &said["principal"]),
        (&401.into(), &Value::Null),
        "{said}"
    );
    served.send("GET", "/signin?code=hunter2", &[], "");
    let said = line(&file, |line| line["http_method"] == "GET");
    assert_eq!(said["path"], "/signin");
    let text = fs::read_to_string(&file).unwrap();
    for secret in ["hunter2", "pgb_alice", &session] {
        assert!(!text.contains(secret), "{text}");
    }
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!served.err().contains("\"access\""), "{}", served.err());
}

#[test]
fn the_log_and_the_audit_log_have_the_ids_of_the_request() {
    let home = home("");
    let served = Served::start(&home, &["-v", "--log-format", "json"]);
    until("the server is ready", || !served.tools("/mcp", &[ALICE]).is_empty());
    let (session, _) = served.initialize("/mcp", &[ALICE]);
    call(&served, &session, "fx__die", &[("X-Request-Id", "req-3"), TRACEPARENT]);
    let log = home.path("serve.err");
    let said = line(&log, |line| line["message"] == "call failed");
    let ids = ["request_id", "trace_id", "span_id"].map(|id| said[id].as_str());
    assert_eq!(ids, [Some("req-3"), Some(TRACE), Some("00f067aa0ba902b7")], "{said}");
    let lost = line(&log, |line| line["event"] == "server.connection_lost");
    assert!(lost.get("request_id").is_none(), "it belongs to no request: {lost}");
    let audit = in_config(&home, "calls.jsonl");
    for event in ["decision", "call"] {
        let record = line(&audit, |line| line["event"] == event && line["tool"] == "die");
        assert_eq!(
            (&record["request_id"], &record["trace_id"]),
            (&"req-3".into(), &TRACE.into()),
            "{record}"
        );
    }
    // A client that sends no id is given one.
    let response = call(&served, &session, "fx__read", &[]);
    let id = response.header("x-request-id").unwrap();
    let record = line(&audit, |line| line["event"] == "call" && line["tool"] == "read");
    assert_eq!(
        (&record["request_id"], record.get("trace_id")),
        (&id.into(), None),
        "{record}"
    );
}

#[test]
fn the_audit_log_goes_to_stdout_of_serve_alone() {
    let home = Home::new();
    let entry = home.entry(
        "fx",
        FakeServer::new("fx").tool(Tool::new("read").answers_text("read it")),
        "",
    );
    home.config(&format!("audit = {{ to = 'stdout', required = true }}\n{entry}"));
    let served = Served::start(&home, &["--no-socket"]);
    served.has_tool("fx__read");
    let (session, _) = served.initialize("/mcp", &[]);
    let call = json!({"name": "fx__read", "arguments": {}});
    let answer = served.ask("/mcp", &[], &session, "tools/call", &call);
    assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}");
    let out = home.path("serve.out");
    let record = line(&out, |line| line["event"] == "call");
    assert_eq!(
        (&record["server"], &record["tool"]),
        (&"fx".into(), &"read".into()),
        "{record}"
    );
    assert!(record["request_id"].is_string(), "{record}");
    drop(served);
    home.run(&["mcp"])
        .ends_with(2)
        .says("is for `pegboard serve` in the foreground only");
    home.run(&["--no-daemon", "call", "fx.read"])
        .says("stdout is for the output of this program");
    home.run(&["audit", "show"])
        .ends_with(2)
        .says("the audit log goes to stdout, where it cannot be read");
}

/// A program that reads the log may stall, as one does whose own disk is full.
#[test]
fn a_reader_of_stdout_that_stalls_costs_calls_and_not_the_end_of_the_gateway() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("read").read_only().answers_text("read it"));
    let entry = home.entry("fx", fake, "start = 'eager'");
    home.config(&format!("audit = {{ to = 'stdout', required = true }}\n{entry}"));
    let mut child = home
        .pegboard(&["serve", "-o", "json", "--listen", "127.0.0.1:0", "--no-socket"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It reads the first line, and no more.
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let document: Value = serde_json::from_str(&first).unwrap();
    let address = document["addresses"][0].as_str().unwrap().to_owned();
    let call = || {
        let body = json!({"name": "fx.read", "arguments": {}}).to_string();
        let length = body.len();
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(
            stream,
            "POST /api/v1/mcp/call HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        Response::read(stream).body
    };
    let refused = (0..1000).map(|_| call()).find(|body| !body.contains("read it"));
    let refused = refused.expect("the pipe is full after some hundred calls");
    assert!(refused.contains("the audit log cannot be written"), "{refused}");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM).unwrap();
    until("the gateway has ended", || child.try_wait().unwrap().is_some());
    drop(reader);
}

#[test]
fn records_are_found_by_tool_principal_time_and_request() {
    let home = home("");
    let served = Served::start(&home, &[]);
    until("the server is ready", || !served.tools("/mcp", &[ALICE]).is_empty());
    let (session, _) = served.initialize("/mcp", &[ALICE]);
    call(&served, &session, "fx__read", &[("X-Request-Id", "req-9"), TRACEPARENT]);
    call(&served, &session, "fx__none", &[("X-Request-Id", "req-8")]);
    let audit = in_config(&home, "calls.jsonl");
    line(&audit, |line| line["event"] == "call" && line["request_id"] == "req-8");
    let count = |options: &[&str]| {
        let ran = home.run(&[&["audit", "show", "-o", "json"], options].concat());
        ran.json()["records"].as_array().unwrap().len()
    };
    for (options, expected) in [
        (&["--tool", "read"][..], 2),
        (&["--tool", "fx.read"], 2),
        (&["--tool", "x.read"], 0),
        (&["--who", "alice"], 4),
        (&["--who", "bob"], 0),
        (&["--since", "1d"], 4),
        (&["--request", "req-9"], 2),
        (&["--request", TRACE], 2),
        (&["--request", "req-8", "--tool", "read"], 0),
    ] {
        assert_eq!(count(options), expected, "{options:?}");
    }
}

#[test]
fn at_sighup_the_file_is_opened_again_and_lines_that_cannot_be_written_are_counted() {
    let home = home("access_log = 'logs/access.jsonl'");
    let file = in_config(&home, "logs/access.jsonl");
    let served = Served::start(&home, &["--log-format", "json"]);
    let ask = |id: &str| drop(served.send("GET", "/livez", &[("X-Request-Id", id)], ""));
    ask("first");
    line(&file, |line| line["request_id"] == "first");
    let rotated = in_config(&home, "logs/access.jsonl.1");
    fs::rename(&file, &rotated).unwrap();
    served.signal("HUP");
    until("the file is there again", || file.exists());
    ask("second");
    line(&file, |line| line["request_id"] == "second");
    assert_eq!(read(&rotated).len(), 1);
    // What stands in its place cannot be written to.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    served.signal("HUP");
    served.says("access_log.failed");
    ask("third");
    let metric = || {
        let page = served.send("GET", "/metrics", &[ALICE], "").body;
        let line = page
            .lines()
            .find(|line| line.starts_with("pegboard_access_log_dropped_total "))
            .map(str::to_owned);
        line.unwrap()
    };
    until("it is counted", || !metric().ends_with(" 0"));
    fs::remove_dir(&file).unwrap();
    ask("fourth");
    line(&file, |line| line["request_id"] == "fourth");
    served.says("access_log.recovered");
}

#[test]
fn a_stream_has_its_line_at_its_end() {
    let home = home("access_log = 'access.jsonl'");
    let file = in_config(&home, "access.jsonl");
    let served = Served::start(&home, &["--log-format", "json"]);
    let mut stream = served.connect();
    served.write_as("GET", &mut stream, "/sse", &[ALICE, ("X-Request-Id", "stream")], "");
    let mut begun = [0; 64];
    let read_bytes = stream.read(&mut begun).unwrap();
    assert!(begun[..read_bytes].starts_with(b"HTTP/1.1 200"));
    served.send("GET", "/livez", &[("X-Request-Id", "other")], "");
    line(&file, |line| line["request_id"] == "other");
    assert!(read(&file).iter().all(|line| line["request_id"] != "stream"));
    drop(stream);
    let said = line(&file, |line| line["request_id"] == "stream");
    assert_eq!(
        (&said["status"], &said["cut"], &said["path"]),
        (&200.into(), &true.into(), &"/sse".into())
    );
    assert!(said["sent_bytes"].as_u64().unwrap() > 0, "{said}");
}

#[test]
fn requests_of_one_connection_have_lines_and_ids_of_their_own() {
    let home = home("access_log = 'access.jsonl'");
    let file = in_config(&home, "access.jsonl");
    let served = Served::start(&home, &["--log-format", "json"]);
    let body = initialize().to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer pgb_alice\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    );
    let mut stream = served.connect();
    let mut ids = Vec::new();
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).unwrap();
        let (mut text, mut part) = (String::new(), [0; 4096]);
        while !text.ends_with("}}") {
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0, "{text}");
            text.push_str(std::str::from_utf8(&part[..length]).unwrap());
        }
        let header = text.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        ids.push(header.expect(&text).to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    for id in &ids {
        let said = line(&file, |line| line["request_id"] == id.as_str());
        let fields = ["principal", "method"].map(|field| said[field].as_str());
        assert_eq!(fields, [Some("alice"), Some("initialize")], "{said}");
        assert_eq!(
            (&said["status"], &said["received_bytes"]),
            (&200.into(), &body.len().into()),
            "{said}"
        );
        assert!(said["session"].is_string() && said.get("cut").is_none(), "{said}");
    }
    // One whose client leaves before its response has a line too.
    let (session, _) = served.initialize("/mcp", &[ALICE]);
    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "fx__mute", "arguments": {}}})
            .to_string();
    let mut stream = served.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer pgb_alice\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Mcp-Session-Id: {session}\r\nX-Request-Id: gone\r\nContent-Length: {}\r\n\r\n{call}",
        served.address,
        call.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    drop(stream);
    let said = line(&file, |line| line["request_id"] == "gone");
    assert_eq!(
        (&said["status"], &said["tool"]),
        (&499.into(), &"fx__mute".into()),
        "{said}"
    );
}

#[test]
fn it_is_off_unless_it_is_asked_for_and_the_option_wins() {
    let home = home("access_log = 'access.jsonl'");
    let served = Served::start(&home, &["--access-log", "stderr"]);
    served.post("/mcp", &[ALICE, ("X-Request-Id", "shown")], &initialize().to_string());
    served.says("request=shown");
    let text = served.err();
    let said = text.lines().find(|line| line.contains("request=shown")).unwrap();
    assert!(
        said.contains("access: POST /mcp initialize 200 ") && said.contains(" principal=alice "),
        "{said}"
    );
    assert!(!in_config(&home, "access.jsonl").exists());
    drop(served);
    let served = Served::start(&home, &["--access-log", "off"]);
    served.post("/mcp", &[ALICE, ("X-Request-Id", "hidden")], &initialize().to_string());
    served.signal("TERM");
    let log = home.path("serve.err");
    assert_eq!(served.code(), Some(0));
    assert!(!fs::read_to_string(log).unwrap().contains("hidden"));
    assert!(!in_config(&home, "access.jsonl").exists());
    home.run(&["serve", "--listen", "0", "--access-log", "/dev/full"])
        .ends_with(2)
        .says("the access log cannot be written");
}
