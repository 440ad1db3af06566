//! `pegboard record` and `pegboard replay`: a fake server made of a real run.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    ends::Ends,
    home::{Home, Ran},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pegboard");

/// Records a listing and some calls of the demo server.
fn recorded(home: &Home) {
    let server = format!("--server=demo={PROGRAM} record run.jsonl -- {PROGRAM} demo-server");
    let secret = "text=ghp_0123456789abcdefghijABCDEFGHIJ012345";
    home.run(&["call", "demo.echo", secret, &server]).ends_with(0);
    let masked = fs::read_to_string(home.path("run.jsonl")).unwrap();
    assert!(!masked.contains("ghp_0123456789"), "{masked}");
    home.run(&["call", "demo.calculate", "expression=6*7", &server])
        .ends_with(0)
        .prints("42");
}

#[test]
fn a_recording_answers_as_the_server_did_and_has_no_secrets() {
    let home = Home::new();
    recorded(&home);
    assert_eq!(
        fs::metadata(home.path("run.jsonl")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let fake = format!("--server=fake={PROGRAM} replay run.jsonl");
    home.run(&["call", "fake.calculate", "expression=6*7", &fake])
        .ends_with(0)
        .prints("42");
    let tools = home.run(&["tools", "-o", "json", &fake]).ends_with(0).json();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7);
    let other = home.run(&["call", "fake.calculate", "expression=1+1", &fake, "-o", "json"]);
    assert!(
        other.json()["text"]
            .as_str()
            .unwrap()
            .contains("the recording has no answer"),
        "{other:?}"
    );
    let lenient = format!("{fake} --match lenient");
    home.run(&["call", "fake.calculate", "expression=1+1", &lenient])
        .ends_with(0)
        .prints("42");
}

#[test]
fn a_call_with_a_secret_is_replayed_without_the_recording_having_it() {
    let home = Home::new();
    let server = format!("--server=demo={PROGRAM} record run.jsonl -- {PROGRAM} demo-server");
    let secret = "text=ghp_0123456789abcdefghijABCDEFGHIJ012345";
    home.run(&["call", "demo.echo", secret, &server]).ends_with(0);
    assert!(!fs::read_to_string(home.path("run.jsonl")).unwrap().contains("ghp_0123"));
    let fake = format!("--server=fake={PROGRAM} replay run.jsonl");
    home.run(&["call", "fake.echo", secret, &fake]).ends_with(0);
    home.run(&["call", "fake.echo", "text=other", &fake]).ends_with(1);
}

#[test]
fn values_without_a_name_mean_the_same_in_a_replay() {
    let home = Home::new();
    let schema = json!({"type": "object", "required": ["z", "a"], "properties": {}}).to_string();
    // A tree of JSON sorts its keys, so the text is made by hand.
    let schema = schema.replace(
        "\"properties\":{}",
        "\"properties\":{\"z\":{\"type\":\"string\"},\"a\":{\"type\":\"string\"}}",
    );
    let tools = format!("{{\"tools\":[{{\"name\":\"t\",\"inputSchema\":{schema}}}]}}");
    let line = |method: &str, params: serde_json::Value, result: &str| {
        let params = params.to_string();
        format!(
            "{{\"kind\":\"exchange\",\"at\":\"\",\"method\":\"{method}\",\"params\":{params},\"result\":{result},\"error\":null}}"
        )
    };
    let server = json!({"kind": "server", "at": "", "server_info": {"name": "x", "version": "1"},
                        "capabilities": {"tools": {}}, "instructions": null});
    let call = json!({"name": "t", "arguments": {"z": "first", "a": "second"}});
    let text = [
        server.to_string(),
        line("tools/list", json!({}), &tools),
        line("tools/call", call, r#"{"content":[{"type":"text","text":"right"}]}"#),
    ];
    home.write("run.jsonl", &format!("{}\n", text.join("\n")));
    let fake = format!("--server=fake={PROGRAM} replay run.jsonl");
    home.run(&["call", "fake.t(\"first\", \"second\")", &fake])
        .ends_with(0)
        .prints("right");
    // The same through a recording of the replay.
    let again = format!("--server=fake={PROGRAM} record again.jsonl -- {PROGRAM} replay run.jsonl");
    home.run(&["call", "fake.t(\"first\", \"second\")", &again])
        .ends_with(0)
        .prints("right");
    let recorded = fs::read_to_string(home.path("again.jsonl")).unwrap();
    assert!(recorded.contains("\"properties\":{\"z\":"), "{recorded}");
}

#[test]
fn a_full_disk_leaves_whole_lines_and_is_said_at_the_end() {
    let home = Home::new();
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" record run.jsonl -- \"$0\" demo-server";
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", script, PROGRAM])
        .current_dir(home.path("."))
        .env_clear()
        .env("CI", "1");
    shell.env("PATH", "/usr/bin:/bin").env("HOME", home.path("."));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    Ran::fed(shell, &format!("{hello}\n{ready}\n{list}\n"))
        .ends_with(3)
        .says("the recording lacks a line");
    let text = fs::read_to_string(home.path("run.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_recording_that_is_cut_off_is_replayed_without_its_last_line() {
    let home = Home::new();
    recorded(&home);
    let text = fs::read(home.path("run.jsonl")).unwrap();
    let cut: Vec<u8> = [text.as_slice(), "{\"kind\":\"exchange\",\"at\":\"é".as_bytes()].concat();
    fs::write(home.path("run.jsonl"), &cut[..cut.len() - 1]).unwrap();
    home.run(&["replay", "run.jsonl"])
        .ends_with(0)
        .says("the last one, is cut off and left out");
    let fake = format!("--server=fake={PROGRAM} replay run.jsonl");
    home.run(&["call", "fake.calculate", "expression=6*7", &fake])
        .ends_with(0)
        .prints("42");
}

#[test]
fn a_run_that_records_nothing_keeps_the_recording_that_is_there() {
    let home = Home::new();
    home.write("run.jsonl", "kept\n");
    let names = || {
        let entries = fs::read_dir(home.path(".")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name.to_string_lossy().contains("run.jsonl"));
        names
    };
    home.run(&["record", "run.jsonl", "--", "no-such-program"])
        .ends_with(3)
        .says("no-such-program");
    assert_eq!(fs::read_to_string(home.path("run.jsonl")).unwrap(), "kept\n");
    // Its client is gone before it has asked anything.
    home.run(&["record", "run.jsonl", "--", PROGRAM, "demo-server"])
        .ends_with(0);
    assert_eq!(fs::read_to_string(home.path("run.jsonl")).unwrap(), "kept\n");
    assert_eq!(names(), ["run.jsonl"]);
    recorded(&home);
    assert!(!fs::read_to_string(home.path("run.jsonl")).unwrap().contains("kept"));
    assert_eq!(names(), ["run.jsonl"]);
}

#[test]
fn a_recording_is_served_over_http_too() {
    let home = Home::new();
    recorded(&home);
    let mut command = home.pegboard(&["replay", "run.jsonl", "--listen", "0"]);
    let mut fake = Ends(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(fake.0.stderr.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap().replace("listening on ", "");
    let ran = home.run(&[
        "call",
        "fake.calculate",
        "expression=6*7",
        "-o",
        "json",
        &format!("--server=fake={url}"),
    ]);
    assert_eq!(ran.ends_with(0).json()["structured"], json!({"value": 42}));
}

/// Makes a named pipe.
fn pipe(home: &Home) {
    let made = Command::new("mkfifo").arg(home.path("pipe")).status().unwrap();
    assert!(made.success());
}

#[test]
fn the_wait_for_a_recording_from_a_pipe_ends_at_the_deadline() {
    let home = Home::new();
    pipe(&home);
    home.run(&["replay", "pipe", "--timeout", "100ms"])
        .ends_with(124)
        .says("the timeout passed");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_wait_for_a_recording_from_a_pipe() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    pipe(&home);
    let mut replay = home.pegboard(&["replay", "pipe"]);
    let replay = replay.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Opened once both ends are.
    let writer = fs::OpenOptions::new().write(true).open(home.path("pipe")).unwrap();
    kill_process(Pid::from_child(&replay), Signal::TERM).unwrap();
    Ran::end_of(replay).ends_with(130).says("interrupted");
    drop(writer);
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let home = Home::new();
    home.run(&["replay", "missing.jsonl"])
        .ends_with(2)
        .says("missing.jsonl");
    home.write("other.jsonl", "{\"a\": 1}\n");
    home.run(&["replay", "other.jsonl"])
        .ends_with(2)
        .says("line 1 is not one of a recording");
    home.run(&["replay", "other.jsonl", "--listen", "0.0.0.0:0"])
        .ends_with(2)
        .says("other machines");
    home.run(&["record", "missing/run.jsonl"])
        .ends_with(2)
        .says("cannot be written");
}
