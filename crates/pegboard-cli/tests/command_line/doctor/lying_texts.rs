//! Servers whose texts have the words of other findings. The finding follows from what happened, whatever the server wrote.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

use pegboard_testkit::Fault;
use serde_json::{Value, json};

use super::{
    diagnosis::{Diagnosis, QUICK, SILENT, fake},
    processes::{entry, script},
};
use crate::home::Home;

/// Words of findings about connections, certificates, sign-ins, lists and handshakes.
const LIES: &[&str] = &[
    "tools/list is not a key",
    "tools/list gave the same cursor twice, on page 3",
    "protocol version 1999-01-01 is not supported",
    "it speaks version 3",
    "initialize: the server answered with error -32603",
    "lookup failed: dns error",
    "tcp connect error: Connection refused (os error 111)",
    "the server answered HTTP 404 Not Found",
    "HTTP 429, HTTP 503, redirect: it points elsewhere",
    "invalid peer certificate: UnknownIssuer, self-signed",
    "certificate expired: verification time 1",
    "no answer within 5 s; operation timed out",
    "it printed 9999 lines of text and no message",
    "; all it wrote was: a question",
    "the server closed its output",
    "the token has expired; sign in with `pegboard login fx`",
];

/// A script that writes a text to stderr and ends in this way.
fn ending(home: &Home, text: &str, how: &str) -> String {
    let program = script(
        home,
        "lying.sh",
        &format!("#!/bin/sh\necho '{}' >&2\n{how}\n", text.replace('\'', "")),
        0o755,
    );
    entry(&program, &[])
}

/// A script that answers requests by method: the arms of a shell `case`, with the request's id in `$id`.
fn answering_script(home: &Home, arms: &str) -> String {
    let text = format!(
        r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
  case "$line" in
{arms}
  esac
done
"#
    );
    entry(&script(home, "answering.sh", &text, 0o755), &[])
}

/// The arm that answers requests which match a pattern with an error.
fn error_arm(pattern: &str, message: &str) -> String {
    let error = json!({"code": -32603, "message": message});
    format!("    {pattern}) echo '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"error\":{error}}}' ;;")
}

/// The arm that answers the handshake.
fn initialize_arm() -> String {
    let result = json!({
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"},
    });
    format!("    *'\"initialize\"'*) echo '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{result}}}' ;;")
}

/// The URL of a listener that gives each request the same response. It ends with the test program.
fn answering(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(response.as_bytes());
        }
    });
    format!("[servers.fx]\nurl = 'http://{address}/mcp'\n{QUICK}\n")
}

/// Asserts that a config yields this finding alone, with this cause.
#[track_caller]
fn check(home: &Home, config: &str, id: &str, cause: &Value) {
    home.config(config);
    let found = Diagnosis::of(home, &[]);
    let finding = found.shows(id).finding(id).unwrap();
    assert_eq!(finding["diagnosis"]["cause"], *cause, "{finding}");
    assert_eq!(finding["diagnosis"]["place"]["server"], "fx", "{finding}");
}

#[test]
fn a_process_that_exits_has_exited_whatever_it_wrote() {
    let home = Home::new();
    for text in LIES {
        let cause = json!({"kind": "exit", "code": 3});
        check(&home, &ending(&home, text, "exit 3"), "exits-at-start", &cause);
    }
}

#[test]
fn the_words_of_a_process_that_was_killed_are_no_evidence() {
    let home = Home::new();
    for text in [
        "ModuleNotFoundError: No module named mcp",
        "Cannot connect to the Docker daemon",
        "npm error code E404",
    ] {
        let cause = json!({"kind": "exit", "signal": 9});
        check(&home, &ending(&home, text, "kill -9 $$"), "exits-at-start", &cause);
    }
}

#[test]
fn the_words_of_another_program_are_no_evidence() {
    let home = Home::new();
    for (program, text) in [
        ("python3", "INFO: Is the docker daemon running? yes"),
        ("python3", "No solution found for the chess puzzle"),
        ("uvx", "No solution found for the chess puzzle"),
        ("docker", "No module named hello"),
        ("server", "npm error code E404"),
    ] {
        let text = format!("#!/bin/sh\necho '{text}' >&2\nexit 3\n");
        let program = script(&home, &format!("bin/{program}"), &text, 0o755);
        let cause = json!({"kind": "exit", "code": 3});
        check(&home, &entry(&program, &[]), "exits-at-start", &cause);
    }
}

#[test]
fn the_words_of_a_process_that_ended_well_or_after_the_handshake_are_no_evidence() {
    let home = Home::new();
    let words = "echo 'No module named hello' >&2";
    let well = script(&home, "bin/python3", &format!("#!/bin/sh\n{words}\nexit 0\n"), 0o755);
    check(
        &home,
        &entry(&well, &[]),
        "exits-at-start",
        &json!({"kind": "exit", "code": 0}),
    );
    let list = format!("    *'\"tools/list\"'*) {words}; exit 1 ;;");
    let config = answering_script(&home, &format!("{}\n{list}", initialize_arm()));
    let python = home.path("bin/python3");
    fs::remove_file(&python).unwrap();
    fs::copy(home.path("answering.sh"), &python).unwrap();
    let config = config.replace(home.path("answering.sh").to_str().unwrap(), python.to_str().unwrap());
    check(&home, &config, "exits-at-start", &json!({"kind": "exit", "code": 1}));
}

