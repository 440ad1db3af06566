//! `pegboard torture` finds each fault of a server, and none in the demo server.
//!
//! The broken server is a Python program, and its processes are found in `/proc`: these tests are for Linux.

mod leftovers;
mod tls;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
};

use pegboard_base::sync::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::first_line::first_line;

/// A case, and words that the report on a server with that fault must contain.
type Fault = (&'static str, &'static str);

const HANDSHAKE: &[Fault] = &[
    ("greeting", "`serverInfo.name` is missing"),
    ("versions", "initialize 2025-06-18"),
    ("unknown-version", "1999-12-31"),
    ("early-notification", "exit status: 3"),
    ("second-initialize", "exit status: 3"),
];
const JSON_RPC: &[Fault] = &[
    ("ids", "came back as 1"),
    ("null-id", "the id null got a result"),
    ("unknown-method", "in place of the error -32601"),
    ("malformed-json", "exit status: 3"),
    ("invalid-request", "exit status: 3"),
    ("wrong-params", "succeeded"),
    ("unknown-notification", "a notification got a response"),
    ("stray-response", "exit status: 3"),
    ("parallel", "50 of 50 requests got a second response"),
    ("ping", "is not an object"),
    ("large-message", "exit status: 3"),
    ("deep-nesting", "exit status: 3"),
];
const LISTS: &[Fault] = &[
    ("paging", "lists \"echo\" twice"),
    ("stable-lists", "differs between two requests"),
    ("invalid-cursor", "the first page again"),
    ("undeclared", "lists something"),
    ("list-changed", "`tools.listChanged` is not declared"),
    ("unknown-resource", "an unknown resource got a result"),
    ("resources", "has no `contents`"),
    ("unknown-prompt", "an unknown prompt got a result"),
    ("completions", "`completion.values` is missing"),
    ("log-level", "\"shouting\""),
];
const TOOLS: &[Fault] = &[
    ("names", "other characters"),
    ("schemas", "no valid JSON Schema"),
    (
        "annotations",
        "`delete_everything` is declared read-only and destructive",
    ),
    ("unknown-tool", "a call of an unknown tool succeeded"),
];
const CALLS: &[Fault] = &[
    ("results", "has the type \"txt\""),
    ("output-schema", "does not match"),
    ("parallel-calls", "20 of 20 calls got a second response"),
    ("progress", "does not increase"),
    ("cancellation", "`slow` was cancelled and sent a response"),
    ("cancel-unknown", "exit status: 3"),
    ("ping-during-call", "only after the call of `slow`"),
];
const ARGUMENTS: &[Fault] = &[
    ("missing-argument", "without `text` succeeded"),
    ("wrong-type", "succeeded"),
    ("extra-argument", "succeeded"),
    ("huge-argument", "exit status: 3"),
    ("odd-text", "exit status: 3"),
    ("nested-argument", "exit status: 3"),
];
const PROCESS: &[Fault] = &[
    ("stdout", "Welcome!"),
    ("stderr", "bytes to stderr"),
    ("split-message", "no response"),
    ("end-of-input", "still ran"),
    ("end-of-input/orphan", "were left behind"),
    ("end-of-input/daemon", "were left behind"),
    ("sigterm", "after SIGTERM"),
    ("restart", "of 10 failed"),
    ("leaks", "files open"),
];
const ALL: [&[Fault]; 7] = [HANDSHAKE, JSON_RPC, LISTS, TOOLS, CALLS, ARGUMENTS, PROCESS];
/// What the message that a case shows must contain: it can be sent by hand to see the fault again.
const SENT: &[Fault] = &[
    ("greeting", "\"initialize\""),
    ("versions", "2025-06-18"),
    ("early-notification", "notifications/cancelled"),
    ("second-initialize", "\"initialize\""),
    ("null-id", "\"id\":null"),
    ("malformed-json", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\":"),
    ("invalid-request", "7"),
    ("unknown-notification", "notifications/torture"),
    ("stray-response", "\"nobody\""),
    ("parallel", "\"p49\""),
    ("deep-nesting", "[[[[["),
    ("cancel-unknown", "\"nobody\""),
    ("stdout", "\"initialize\""),
];
/// What must be among that which came after the message.
const CAME: &[Fault] = &[
    ("greeting", "protocolVersion"),
    ("null-id", "\"id\":null"),
    ("stdout", "Welcome!"),
];
/// Cases that fail because the server does nothing for as long as it may take.
const WAITING: [&str; 5] = [
    "split-message",
    "end-of-input",
    "end-of-input/orphan",
    "end-of-input/daemon",
    "sigterm",
];

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }
}

