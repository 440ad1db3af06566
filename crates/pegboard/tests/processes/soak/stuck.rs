//! A shutdown of servers that do not cooperate.

use pegboard::{Config, Outcome, Pegboard};
use pegboard_testkit::{Fault, When, read_log};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{soak::fixtures::*, support::*};

/// Servers that ignore every request to end, each with a call in flight, are ended at the same time: one after the other would take 80 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_stuck_servers_are_ended_at_the_same_time() {
    let _alone = alone().await;
    let run = Run::new();
    let log = run.folder().join("log");
    let fake = run
        .fake()
        .log(&log)
        .fault(Fault::IgnoresEof)
        .fault(Fault::IgnoresTerm)
        .fault_on(When::tool("pay"), Fault::NeverAnswers);
    let mut config = Config::default();
    for number in 0..20 {
        config.servers.insert(name(&format!("fx{number}")), process(&fake));
    }
    let board = Pegboard::open(config);
    board.settle(PATIENCE).await;
    let pids: Vec<_> = board.status().servers.iter().filter_map(|server| server.pid).collect();
    assert_eq!(pids.len(), 20, "{:?}", board.status());
    let mut calls = JoinSet::new();
    for number in 0..20 {
        let tools = board.toolset();
        calls.spawn(async move { call(&tools, &format!("fx{number}.pay"), json!({"nonce": number})).await });
    }
    let all_under_way = async {
        while read_log(&log).unwrap().count("tools/call") < 20 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_under_way).await.unwrap();
    let began = Instant::now();
    board.shutdown().await;
    let took = began.elapsed();
    assert!(took < secs(40), "{took:?}");
    for pid in pids {
        assert!(!pegboard_testkit::is_alive(pid), "{pid} is alive after shutdown");
    }
    while let Some(reply) = tokio::time::timeout(PATIENCE, calls.join_next())
        .await
        .expect("calls end")
    {
        let reply = reply.unwrap();
        assert!(matches!(reply.outcome, Outcome::Lost(_)), "{}", reply.text());
    }
    run.assert_no_process_left().await;
}
