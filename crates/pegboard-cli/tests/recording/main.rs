//! `pegboard record` and `pegboard replay`: a fake server made of a real run.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]
#![cfg(unix)]

#[path = "../command_line/ends.rs"]
mod ends;
#[expect(dead_code, reason = "these tests need only a part of it")]
#[path = "../command_line/home.rs"]
mod home;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use ends::Ends;
use home::Home;
use serde_json::json;

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
