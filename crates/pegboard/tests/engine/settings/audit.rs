//! The audit log as the config sets it up.

use std::path::Path;

use pegboard::Kind;
use serde_json::Value;

use crate::settings::fixtures::*;

/// Makes some calls under settings at the top of a file, closes the board, and returns how the calls ended.
async fn calls(top: &str, count: usize) -> Vec<Kind> {
    let stage = Stage::of_file(top, "", &good());
    let mut kinds = Vec::new();
    for _ in 0..count {
        kinds.push(stage.call("hello").await.outcome.kind());
    }
    stage.board.shutdown().await;
    kinds
}

/// The number of files in a folder, without the state file.
fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count() - 1
}

#[tokio::test]
async fn calls_are_recorded_in_the_file_that_the_config_names() {
    for table in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("calls.jsonl");
        let top = match table {
            false => format!("audit = '{}'", log.display()),
            true => format!("audit = {{ file = '{}' }}", log.display()),
        };
        assert_eq!(calls(&top, 1).await, [Kind::Ok]);
        let text = std::fs::read_to_string(&log).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let events: Vec<&str> = events.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["header", "decision", "call"], "{top}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_goes_to_a_syslog_and_is_required_there_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let top = |path: &Path| format!("audit = {{ to = 'unix:{}', required = true }}", path.display());
    // At another place, because the log of a board that has ended may still write once.
    let nothing_listens = calls(&top(&folder.path().join("none")), 1).await;
    assert_eq!(nothing_listens, [Kind::NotPermitted]);
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(30)))
        .unwrap();
    assert_eq!(calls(&top(&path), 1).await, [Kind::Ok]);
    let mut lines = String::new();
    for event in ["header", "decision", "call"] {
        let mut read = [0; 8192];
        let length = socket.recv(&mut read).unwrap();
        let message = std::str::from_utf8(&read[..length]).unwrap();
        let (head, line) = message.split_once(" audit - ").expect(message);
        assert!(head.starts_with("<110>1 ") && head.contains(" pegboard "), "{message}");
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["event"], event, "{message}");
        lines.push_str(line);
        lines.push('\n');
    }
    // Its chain is that of a file into which the messages are collected.
    let collected = folder.path().join("collected.jsonl");
    std::fs::write(&collected, lines).unwrap();
    let check = pegboard::audit::verify(&collected, None).unwrap();
    assert!(check.broken.is_none() && check.records == 3, "{check:?}");
}

#[tokio::test]
async fn a_required_log_refuses_calls_that_it_cannot_record() {
    let folder = tempfile::tempdir().unwrap();
    for (required, expected) in [(false, Kind::Ok), (true, Kind::NotPermitted)] {
        // A folder cannot be written to.
        let top = format!(
            "audit = {{ file = '{}', required = {required} }}",
            folder.path().display()
        );
        assert_eq!(calls(&top, 1).await, [expected], "{top}");
    }
}

#[tokio::test]
async fn a_full_file_is_followed_by_another_and_the_oldest_is_removed() {
    for (limits, expected) in [
        ("max_size = '1MiB', max_files = 5", 1),
        ("max_size = '4KiB', max_files = 3", 3),
        ("max_size = '4KiB', max_files = 2", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("calls.jsonl");
        // A required log is written call by call, so that a file is full at the same place in every run.
        let top = format!("audit = {{ file = '{}', required = true, {limits} }}", log.display());
        calls(&top, 60).await;
        assert_eq!(files(folder.path()), expected, "{limits}");
        assert_eq!(pegboard::audit::verify(&log, None).unwrap().broken, None, "{limits}");
    }
}
