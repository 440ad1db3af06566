//! Several processes that write to one log, and processes that are killed while they do.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use pegboard::{Answer, Config, NativeTool, NativeTools, Pegboard, ToolCall, config::AuditConfig};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

const LOG: &str = "AUDIT_TEST_LOG";
const CALLS: &str = "AUDIT_TEST_CALLS";

/// The other process: this test, started by the others, calls a tool again and again.
#[tokio::test]
#[ignore = "the process that other tests start"]
async fn a_process_that_calls() {
    let Some(log) = std::env::var_os(LOG) else {
        return;
    };
    let calls = std::env::var(CALLS).unwrap().parse().unwrap();
    let hello = NativeTool::new("hello", "Says hello.", json!({"type": "object"}), |_| async {
        Ok(Answer::from_text("hi"))
    });
    let mut config = Config::default();
    let mut audit = AuditConfig::new(PathBuf::from(log));
    (audit.max_size, audit.max_files) = (64 << 10, 100);
    config.audit = Some(audit);
    let board = Pegboard::builder(config)
        .in_process(name("fx"), NativeTools::new([hello]))
        .open();
    let tools = board.toolset();
    for _ in 0..calls {
        tools.call(ToolCall::new("fx.hello")).await;
    }
    board.shutdown().await;
}

fn start(log: &Path, calls: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "audit::processes::a_process_that_calls"])
        .env(LOG, log)
        .env(CALLS, calls.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn written(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |meta| meta.len())
}

#[test]
fn processes_take_turns_and_their_records_form_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls.jsonl");
    let mut children: Vec<_> = (0..3).map(|_| start(&log, 300)).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let check = pegboard::audit::verify(&log, None).unwrap();
    assert_eq!((check.broken, check.lost, check.torn), (None, 0, 0));
    let headers = check.files.len() as u64;
    assert!(headers > 1, "a file was full");
    assert_eq!(check.records, 3 * 300 * 2 + headers);
}

#[test]
fn a_killed_process_leaves_a_log_that_verifies_and_that_the_next_one_continues() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls.jsonl");
    for round in 0..5_u32 {
        let mut child = start(&log, 1_000_000);
        let (started, before) = (Instant::now(), written(&log));
        while written(&log) == before && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(u64::from(round) * 7));
        child.kill().unwrap();
        child.wait().unwrap();
        let check = pegboard::audit::verify(&log, None).unwrap();
        assert_eq!(check.broken, None, "round {round}");
    }
    assert!(start(&log, 1).wait().unwrap().success());
    let check = pegboard::audit::verify(&log, None).unwrap();
    assert_eq!((check.broken, check.is_last_torn), (None, false));
}
