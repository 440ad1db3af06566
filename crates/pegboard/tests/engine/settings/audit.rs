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
