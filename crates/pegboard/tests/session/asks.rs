//! What servers ask of us: answered when it is offered, refused when not, and never mistaken for an answer.

use pegboard::Kind;
use pegboard_testkit::{Ask, Control, Era, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use crate::support::*;

/// What the fake got as answers to its own requests.
fn answers(handle: &Control) -> Vec<Value> {
    let received = handle.requests().into_iter();
    received
        .filter(|message| message.method == "$response")
        .map(|message| message.params)
        .collect()
}

/// F056: what was never offered is no method of ours, and the call goes on.
#[tokio::test(start_paused = true)]
async fn requests_that_nobody_offered_to_answer_are_refused() {
    for method in ["sampling/createMessage", "roots/list", "elicitation/create", "vendor/x"] {
        let fault = Fault::ServerRequests {
            method: method.into(),
            count: 5,
        };
        let fake = FakeServer::new("fx")
            .tool(Tool::new("hello").answers_text("hi"))
            .fault(fault);
        let (board, handle) = in_memory(&fake);
        let reply = call(&board.toolset(), "fx.hello", json!({})).await;
        assert_eq!(reply.text(), "hi");
        handle.wait_for("$response", 5).await;
        for answer in answers(&handle) {
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
        board.shutdown().await;
    }
}

/// F056: a flood of them is not answered for ever.
#[tokio::test(start_paused = true)]
async fn a_flood_of_requests_is_bounded() {
    let flood = Fault::ServerRequests {
        method: "roots/list".into(),
        count: 5_000,
    };
    let fake = FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .fault_on(When::tool("hello").first(1), flood);
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert!(
        matches!(reply.outcome.kind(), Kind::Ok | Kind::Transport),
        "{}",
        reply.text()
    );
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
}

/// F057: the newest era has no requests of servers. A few are ignored, ten break the session.
#[tokio::test(start_paused = true)]
async fn requests_in_the_newest_era_are_counted_and_ten_are_too_many() {
    let asks = |count| {
        let fault = Fault::ServerRequests {
            method: "sampling/createMessage".into(),
            count,
        };
        FakeServer::new("fx")
            .era(Era::Modern)
            .tool(Tool::new("hello").answers_text("hi"))
            .fault_on(When::tool("hello").first(1), fault)
    };
    let (board, handle) = in_memory(&asks(9));
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!((answers(&handle).len(), handle.starts()), (0, 1));

    let (board, handle) = in_memory(&asks(10));
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({})).await;
    ended_as(&reply, Kind::Transport, true);
    says(&reply.text(), &["broke the protocol"]);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), 2);
}

/// ERA-6: a ping under the id of our own request is a request, not its answer.
#[tokio::test(start_paused = true)]
async fn a_ping_under_the_id_of_our_request_is_answered_and_the_call_goes_on() {
    let tool = Tool::new("hello")
        .answers_text("hi")
        .asks(Ask::PingWithTheSameId)
        .asks(Ask::Ping)
        .asks(Ask::Unknown)
        .asks(Ask::Elicitation);
    let (board, handle) = in_memory(&FakeServer::new("fx").tool(tool));
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    ended_as(&reply, Kind::Ok, true);
    assert!(reply.text().starts_with("hi"), "{}", reply.text());
    let answers = answers(&handle);
    let codes: Vec<_> = answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [None, None, Some(-32601), Some(-32601)], "{answers:?}");
}

/// SRQ-4: nothing is offered that nobody would answer.
#[tokio::test(start_paused = true)]
async fn a_board_without_a_host_offers_nothing() {
    let (board, handle) = in_memory(&FakeServer::new("fx"));
    board.settle(PATIENCE).await;
    let hello = handle
        .requests()
        .into_iter()
        .find(|message| message.method == "initialize");
    assert_eq!(hello.unwrap().params["capabilities"], json!({}));
}
