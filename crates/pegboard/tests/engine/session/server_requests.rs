//! Requests from servers: answered if the capability is declared, rejected otherwise, and never mistaken for a response.

use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pegboard::{
    Host, Kind,
    host::{ElicitAnswer, Elicitation, HostContext, Root},
};
use pegboard_testkit::{Ask, Control, Era, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use crate::{
    session::scripted::{Answer, Scripted, colour, said, tool, until},
    support::*,
};

/// The responses that the fake got to its own requests.
fn answers(handle: &Control) -> Vec<Value> {
    let received = handle.requests().into_iter();
    received
        .filter(|message| message.method == "$response")
        .map(|message| message.params)
        .collect()
}

/// A request for an undeclared capability gets "method not found", and the call goes on.
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

/// A flood of such requests is not answered without bound.
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

/// The modern era has no server-to-client requests. A few are ignored, ten break the session.
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
    assert_outcome(&reply, Kind::Transport, true);
    assert_contains(&reply.text(), &["broke the protocol"]);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), 2);
}

/// A ping under the id of our own request is a request, not its response.
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
    assert_outcome(&reply, Kind::Ok, true);
    assert!(reply.text().starts_with("hi"), "{}", reply.text());
    let answers = answers(&handle);
    let codes: Vec<_> = answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [None, None, Some(-32601), Some(-32601)], "{answers:?}");
}

/// A board without a host declares no client capabilities.
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

/// A host that never answers, and counts the requests that it holds.
#[derive(Clone, Default)]
struct PendingHost {
    begun: Arc<AtomicUsize>,
    in_flight: Arc<AtomicUsize>,
}

/// Decrements the counter when the host's future is dropped.
struct HeldRequest(Arc<AtomicUsize>);

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PendingHost {
    async fn hold<T>(&self) -> T {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let _held = HeldRequest(self.in_flight.clone());
        pending().await
    }

    fn pending_requests(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

impl Host for PendingHost {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        _request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        Box::pin(self.hold())
    }

    fn offers_sampling(&self) -> bool {
        true
    }

    fn sample<'a>(
        &'a self,
        _context: HostContext<'a>,
        _params: Value,
    ) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>> {
        Box::pin(self.hold())
    }
}

/// A server whose calls are never answered, so that its own requests are all that is in flight.
async fn asking(host: &PendingHost) -> (Scripted, pegboard::Pegboard) {
    let server = Scripted::new(
        pegboard::status::Era::Legacy,
        json!({"capabilities": {"tools": {}}, "tools": [tool("t")]}),
    );
    let board = server.board(host.clone(), |_| Answer::Silence);
    board.set_roots(name("fx"), &[Root::new("file:///one")]);
    board.settle(PATIENCE).await;
    (server, board)
}

fn taken_back(id: &Value) -> Value {
    json!({"method": "notifications/cancelled", "params": {"requestId": id, "reason": "never mind"}})
}

/// When the server cancels a request, the host's future is dropped and no response is sent.
#[tokio::test(start_paused = true)]
async fn a_question_that_the_server_takes_back_is_dropped_and_not_answered() {
    let sample = json!({"messages": [], "maxTokens": 5});
    for (id, method, params) in [
        (json!("q"), "elicitation/create", colour()),
        (json!(7), "sampling/createMessage", sample),
    ] {
        let host = PendingHost::default();
        let (server, _board) = asking(&host).await;
        server.say(json!({"id": id, "method": method, "params": params})).await;
        server
            .say(json!({"id": "other", "method": "elicitation/create", "params": colour()}))
            .await;
        until("both are thought about", || host.pending_requests() == 2).await;
        server.say(taken_back(&json!("nobody"))).await;
        server.say(taken_back(&json!("7 "))).await;
        tokio::time::sleep(secs(1)).await;
        assert_eq!(host.pending_requests(), 2, "only what was asked can be taken back");
        server.say(taken_back(&id)).await;
        until("one is dropped", || host.pending_requests() == 1).await;
        // The session goes on, and the cancelled request got no response.
        server.say(json!({"id": "r", "method": "roots/list"})).await;
        until("the roots are told", || !server.answers().is_empty()).await;
        tokio::time::sleep(secs(60)).await;
        let answered: Vec<_> = server.answers().iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(answered, ["r"], "{method}");
        // The id can be used again now.
        server
            .say(json!({"id": id, "method": method, "params": colour()}))
            .await;
        if method == "elicitation/create" {
            until("it is asked again", || host.pending_requests() == 2).await;
        }
    }
}

/// A queued request that is cancelled never reaches the host.
#[tokio::test(start_paused = true)]
async fn a_question_taken_back_before_its_turn_is_never_asked() {
    let host = PendingHost::default();
    let (server, _board) = asking(&host).await;
    for number in 0..20 {
        server
            .say(json!({"id": number, "method": "elicitation/create", "params": colour()}))
            .await;
    }
    until("as many as may are thought about", || host.pending_requests() == 16).await;
    for number in 16..20 {
        server.say(taken_back(&json!(number))).await;
    }
    tokio::time::sleep(secs(1)).await;
    for number in 0..16 {
        server.say(taken_back(&json!(number))).await;
    }
    until("no request is held any more", || host.pending_requests() == 0).await;
    tokio::time::sleep(secs(1)).await;
    assert_eq!(host.begun.load(Ordering::Relaxed), 16);
    assert!(server.answers().is_empty());
}

/// The other direction is ignored: a server cannot cancel our requests.
#[tokio::test(start_paused = true)]
async fn a_server_with_a_handshake_cannot_take_our_own_requests_back() {
    let server = Scripted::new(
        pegboard::status::Era::Legacy,
        json!({"capabilities": {"tools": {}}, "tools": [tool("t")]}),
    );
    let this = server.clone();
    let board = server.board(PendingHost::default(), move |message| {
        let (this, id) = (this.clone(), message["id"].clone());
        tokio::spawn(async move {
            this.say(taken_back(&id)).await;
            tokio::time::sleep(secs(1)).await;
            let Answer::Result(result) = said("done") else { return };
            this.say(json!({"id": id, "result": result})).await;
        });
        Answer::Silence
    });
    assert_eq!(call(&board.toolset(), "fx.t", json!({})).await.text(), "done");
}

/// A ping is answered however many requests the host holds.
#[tokio::test(start_paused = true)]
async fn questions_that_take_their_time_do_not_hold_up_a_ping() {
    let host = PendingHost::default();
    let (server, _board) = asking(&host).await;
    for number in 0..30 {
        server
            .say(json!({"id": number, "method": "elicitation/create", "params": colour()}))
            .await;
    }
    until("as many as may be are thought about", || host.pending_requests() == 16).await;
    server.say(json!({"id": "p", "method": "ping"})).await;
    server.say(json!({"id": "r", "method": "roots/list"})).await;
    server.say(json!({"id": "n", "method": "nonsense"})).await;
    until("three are answered", || server.answers().len() == 3).await;
    assert_eq!(server.answers()[0], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    // A queued request reaches the host when another one is cancelled.
    for number in 0..10 {
        server.say(taken_back(&json!(number))).await;
    }
    until("others take their places", || host.begun.load(Ordering::Relaxed) == 26).await;
    assert_eq!((host.pending_requests(), server.answers().len()), (16, 3));
}
