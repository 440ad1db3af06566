//! `pegboard audit`, and the log that calls leave.

use std::fs;

use pegboard_testkit::{FakeServer, Tool};

use super::home::{Home, Ran};

const CANARY: &str = "c4nary-7f3a9b1e";

/// A home whose config has an audit log, `audit/calls.jsonl`.
fn home() -> Home {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("echo").echoes());
    let entry = home.entry("fx", fake, "");
    home.config(&format!("audit = '../../audit/calls.jsonl'\n{entry}"));
    home
}

#[test]
fn a_log_of_calls_is_shown_and_verified() {
    let home = home();
    let argument = format!("text={CANARY}");
    for _ in 0..2 {
        home.run(&["call", "fx.echo", &argument]).ends_with(0);
    }
    let json = home.run(&["audit", "verify", "-o", "json"]);
    let json = json.ends_with(0).json();
    // A header, and a decision and an end for each call.
    assert_eq!((&json["ok"], &json["records"]), (&true.into(), &5.into()));
    let shown = home.run(&["audit", "show"]);
    shown
        .ends_with(0)
        .prints("fx.echo")
        .prints("decision")
        .prints("allowed")
        .prints("call")
        .prints("ok");
    let records = home.run(&["audit", "show", "-o", "json", "--last", "1"]);
    assert_eq!(records.ends_with(0).json()["records"].as_array().unwrap().len(), 1);
    let log = fs::read_to_string(home.path("audit/calls.jsonl")).unwrap();
    assert!(!log.contains(CANARY) && !shown.out.contains(CANARY));
    let head = json["head"].as_str().unwrap();
    home.run(&["audit", "verify", "--head", head])
        .ends_with(0)
        .prints("intact: 5 records");
}

#[test]
fn a_changed_log_is_exit_code_1_and_the_place_is_named() {
    let home = home();
    home.run(&["call", "fx.echo", "text=a"]).ends_with(0);
    let log = home.path("audit/calls.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("allowed", "denied")).unwrap();
    let ran = home.run(&["audit", "verify"]);
    ran.ends_with(1)
        .says("calls.jsonl:3")
        .says("the record before this one was changed");
    let json = home.run(&["audit", "verify", "-o", "json"]);
    let json = json.ends_with(1).json();
    assert_eq!(
        (&json["ok"], &json["broken"]["kind"], &json["broken"]["line"]),
        (&false.into(), &"changed".into(), &3.into())
    );
    fs::write(&log, text).unwrap();
    let other = "0".repeat(64);
    home.run(&["audit", "verify", "--head", &other]).ends_with(1);
    home.run(&["audit", "verify", "--head", "xyz"]).ends_with(2);
}

#[test]
fn without_a_log_there_is_nothing_to_verify() {
    let home = Home::new();
    home.config("[servers.a]\nurl = 'https://h.example/mcp'\n");
    home.run(&["audit", "verify"]).ends_with(2).says("no audit log");
    home.run(&["audit", "verify", "missing.jsonl"])
        .ends_with(2)
        .says("missing.jsonl");
}

/// A call that cannot be recorded is not made if the log is required.
#[test]
fn a_required_log_that_cannot_be_written_is_exit_code_5() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("echo").echoes());
    let entry = home.entry("fx", fake, "");
    home.config(&format!(
        "audit = {{ file = '../../notes.txt', required = true }}\n{entry}"
    ));
    home.write("notes.txt", "mine\n");
    home.run(&["call", "fx.echo", "text=a"])
        .ends_with(5)
        .says("audit log cannot be written");
    assert_eq!(fs::read_to_string(home.path("notes.txt")).unwrap(), "mine\n");
}

/// The rule and the tool of each decision in the log.
fn decisions(home: &Home) -> Vec<(String, String)> {
    let shown = home.run(&["audit", "show", "-o", "json"]);
    let records = shown.ends_with(0).json()["records"].as_array().unwrap().clone();
    let decisions = records.iter().filter(|record| record["event"] == "decision");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    decisions
        .map(|record| (text(&record["rule"]), text(&record["tool"])))
        .collect()
}