#[test]
fn a_status_counts_and_not_the_body() {
    let home = Home::new();
    for (id, status, code, body) in [
        ("server-error", "500 Internal Server Error", 500, "lookup failed"),
        ("server-error", "500 Internal Server Error", 500, "certificate expired"),
        ("server-error", "502 Bad Gateway", 502, "upstream: Connection refused"),
        (
            "server-error",
            "503 Service Unavailable",
            503,
            "HTTP 404: tools/list, redirect",
        ),
        (
            "server-error",
            "500 Internal Server Error",
            500,
            "HTTP 429: the token has expired",
        ),
        (
            "path-not-found",
            "404 Not Found",
            404,
            "dns lookup of the upstream failed, HTTP 500",
        ),
        (
            "path-not-found",
            "405 Method Not Allowed",
            405,
            "UnknownIssuer: self-signed certificate",
        ),
        (
            "rate-limited",
            "429 Too Many Requests",
            429,
            "tls: corrupt message, HTTP 404",
        ),
        (
            "not-mcp",
            "418 I'm a teapot",
            418,
            "HTTP 404, HTTP 500, connection refused",
        ),
        ("not-mcp", "402 Payment Required", 402, "redirect: it points elsewhere"),
        ("forbidden", "403 Forbidden", 403, "the token has expired"),
        (
            "sign-in-needed",
            "401 Unauthorized",
            401,
            "HTTP 403: the token has expired",
        ),
    ] {
        let cause = json!({"kind": "http_status", "status": code});
        check(&home, &answering(status, "text/plain", body), id, &cause);
    }
}

#[test]
fn a_page_is_no_mcp_server_whatever_it_says() {
    let home = Home::new();
    for body in [
        "<html>HTTP 404: lookup failed</html>",
        "<html>certificate expired, tools/list, protocol version</html>",
    ] {
        let cause = json!({"kind": "response"});
        check(&home, &answering("200 OK", "text/html", body), "not-mcp", &cause);
    }
}

#[test]
fn an_error_response_refuses_the_handshake_whatever_its_message_says() {
    let home = Home::new();
    let cause = json!({"kind": "rpc_error", "code": -32603});
    for text in &LIES[..8] {
        let config = answering_script(&home, &error_arm("*", text));
        check(&home, &config, "handshake-refused", &cause);
    }
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "HTTP 404: lookup failed"}});
    let config = answering("400 Bad Request", "application/json", &body.to_string());
    check(&home, &config, "handshake-refused", &cause);
}

#[test]
fn an_error_response_to_the_list_is_no_refused_handshake() {
    let home = Home::new();
    let initialize = initialize_arm();
    for text in [
        "initialize first",
        "protocol version 1999-01-01 is not supported",
        "process ended: exit code 1",
        "ModuleNotFoundError",
    ] {
        let list = error_arm("*'\"tools/list\"'*", text);
        let config = answering_script(&home, &format!("{initialize}\n{list}"));
        let cause = json!({"kind": "rpc_error", "code": -32603});
        check(&home, &config, "list-failed", &cause);
        let found = Diagnosis::of(&home, &[]);
        let fix = found.finding("list-failed").unwrap()["fix"].as_str().unwrap();
        assert!(fix.ends_with("`pegboard logs fx`"), "{fix}");
    }
}

#[test]
fn a_question_and_a_flood_are_told_by_what_is_written_where() {
    let home = Home::new();
    let text = "tools/list? HTTP 404, protocol version, process ended ".to_owned();
    home.config(&home.entry("fx", fake().fault(Fault::Prompts { text }), SILENT));
    Diagnosis::of(&home, &[]).shows("waits-for-input");
    let flood = "#!/bin/sh\nexec yes 'process ended: ModuleNotFoundError, tools/list'\n";
    home.config(&entry(&script(&home, "flood.sh", flood, 0o755), &[]));
    Diagnosis::of(&home, &[]).shows("stdout-flood");
}

#[test]
fn other_commands_have_the_same_code() {
    let home = Home::new();
    home.config(&ending(&home, LIES[0], "exit 3"));
    let listed = home.run(&["tools", "-o", "json"]).json();
    let unavailable = &listed["unavailable"][0];
    assert_eq!(unavailable["code"], "exits-at-start", "{listed}");
    assert_eq!(
        unavailable["diagnosis"]["cause"],
        json!({"kind": "exit", "code": 3}),
        "{listed}"
    );
    let called = home.run(&["call", "fx.read", "-o", "json"]).json();
    assert_eq!(called["outcome"]["code"], "exits-at-start", "{called}");
    assert_eq!(called["outcome"]["diagnosis"]["step"], "spawn", "{called}");
}

#[test]
fn a_fault_of_the_config_has_its_code_in_other_commands() {
    let home = Home::new();
    home.config("[servers.fx]\ncomand = 'server'\n");
    let listed = home.run(&["tools", "-o", "json"]).json();
    assert_eq!(listed["unavailable"][0]["code"], "unknown-setting", "{listed}");
    let place = &listed["unavailable"][0]["diagnosis"]["place"];
    assert_eq!(place["key"], "servers.fx.comand", "{listed}");
    let called = home.run(&["call", "fx.read", "-o", "json"]).json();
    assert_eq!(called["outcome"]["code"], "unknown-setting", "{called}");
    let called = home
        .run(&["call", "fx.read", "-o", "json", "-c", "missing.toml"])
        .json();
    assert_eq!(called["outcome"]["code"], "config-unreadable", "{called}");
    let found = Diagnosis::of(&home, &["-c", "missing.toml"]);
    let found = found.finding("config-unreadable").unwrap();
    assert_eq!(found["diagnosis"]["code"], "config-unreadable", "{found}");
}