fn torture(home: &Path, args: &[&str]) -> Ran {
    torture_with(home, args, &std::env::var("PATH").unwrap())
}

fn torture_with(home: &Path, args: &[&str], path: &str) -> Ran {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_pegboard"))
        .arg("torture")
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .env("PATH", path)
        .output()
        .unwrap();
    Ran {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// The interpreter itself: a wrapper would be another process.
fn python() -> String {
    let found = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

fn broken(python: &str, fault: &str, home: &Path) -> String {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/torture/broken.py");
    let starts = home.join(format!("starts-{}", fault.replace('/', "-")));
    format!("{python} -I -S {} {fault} {}", server.display(), starts.display())
}

/// The failed cases of a report, with what was found.
fn failed(card: &Value) -> Vec<(&str, &str)> {
    let cases = card["cases"].as_array().unwrap().iter();
    let failed = cases.filter(|case| case["verdict"] == "failed");
    failed
        .map(|case| (case["id"].as_str().unwrap(), case["why"].as_str().unwrap()))
        .collect()
}

/// Whether the only case of a report shows the message that it is about, and not one that asks whether the server still answers.
fn shows_its_message(fault: &str, card: &Value) -> bool {
    let shows = |key: &str, wanted: &[Fault]| {
        let text = card["cases"][0][key].as_str().unwrap_or_default();
        let mut wanted = wanted.iter().filter(|(of, _)| *of == fault);
        !text.contains("still there") && wanted.all(|(_, words)| text.contains(words))
    };
    shows("sent", SENT) && shows("came", CAME)
}

/// Runs the case of each fault on a server that has it.
#[track_caller]
fn check(faults: &[Fault]) {
    let home = TempDir::new().unwrap();
    let python = python();
    let faults = Mutex::new(faults.iter());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((fault, words)) = faults.lock().next() else {
                        return;
                    };
                    let case = fault.split('/').next().unwrap();
                    let server = broken(&python, fault, home.path());
                    let wait = if WAITING.contains(fault) { "2s" } else { "20s" };
                    let args = [&server, "--era", "legacy", "--only", case, "-o", "json", "--wait", wait];
                    let ran = torture(home.path(), &args);
                    let found = ran.code == Some(1)
                        && failed(&ran.json()).iter().any(|(_, why)| why.contains(words))
                        && shows_its_message(fault, &ran.json());
                    if !found {
                        wrong
                            .lock()
                            .push(format!("{fault}: {:?} {} {}", ran.code, ran.out, ran.err));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_of_the_handshake_are_found() {
    check(HANDSHAKE);
}

#[test]
fn faults_of_json_rpc_are_found() {
    check(JSON_RPC);
}

#[test]
fn faults_of_lists_are_found() {
    check(LISTS);
}

#[test]
fn faults_of_tool_definitions_are_found() {
    check(TOOLS);
}

#[test]
fn a_name_that_sounds_as_if_a_tool_writes_is_advice_and_no_fault() {
    let home = TempDir::new().unwrap();
    let server = broken(&python(), "annotations/name", home.path());
    let args = [&server, "--era", "legacy", "--only", "annotations", "-o", "json"];
    let ran = torture(home.path(), &args);
    let card = ran.json();
    assert_eq!((ran.code, card["grade"].as_str()), (Some(0), Some("A")), "{card:#}");
    let advice = card["cases"][0]["advice"][0].as_str().unwrap();
    assert!(advice.contains("`add` is declared read-only"), "{advice}");
}

#[test]
fn faults_of_calls_are_found() {
    check(CALLS);
}

#[test]
fn faults_of_the_check_of_arguments_are_found() {
    check(ARGUMENTS);
}

#[test]
fn faults_of_the_process_are_found() {
    check(PROCESS);
}

#[test]
fn faults_of_the_http_server_are_found() {
    let home = TempDir::new().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/torture/broken_http.py");
    let server = Listening::start(Command::new(python()).args(["-I", "-S"]).arg(server));
    let ran = torture(
        home.path(),
        &[&server.url, "--era", "legacy", "--only", "http", "-o", "json"],
    );
    let card = ran.json();
    let found: Vec<&str> = failed(&card).into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, ["origin", "unknown-session", "accepted"], "{card:#}");
}

#[test]
fn the_demo_server_passes_over_http() {
    let home = TempDir::new().unwrap();
    let server =
        Listening::start(Command::new(env!("CARGO_BIN_EXE_pegboard")).args(["demo-server", "--transport", "http"]));
    let ran = torture(home.path(), &[&server.url, "-o", "json"]);
    let card = ran.json();
    assert_eq!(failed(&card), [], "{card:#}");
    assert_eq!((ran.code, card["transport"].as_str()), (Some(0), Some("http")));
}

#[test]
fn secrets_in_a_url_are_hidden_wherever_the_server_is_named() {
    let home = TempDir::new().unwrap();
    let junit = home.path().join("report.xml");
    let server =
        Listening::start(Command::new(env!("CARGO_BIN_EXE_pegboard")).args(["demo-server", "--transport", "http"]));
    let url = format!("{}?api_key=querysecret123", server.url);
    for format in ["text", "json"] {
        let args = [&url, "--only", "ping", "-o", format, "--junit", junit.to_str().unwrap()];
        let ran = torture(home.path(), &args);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        for shown in [&ran.out, &ran.err, &fs::read_to_string(&junit).unwrap()] {
            assert!(!shown.contains("querysecret123"), "{shown}");
        }
        assert!(ran.out.contains("?api_key=****"), "{}", ran.out);
    }
    drop(server);
    let ran = torture(home.path(), &[&url, "--only", "ping", "-o", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let hint = "`pegboard --server it=URL doctor it` says more";
    assert!(ran.err.contains(hint), "{}", ran.err);
    assert!(
        !format!("{}{}", ran.out, ran.err).contains("querysecret123"),
        "{}",
        ran.err
    );
}

/// A server over HTTP that prints its address. It is killed when this is dropped.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start(command: &mut Command) -> Self {
        let mut server = Self {
            child: command.stdout(Stdio::piped()).spawn().unwrap(),
            url: String::new(),
        };
        let line = first_line(server.child.stdout.take().unwrap());
        line.trim()
            .strip_prefix("listening on ")
            .unwrap()
            .clone_into(&mut server.url);
        server
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_server_without_a_fault_passes_every_case() {
    let home = TempDir::new().unwrap();
    let server = broken(&python(), "none", home.path());
    let ran = torture(home.path(), &[&server, "-o", "json"]);
    let card = ran.json();
    assert_eq!(failed(&card), [], "{card:#}");
    assert_eq!((ran.code, card["grade"].as_str()), (Some(0), Some("A")));
}

#[test]
fn the_demo_server_passes_every_case_in_both_eras() {
    let home = TempDir::new().unwrap();
    let junit = home.path().join("report.xml");
    let ran = torture(home.path(), &["demo", "-o", "json", "--junit", junit.to_str().unwrap()]);
    let card = ran.json();
    assert_eq!(failed(&card), [], "{card:#}");
    assert_eq!(ran.code, Some(0));
    assert_eq!(card["eras"], serde_json::json!(["legacy", "modern"]));
    let xml = fs::read_to_string(junit).unwrap();
    assert!(
        xml.contains("<testsuites name=\"pegboard torture demo\"") && xml.contains("failures=\"0\""),
        "{xml}"
    );
}

#[test]
fn a_word_is_a_configured_server_or_else_a_program_on_path() {
    let home = TempDir::new().unwrap();
    let program = home.path().join("torture-me");
    let command = broken(&python(), "none", home.path());
    fs::write(&program, format!("#!/bin/sh\nexec {command}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap());
    for server in ["torture-me", "./torture-me"] {
        let ran = torture_with(home.path(), &[server, "--only", "ping", "-o", "json"], &path);
        let card = ran.json();
        assert_eq!((ran.code, &card["passed"]), (Some(0), &1.into()), "{card:#}");
    }
    let config = "[servers.torture-me]\ncommand = 'false'\n";
    fs::write(home.path().join("pegboard.toml"), config).unwrap();
    let ran = torture_with(home.path(), &["torture-me", "-c", "pegboard.toml"], &path);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(
        ran.err.contains("`pegboard doctor torture-me` says more"),
        "{}",
        ran.err
    );
}

#[test]
fn a_word_that_is_neither_a_server_nor_a_program_is_said_to_be_neither() {
    let home = TempDir::new().unwrap();
    let ran = torture(home.path(), &["no-such-thing"]);
    assert_eq!(ran.code, Some(2));
    let said = "there is no server `no-such-thing`, and no program of this name on PATH";
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn a_command_that_opens_no_session_is_a_matter_for_the_doctor() {
    let home = TempDir::new().unwrap();
    let ran = torture(home.path(), &["false --now"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let hint = "`pegboard --server it='false --now' doctor it` says more";
    assert!(ran.err.contains(hint), "{}", ran.err);
}

#[test]
fn every_case_of_stdio_has_a_broken_server() {
    let home = TempDir::new().unwrap();
    let ran = torture(home.path(), &["demo", "--only", "nothing"]);
    assert_eq!(ran.code, Some(2));
    // The hint lists all cases and groups.
    let groups = [
        "arguments",
        "calls",
        "handshake",
        "http",
        "json-rpc",
        "lists",
        "process",
        "tools",
    ];
    let over_http = ["accepted", "origin", "unknown-session"];
    let names = ran.err.split("the cases and groups are ").nth(1).unwrap();
    for name in names
        .trim()
        .split(", ")
        .map(|name| name.trim_matches(|c: char| c.is_whitespace()))
    {
        let is_tried = ALL.iter().copied().flatten().any(|(fault, _)| *fault == name);
        assert!(
            is_tried || groups.contains(&name) || over_http.contains(&name),
            "no broken server for `{name}`"
        );
    }
}

#[test]
fn a_tool_that_is_not_declared_read_only_is_not_called() {
    let home = TempDir::new().unwrap();
    let log = home.path().join("called");
    let script = home.path().join("server.py");
    fs::write(
        &script,
        format!(
            "import json, sys\nfor line in sys.stdin:\n    m = json.loads(line)\n    if 'id' not in m: continue\n    r = {{}}\n    \
             if m['method'] == 'initialize': r = {{'protocolVersion': '2025-11-25', 'capabilities': {{'tools': {{}}}}, 'serverInfo': {{'name': 'w', 'version': '1'}}}}\n    \
             if m['method'] == 'tools/list': r = {{'tools': [{{'name': 'wipe', 'inputSchema': {{'type': 'object'}}}}]}}\n    \
             if m['method'] == 'tools/call' and m['params'].get('name') == 'wipe':\n        open({log:?}, 'a').write('x'); r = {{'content': []}}\n    \
             print(json.dumps({{'jsonrpc': '2.0', 'id': m['id'], 'result': r}}), flush=True)\n"
        ),
    )
    .unwrap();
    let server = format!("{} -I -S {}", python(), script.display());
    let args = [
        server.as_str(),
        "--era",
        "legacy",
        "--only",
        "calls",
        "--only",
        "arguments",
        "-o",
        "json",
    ];
    torture(home.path(), &args);
    assert!(!log.exists(), "the tool was called");
    torture(home.path(), &[&args[..], &["--tool", "wipe"]].concat());
    assert!(log.exists(), "the tool was named and not called");
}