/// Calls that no server sees, with and without arguments.
#[test]
fn calls_that_are_refused_are_in_the_log() {
    let home = Home::new();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("echo").echoes())
        .tool(Tool::new("hidden"));
    let entry = home.entry("fx", fake, "pins = 'approve'\ndeny = ['hidden']");
    home.config(&format!("audit = '../../audit/calls.jsonl'\n{entry}"));
    home.run(&["call", "fx.echo", "text=a"]).ends_with(5);
    home.run(&["call", "fx.echo"]).ends_with(5);
    home.run(&["call", "fx.hidden", "a=b"]).ends_with(5);
    let unknown = format!("fx.{CANARY}");
    home.run(&["call", &unknown, "a=b"]).ends_with(2);
    let expected = [
        ("held", "echo"),
        ("held", "echo"),
        ("config", "hidden"),
        ("unknown_tool", ""),
    ];
    let expected = expected.map(|(rule, tool)| (rule.to_owned(), tool.to_owned()));
    assert_eq!(decisions(&home), expected);
    let log = fs::read_to_string(home.path("audit/calls.jsonl")).unwrap();
    assert!(!log.contains(CANARY), "{log}");
    home.run(&["audit", "verify"]).ends_with(0).prints("intact");
}

#[test]
fn a_call_of_a_server_whose_project_file_is_not_approved_is_in_the_log() {
    let home = home();
    home.write("repo/.git/HEAD", "");
    home.write("repo/pegboard.toml", "[servers.evil]\ncommand = '/bin/false'\n");
    let mut command = home.pegboard(&["call", "evil.t", "a=b"]);
    command.current_dir(home.path("repo"));
    Ran::of(command).ends_with(5);
    assert_eq!(decisions(&home), [("project_file".to_owned(), String::new())]);
}

#[test]
fn a_log_and_its_state_file_belong_together() {
    let home = home();
    home.run(&["call", "fx.echo", "text=a"]).ends_with(0);
    let (log, state) = (home.path("audit/calls.jsonl"), home.path("audit/calls.jsonl.state"));
    let kept = fs::read(&state).unwrap();
    fs::remove_file(&state).unwrap();
    home.run(&["audit", "verify"])
        .ends_with(1)
        .says("the state file is gone");
    let named = log.display().to_string();
    home.run(&["audit", "verify", &named])
        .ends_with(0)
        .prints("no state file");
    // With the mode that the log has, which only the user may read.
    fs::copy(&log, &state).unwrap();
    fs::write(&state, kept).unwrap();
    home.run(&["audit", "verify"]).ends_with(0).prints("intact");
    fs::remove_file(&log).unwrap();
    home.run(&["audit", "verify"]).ends_with(1).says("the log is gone");
    let json = home.run(&["audit", "verify", "-o", "json"]).ends_with(1).json();
    assert_eq!(json["broken"]["kind"], "log_missing");
}

#[test]
fn show_reads_the_files_before_a_rotation_too() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("t").read_only().answers_text("done"));
    home.config(&format!(
        "audit = {{ file = '../../audit/calls.jsonl', max_size = '4KiB' }}\n{}",
        home.entry("fx", fake, "")
    ));
    for _ in 0..8 {
        home.run(&["call", "fx.t"]).ends_with(0);
    }
    let older = fs::read_dir(home.path("audit")).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("calls.jsonl.")
    });
    assert!(older.count() > 0, "the log was rotated");
    let shown = home.run(&["audit", "show", "-o", "json"]).ends_with(0).json();
    let records = shown["records"].as_array().unwrap();
    let calls = records.iter().filter(|record| record["event"] == "call");
    assert_eq!(calls.count(), 8);
    let times: Vec<&str> = records.iter().map(|record| record["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let last = home.run(&["audit", "show", "--last", "3", "-o", "json"]).json();
    assert_eq!(last["records"].as_array().unwrap()[..], records[records.len() - 3..]);
}
