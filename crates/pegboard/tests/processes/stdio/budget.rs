//! The board's byte budget for the messages of all servers.

use std::time::Duration;

use pegboard::{Config, Kind, Pegboard, ServerConfig, config::TooLong};
use pegboard_testkit::{Answer, FakeServer, Tool};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    stdio::{fixtures::TestDir, memory::resident, own_process::in_own_process},
    support::*,
};

const MIB: usize = 1 << 20;
const SERVERS: usize = 20;
const ANSWER: usize = 16 * MIB;
const BUDGET: usize = 128 * MIB;

fn board_with(buffered: usize, servers: impl IntoIterator<Item = (String, ServerConfig)>) -> Pegboard {
    let mut config = Config::default();
    config.limits.max_buffered = buffered;
    for (server, settings) in servers {
        config.servers.insert(name(&server), settings);
    }
    Pegboard::open(config)
}

/// A server whose tool `big` answers with `bytes` bytes, of which the board keeps the first ones.
fn talkative(fake: FakeServer, bytes: usize) -> ServerConfig {
    let fake = fake.tool(Tool::new("big").answers(Answer::Bytes(bytes)));
    let mut settings = with_limits(process(&fake), |limits| limits.max_message = ANSWER + MIB);
    settings.policy.masking.enabled = false;
    settings.policy.result.mode = TooLong::Head;
    settings
}

async fn all_is_given_back(board: &Pegboard) {
    let waiting = async {
        while board.metrics().buffered_bytes > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let given_back = tokio::time::timeout(PATIENCE, waiting).await;
    given_back.unwrap_or_else(|_| panic!("{} bytes are left", board.metrics().buffered_bytes));
}

/// Twenty servers answer with more than twice the budget; all answers arrive, and another server is not delayed by them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_answers_of_many_servers_stay_within_the_budget() {
    if !in_own_process(
        "stdio::budget::large_answers_of_many_servers_stay_within_the_budget",
        &[],
    ) {
        return;
    }
    let dir = TestDir::new();
    let big = (0..SERVERS).map(|n| (format!("s{n}"), talkative(FakeServer::new(format!("s{n}")), ANSWER)));
    let board = board_with(BUDGET, big.chain([("fx".to_owned(), process(&dir.fake()))]));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let before = resident("VmRSS:");
    let mut calls = JoinSet::new();
    for n in 0..SERVERS {
        let tools = tools.clone();
        calls.spawn(async move { call(&tools, &format!("s{n}.big"), json!({})).await });
    }
    let (mut highest, mut slowest, mut ended) = (0, Duration::ZERO, 0);
    while ended < SERVERS {
        let began = Instant::now();
        assert_eq!(call(&tools, "fx.echo", json!({"nonce": "n"})).await.text(), "n");
        slowest = slowest.max(began.elapsed());
        highest = highest.max(board.metrics().buffered_bytes);
        while let Some(reply) = calls.try_join_next() {
            let reply = reply.unwrap();
            assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
            ended += 1;
        }
        tokio::task::yield_now().await;
    }
    assert!(highest > 0 && highest <= BUDGET as u64, "{highest} bytes");
    assert!(slowest < PATIENCE, "a neighbour waited for {slowest:?}");
    let grown = (resident("VmHWM:") - before) / 1024;
    assert!(grown < 4 * (BUDGET / MIB) as i64, "{grown} MiB");
    all_is_given_back(&board).await;
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// A response that can never fit the budget fails only its own call, and the error names the setting to raise.
#[tokio::test]
async fn an_answer_without_room_costs_its_call_only() {
    let dir = TestDir::new();
    let board = board_with(MIB, [("fx".to_owned(), talkative(dir.fake(), 2 * MIB))]);
    let tools = board.toolset();
    let reply = call(&tools, "fx.big", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::LimitExceeded, "{}", reply.text());
    assert!(reply.outcome.may_have_executed());
    assert_contains(
        &reply.text(),
        &["no room", "`max_buffered`", "may have been carried out"],
    );
    assert!(reply.outcome.hint().unwrap().contains("max_buffered"));
    assert_eq!(call(&tools, "fx.echo", json!({"nonce": "n"})).await.text(), "n");
    all_is_given_back(&board).await;
    board.shutdown().await;
    dir.assert_no_process_left().await;
}
