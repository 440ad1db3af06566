//! More calls than a server has room for, over HTTP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;

use crate::{
    client::{Client, Era},
    fixture::{Fixture, Link, server},
    http,
    isolation::{connect, token},
};

/// The calls in flight at once, and how long each takes: long enough for the queue to fill on a busy machine.
const IN_FLIGHT: usize = 8;
const CALL: Duration = Duration::from_secs(5);
/// Half of a queue, which is the most that one principal may fill of it.
const WAITING: usize = 256;
/// More than fit, and few enough for the file descriptors of one process.
const CALLS: usize = IN_FLIGHT + WAITING + 40;

async fn call(mut client: Client, refused: Arc<AtomicUsize>) {
    let arguments = json!({"delay_ms": CALL.as_millis()});
    let params = json!({"name": "echo", "arguments": arguments});
    let (head, body) = client.response("tools/call", params).await;
    if head.status == 200 {
        assert!(body["result"]["content"].is_array(), "{body}");
        return;
    }
    assert_eq!((head.status, &body["error"]["code"]), (429, &json!(-32000)), "{body}");
    let after = head
        .header("retry-after")
        .and_then(|seconds| seconds.parse::<u32>().ok());
    assert!(after.is_some_and(|seconds| (1..=60).contains(&seconds)), "{after:?}");
    refused.fetch_add(1, Ordering::Relaxed);
}

#[tokio::test]
async fn calls_without_room_are_told_when_to_come_back_and_other_principals_go_on() {
    let with_tokens = |gateway: pegboard_gateway::GatewayBuilder| gateway.token(token("ada")).token(token("bob"));
    let limits = format!("max_in_flight = {IN_FLIGHT}\n");
    let fixture = Fixture::limited(Link::Stdio, server(Era::Legacy), &limits, with_tokens).await;
    let mut bob = connect(&fixture, "bob", Era::Modern).await;
    bob.call("echo", json!({})).await.result();
    let refused = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let client = connect(&fixture, "ada", Era::Modern).await;
        calls.spawn(call(client, refused.clone()));
    }
    let overloaded = async {
        while refused.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(http::PATIENCE, overloaded)
        .await
        .expect("some have no room");
    // The calls of ada that wait take 32 turns; bob waits for one.
    bob.call("echo", json!({"who": "bob"})).await.result();
    let waiting: usize = fixture.board.status().servers.iter().map(|row| row.queued).sum();
    assert!(
        waiting > WAITING / 2,
        "bob has not waited for the {waiting} calls of ada"
    );
    while let Some(ended) = calls.try_join_next() {
        ended.expect("a proper response");
    }
    // Ada leaves.
    drop(calls);
    let free = async {
        while fixture.board.status().servers.iter().any(|row| row.queued > 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(http::PATIENCE, free)
        .await
        .expect("the queue is free");
    fixture.board.shutdown().await;
}
