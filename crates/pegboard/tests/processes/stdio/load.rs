//! Many concurrent calls on one process, and stable tool lists.

use pegboard_testkit::{Fault, History, Tool};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{stdio::fixtures::TestDir, support::*};

/// Two hundred calls with delays of all lengths, and each gets its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_at_once_get_their_own_answers() {
    const CALLS: usize = 200;
    let dir = TestDir::new();
    let ledger = dir.file("ledger");
    let board = board(with_limits(process(&dir.fake().ledger(&ledger)), |limits| {
        limits.max_in_flight = CALLS
    }));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let history = std::sync::Arc::new(History::new());
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let (tools, history) = (tools.clone(), history.clone());
        calls.spawn(async move {
            let nonce = format!("nonce-{number}");
            // Delays without order: neighbours differ by hundreds of milliseconds.
            let delay = (number * 7919) % 500;
            let padding = "p".repeat((number * 104_729) % 20_000);
            history.invoke(nonce.clone());
            let reply = call(
                &tools,
                "fx.echo",
                json!({"nonce": nonce, "delay_ms": delay, "padding": padding}),
            )
            .await;
            history.ok(nonce, reply.text());
        });
    }
    calls.join_all().await;
    assert_eq!(history.check(&ledger).unwrap().ok, CALLS as u64);
    assert_eq!(dir.log().count("$invalid"), 0);
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// The list is byte-identical across boards and processes.
#[tokio::test]
async fn the_list_is_the_same_over_restarts_of_the_process() {
    let dir = TestDir::new();
    let tools = ["zebra", "ant", "mole"].map(|name| Tool::new(name).read_only());
    let fake = dir.fake().tools(tools).pages_of(2).fault(Fault::OddToolName);
    let mut lists = Vec::new();
    for _ in 0..4 {
        let board = board(process(&fake));
        lists.push(serde_json::to_string(&board.toolset().list(PATIENCE).await).unwrap());
        board.shutdown().await;
    }
    assert_contains(&lists[0], &["fx__ant", "fx__zebra"]);
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
    dir.assert_no_process_left().await;
}

/// `list_changed` works on a process as in memory.
#[tokio::test]
async fn a_changed_list_is_heard_on_the_process() {
    let dir = TestDir::new();
    let notice = Fault::ListChanged { count: 3, every_ms: 20 };
    let fake = dir
        .fake()
        .fault_on(pegboard_testkit::When::method("tools/list").first(1), notice)
        .fault_on(
            pegboard_testkit::When::method("tools/list").after(1),
            Fault::ManyTools { count: 2 },
        );
    let board = board(process(&fake));
    let tools = board.toolset();
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 3);
    let seen = async {
        while tools.list(PATIENCE).await.tools.len() < 5 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.unwrap();
    board.shutdown().await;
    dir.assert_no_process_left().await;
}
