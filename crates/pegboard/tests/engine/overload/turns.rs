//! Clients that want more than a server can do.

use std::time::Duration;

use futures_util::future::join_all;
use pegboard::{Kind, Pegboard, Reply, Toolset, View};
use pegboard_testkit::{FakeServer, MemoryHandle, Tool};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

/// How many calls of one client wait in a queue that no other client uses.
const WAITING: usize = 256;

/// A server whose calls take a second, with two calls in flight.
fn slow_server() -> (Pegboard, MemoryHandle) {
    let fake = FakeServer::new("fx").tool(Tool::new("slow").answers_text("done").after(secs(1)));
    in_memory_with(&fake, set_to(|settings| settings.limits.max_in_flight = 2))
}

/// A view as a client has it that opens one for each request.
fn view_of(board: &Pegboard, client: &str) -> Toolset {
    board.toolset_with(View::new().principal(client))
}

/// Makes a call, and tells how long it took.
async fn slow_call(board: &Pegboard, client: &str) -> (Reply, Duration) {
    let (tools, began) = (view_of(board, client), Instant::now());
    (call(&tools, "fx.slow", json!({})).await, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_thousand_calls_delays_the_call_of_another_by_a_second() {
    let (board, _handle) = slow_server();
    view_of(&board, "first").list(PATIENCE).await;
    let greedy = join_all((0..1000).map(|_| slow_call(&board, "greedy")));
    let modest = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut replies = Vec::new();
        for _ in 0..20 {
            replies.push(slow_call(&board, "modest").await);
        }
        replies
    };
    let (_, modest) = tokio::join!(greedy, modest);
    for (reply, took) in modest {
        assert_eq!(reply.text(), "done");
        // At most a second until a call ends, and one for the call itself.
        assert!(took <= secs(2), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_five_times_as_many_calls_as_fit_those_that_fit_are_served_and_the_others_refused_at_once() {
    let (board, handle) = slow_server();
    view_of(&board, "client").list(PATIENCE).await;
    let fitting = 2 + WAITING;
    let replies = join_all((0..5 * fitting).map(|_| slow_call(&board, "client"))).await;
    let (served, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|(reply, _)| !reply.is_error());
    assert_eq!((served.len(), refused.len()), (fitting, 4 * fitting));
    assert_eq!(handle.count("tools/call"), fitting, "a refused call is not sent");
    for (reply, took) in refused {
        assert_outcome(&reply, Kind::LimitExceeded, false);
        assert_eq!(took, Duration::ZERO);
        let wait = reply.outcome.retry_after().expect("a time to wait");
        assert!((secs(1)..=secs(60)).contains(&wait), "{wait:?}");
    }
    let longest = served.iter().map(|(_, took)| *took).max().unwrap();
    assert_eq!(longest.as_secs(), fitting as u64 / 2, "two calls each second");
    let status = &board.status().servers[0];
    assert_eq!((status.in_flight, status.queued), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_time_to_wait_follows_the_pace_of_the_server() {
    let (board, _handle) = slow_server();
    view_of(&board, "client").list(PATIENCE).await;
    let calls = join_all((0..2 + WAITING).map(|_| slow_call(&board, "client")));
    let late = async {
        tokio::time::sleep(Duration::from_millis(60_500)).await;
        // As many calls as have been served meanwhile, and one more.
        let more = join_all((0..121).map(|_| slow_call(&board, "client"))).await;
        let refused = more.into_iter().find(|(reply, _)| reply.is_error()).expect("a refusal");
        assert_eq!(refused.1, Duration::ZERO);
        refused.0.outcome.retry_after().unwrap()
    };
    let (_, wait) = tokio::join!(calls, late);
    assert_eq!(
        wait.as_secs(),
        60,
        "256 calls at two each second, told as at most a minute"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_thousand_reads_delays_the_read_of_another_by_one_read() {
    let fake = FakeServer::new("fx")
        .capabilities(json!({"resources": {}}))
        .resource("a:a", "text")
        .fault_on(
            pegboard_testkit::When::method("resources/read"),
            pegboard_testkit::Fault::LateAnswer { ms: 1000 },
        );
    let (board, _handle) = in_memory_with(&fake, set_to(|settings| settings.limits.max_in_flight = 2));
    let board = &board;
    let read = |client: &'static str| async move {
        let began = Instant::now();
        let read = view_of(board, client).read_resource("fx", "a:a").await;
        (read, began.elapsed())
    };
    read("first").await.0.unwrap();
    let greedy = join_all((0..1000).map(|_| read("greedy")));
    let (greedy, (modest, took)) = tokio::join!(greedy, read("modest"));
    modest.unwrap();
    assert!(took <= secs(3), "{took:?}");
    let refused = greedy.into_iter().filter_map(|(read, took)| Some((read.err()?, took)));
    let at_once: Vec<_> = refused.filter(|(_, took)| took.is_zero()).collect();
    assert_eq!(at_once.len(), 1000 - 2 - WAITING);
    for (failure, _) in at_once {
        assert_eq!(failure.kind, Kind::LimitExceeded, "{failure}");
        assert!(failure.retry_after.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_server_that_is_still_starting_is_told_when_to_come_again() {
    let fake = FakeServer::new("fx").fault(pegboard_testkit::Fault::SilentHandshake);
    let (board, _handle) = in_memory_with(&fake, in_process_settings());
    let tools = board.toolset();
    let failure = tools.get_prompt("fx", "p", &serde_json::Map::new()).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Unavailable, "{failure}");
    assert!(failure.retry_after.is_some(), "{failure:?}");
}
