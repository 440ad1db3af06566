//! What a record costs a call. Run it alone: `cargo test --release -p pegboard --test audit -- --ignored --nocapture cost`.

use std::time::Duration;

use pegboard::Pegboard;
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;
use tokio::time::Instant;

use crate::{stage::Stage, support::*};

const CALLS: u32 = 5000;

/// The mean time of a call.
async fn mean(board: &Pegboard) -> Duration {
    let tools = board.toolset();
    call(&tools, "fx.write", json!({})).await;
    let started = Instant::now();
    for n in 0..CALLS {
        call(&tools, "fx.write", json!({"n": n, "text": "some text"})).await;
    }
    started.elapsed() / CALLS
}

#[tokio::test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "the result of a measurement")]
async fn a_log_slows_calls_down_by_little() {
    let server = FakeServer::new("fx").tool(Tool::new("write").echoes());
    let (plain, _handle) = in_memory(&server);
    let without = mean(&plain).await;
    let with = mean(&Stage::new(&server, |_| {}).board).await;
    let required = mean(&Stage::with(&server, |_| {}, |audit| audit.required = true).board).await;
    println!("a call without a log {without:?}, with one {with:?}, with a required one {required:?}");
    assert!(with < without * 2 && required < without + Duration::from_millis(2));
}
