//! A log that cannot be written: calls go on with a warning, or are refused.

use std::time::Duration;

use pegboard::{Event, Kind};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{audit::stage::Stage, support::*};

fn server() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("write").echoes())
}

/// Puts a folder where the log should be.
fn block(stage: &Stage) {
    std::fs::create_dir_all(&stage.log).unwrap();
}

fn unblock(stage: &Stage) {
    std::fs::remove_dir(&stage.log).unwrap();
}

#[tokio::test]
async fn by_default_calls_go_on_and_the_log_says_later_what_it_lacks() {
    let stage = Stage::new(&server(), |_| {});
    block(&stage);
    let mut events = stage.board.events();
    let tools = stage.board.toolset();
    let reply = call(&tools, "fx.write", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
    let warned = async {
        loop {
            match events.next().await {
                Some(Event::AuditFailed { reason, .. }) => return reason,
                Some(_) => {}
                None => panic!("the board is gone"),
            }
        }
    };
    let reason = tokio::time::timeout(PATIENCE, warned).await.unwrap();
    assert_contains(&reason, &["calls.jsonl"]);
    unblock(&stage);
    call(&tools, "fx.write", json!({})).await;
    let records = stage.records().await;
    let lost: u64 = records.iter().filter_map(|record| record["records"].as_u64()).sum();
    let written = records.iter().filter(|record| record["event"] != "lost").count() as u64;
    assert_eq!(lost + written, 4, "{records:#?}");
    assert!(lost > 0);
}

#[tokio::test]
async fn a_required_log_that_cannot_be_written_refuses_calls_and_recovers() {
    let stage = Stage::with(&server(), |_| {}, |audit| audit.required = true);
    block(&stage);
    let tools = stage.board.toolset();
    let reply = call(&tools, "fx.write", json!({"text": "a"})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert_contains(&reply.text(), &["the audit log cannot be written"]);
    assert_eq!(stage.fx.count("tools/call"), 0);
    unblock(&stage);
    let reply = call(&tools, "fx.write", json!({"text": "a"})).await;
    assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
    assert_eq!(stage.fx.count("tools/call"), 1);
    assert!(
        pegboard::audit::verify(&stage.log, None).unwrap().last >= 2,
        "before the call was made"
    );
    stage.records().await;
}

/// Nobody calls a tool while all calls are refused, so no record shows that the log can be written again.
#[tokio::test]
async fn the_warning_about_a_log_ends_by_itself_when_it_can_be_written_again() {
    let stage = Stage::with(&server(), |_| {}, |audit| audit.required = true);
    block(&stage);
    let tools = stage.board.toolset();
    for _ in 0..3 {
        let reply = call(&tools, "fx.write", json!({})).await;
        assert_outcome(&reply, Kind::NotPermitted, false);
    }
    let is_warned = || {
        let status = stage.board.status();
        assert_eq!(status.refuses_calls(), !status.healthy);
        status.refuses_calls()
    };
    assert!(is_warned());
    assert!(is_warned(), "it is tried again in vain");
    unblock(&stage);
    let ended = async {
        while is_warned() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    // The end of the last call may have been written by now.
    let records = stage.records().await;
    let lost: u64 = records.iter().filter_map(|record| record["records"].as_u64()).sum();
    let written = records.iter().filter(|record| record["event"] != "lost").count() as u64;
    assert_eq!(lost + written, 3, "{records:#?}");
    assert!(lost > 0);
}

/// Another process holds the lock of the log. Its writer waits, and the calls do not.
#[tokio::test]
async fn calls_do_not_wait_for_a_log_that_another_process_holds() {
    let stage = Stage::new(&server(), |_| {});
    let tools = stage.board.toolset();
    call(&tools, "fx.write", json!({})).await;
    let state = stage.log.with_extension("jsonl.state");
    let opened = async {
        loop {
            if let Ok(file) = std::fs::File::open(&state) {
                return file;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let lock = tokio::time::timeout(PATIENCE, opened).await.unwrap();
    lock.lock().unwrap();
    for _ in 0..100 {
        let reply = call(&tools, "fx.write", json!({})).await;
        assert!(!reply.is_error(), "{}", reply.text());
    }
    drop(lock);
    let records = stage.records().await;
    let lost: u64 = records.iter().filter_map(|record| record["records"].as_u64()).sum();
    let written = records.iter().filter(|record| record["event"] != "lost").count() as u64;
    assert_eq!(lost + written, 202);
}

#[tokio::test]
async fn a_burst_of_calls_is_recorded_to_the_last_one() {
    let stage = Stage::new(&server(), |_| {});
    let tools = stage.board.toolset();
    for _ in 0..1000 {
        call(&tools, "fx.write", json!({})).await;
    }
    let records = stage.records().await;
    assert_eq!(records.len(), 2000);
}
