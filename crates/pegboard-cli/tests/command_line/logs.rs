//! `pegboard logs` and `--trace-wire`: what servers write, and the messages with them.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use serde_json::Value;

use crate::{
    ends::Ends,
    home::{Home, until},
};

/// A home whose server `chatty` is the demo server behind a script that writes to stderr first.
fn chatty(first: &str) -> Home {
    let home = Home::new();
    let script = home.write(
        "chatty.sh",
        &format!("{first}\nexec {} demo-server\n", env!("CARGO_BIN_EXE_pegboard")),
    );
    home.config(&format!(
        "[servers.chatty]\ncommand = \"sh\"\nargs = [{:?}]\n",
        script.to_str().unwrap()
    ));
    home
}

#[test]
fn what_a_server_writes_to_stderr_is_shown_without_secrets() {
    let home = chatty("echo 'ready to serve' >&2\necho 'password=correct-horse-battery' >&2");
    let ran = home.run(&["logs", "chatty"]);
    ran.ends_with(0).prints(" stderr    ready to serve\n");
    assert!(!ran.out.contains("correct-horse"), "{ran:?}");
    let ran = home.run(&["logs", "chatty", "-n", "1", "-o", "json"]);
    let document = ran.ends_with(0).json();
    assert_eq!(document["lines"].as_array().unwrap().len(), 1, "{document}");
    assert_eq!(
        (&document["server"], &document["error"]),
        (&"chatty".into(), &Value::Null)
    );
}

#[test]
fn a_traceback_keeps_its_indentation() {
    let home = chatty("printf 'Traceback:\\n  File \"a.py\", line 1\\n    x =  1\\n' >&2");
    let ran = home.run(&["logs", "chatty"]);
    ran.ends_with(0)
        .prints(" stderr    Traceback:\n")
        .prints(" stderr      File \"a.py\", line 1\n")
        .prints(" stderr        x =  1\n");
}

#[test]
fn a_server_that_fails_shows_what_it_wrote_and_why() {
    let home = chatty("echo 'no license' >&2\nexit 3");
    let ran = home.run(&["logs", "chatty"]);
    ran.ends_with(3).prints("no license").says("error: ");
    home.run(&["logs", "other"])
        .ends_with(2)
        .says("there is no server `other`");
}

#[test]
fn following_ends_with_the_limit_of_the_command() {
    let home = chatty("echo one >&2");
    let mut command = home.pegboard(&["logs", "chatty", "-f", "-o", "json", "--timeout", "60s"]);
    let mut child = Ends(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line["text"], "one");
}

#[test]
fn the_lines_of_a_daemons_server_are_shown_without_starting_another() {
    let home = chatty("echo started >&2\necho >> starts");
    let _daemon = Ends(
        home.pegboard(&["serve", "--socket-only"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until("the daemon has what its server wrote", || {
        let status = home.run(&["status", "-o", "json"]);
        status.json()["daemon"].is_object() && home.run(&["logs", "chatty"]).out.contains("started")
    });
    let starts = fs::read_to_string(home.path("starts")).unwrap().lines().count();
    home.run(&["logs", "chatty", "--level", "debug"]).prints("started");
    assert_eq!(fs::read_to_string(home.path("starts")).unwrap().lines().count(), starts);
}

#[test]
fn a_trace_has_every_message_masked_and_is_private() {
    let home = chatty("");
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = format!("text={secret}");
    // A file that others could read is theirs no longer.
    let path = home.write("wire.jsonl", "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = home.run(&["call", "chatty.echo", &text, "--trace-wire", "wire.jsonl"]);
    ran.ends_with(0);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let trace = fs::read_to_string(&path).unwrap();
    assert!(!trace.contains(secret), "{trace}");
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["message"]["method"].as_str())
        .collect();
    assert!(methods.contains(&"tools/call"), "{methods:?}");
    assert!(
        lines
            .iter()
            .any(|line| line["direction"] == "received" && line["message"]["result"].is_object())
    );
    assert!(lines.iter().all(|line| line["server"] == "chatty"), "{trace}");
    let ran = home.run(&["status", "--trace-wire", "missing/wire.jsonl"]);
    ran.ends_with(2).says("cannot be written");
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_that_cannot_be_written_is_said_to_be_incomplete() {
    let home = chatty("");
    home.run(&["call", "chatty.echo", "text=a", "--trace-wire", "/dev/full"])
        .ends_with(0)
        .prints("a")
        .says("warning: the trace of `--trace-wire` lacks")
        .says("No space left on device");
}
