//! Fixtures for tests over the network: servers at URLs, and assertions on replies.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard::{
    Kind, Outcome, Pegboard, Reply, ServerConfig, State, Toolset,
    config::{Limits, Transport},
    status::ServerStatus,
};
use pegboard_testkit::{Era, FakeServer, Fault, HttpStyle, NetHandle, Received, Tool, When};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{PATIENCE, board, call, endpoint};

pub(crate) const BOTH_ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server with a tool that answers and one that echoes its arguments.
pub(crate) fn fake(era: Era) -> FakeServer {
    FakeServer::new("fx")
        .era(era)
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("echo").echoes())
}

pub(crate) fn http(url: &str) -> ServerConfig {
    ServerConfig::new(Transport::http(endpoint(url)))
}

pub(crate) fn sse(url: &str) -> ServerConfig {
    ServerConfig::new(Transport::sse(endpoint(url)))
}

pub(crate) fn ws(url: &str) -> ServerConfig {
    ServerConfig::new(Transport::websocket(endpoint(url)))
}

pub(crate) fn limited(mut config: ServerConfig, change: impl FnOnce(&mut Limits)) -> ServerConfig {
    change(&mut config.limits);
    config
}

/// Streams whose events have ids, with a short retry interval.
pub(crate) fn resumable() -> HttpStyle {
    HttpStyle {
        streams: true,
        event_ids: true,
        retry_ms: Some(20),
        ..HttpStyle::default()
    }
}

pub(crate) async fn hello(tools: &Toolset) -> Reply {
    call(tools, "fx.hello", json!({})).await
}

/// Calls `hello` and asserts its answer.
pub(crate) async fn assert_greets(tools: &Toolset, when: &str) {
    let reply = hello(tools).await;
    assert_eq!(reply.text(), "hi", "{when}: {:?}", reply.outcome);
}

/// Asserts that the call was refused and did not run. Returns its text.
#[track_caller]
pub(crate) fn refused(reply: &Reply, kind: Kind) -> String {
    assert!(matches!(reply.outcome, Outcome::Refused(_)), "{:?}", reply.outcome);
    assert_eq!(reply.outcome.kind(), kind, "{:?}", reply.outcome);
    assert!(!reply.outcome.may_have_executed());
    reply.text()
}

/// Asserts that the outcome is lost and the call may have run. Returns its text.
#[track_caller]
pub(crate) fn lost(reply: &Reply, kind: Kind) -> String {
    assert!(matches!(reply.outcome, Outcome::Lost(_)), "{:?}", reply.outcome);
    assert_eq!(reply.outcome.kind(), kind, "{:?}", reply.outcome);
    assert!(reply.outcome.may_have_executed());
    let text = reply.text();
    assert!(text.contains("It may have been carried out"), "{text}");
    text
}

pub(crate) fn status(board: &Pegboard) -> ServerStatus {
    board.status().servers.remove(0)
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "still waiting until {what}");
}

/// Waits until the board has noticed that its session was lost, whether or not a new one is open already.
pub(crate) async fn until_lost(board: &Pegboard) {
    until("the loss was seen", || status(board).restarts > 0).await;
}

/// Waits until the server is connected again without a call.
pub(crate) async fn until_found_unasked(board: &Pegboard) {
    let calls = status(board).calls.total;
    until("the server is there again", || status(board).state == State::Ready).await;
    assert_eq!(status(board).calls.total, calls, "nobody asked for it");
}

/// The nonces of the executed calls, in order, once per execution.
pub(crate) fn executed(ledger: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    let mut nonces: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("executed "))
        .map(str::to_owned)
        .collect();
    nonces.sort();
    nonces
}

/// Waits until a fake has received this many messages with a method.
pub(crate) async fn received(fake: &NetHandle, method: &str, count: usize) -> Vec<Received> {
    let waited = tokio::time::timeout(PATIENCE, fake.wait_for(method, count)).await;
    assert!(waited.is_ok(), "{count} of {method} never came: {:?}", methods(fake));
    let all = fake.requests();
    all.into_iter().filter(|received| received.method == method).collect()
}

/// The methods that a fake has received, in order.
pub(crate) fn methods(fake: &NetHandle) -> Vec<String> {
    fake.requests().into_iter().map(|received| received.method).collect()
}

/// The headers that MCP defines, and credentials.
pub(crate) fn mcp_headers(received: &Received) -> Value {
    let told = received
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("mcp-") || *name == "authorization" || *name == "last-event-id");
    told.map(|(name, value)| (name.clone(), Value::from(value.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A temporary folder with the path of a ledger, the file in which a fake records the calls that it executed.
pub(crate) fn ledger() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    (folder, ledger)
}

/// A server with this fault on the first call of `hello`.
pub(crate) fn fails_once(era: Era, fault: Fault) -> FakeServer {
    fake(era).fault_on(When::tool("hello").first(1), fault)
}

/// An HTTP response with this status and body.
pub(crate) fn status_fault(status: u16, body: &str) -> Fault {
    Fault::Status {
        status,
        headers: Vec::new(),
        body: body.to_owned(),
    }
}

/// Asserts that a call of `hello` succeeded at the second attempt.
#[track_caller]
pub(crate) fn assert_retried(reply: &Reply) {
    assert_eq!(
        (reply.text().as_str(), reply.attempts),
        ("hi", 2),
        "{:?}",
        reply.outcome
    );
}

/// Whether no request of a fake has a session id.
pub(crate) fn sends_no_session_id(fake: &NetHandle) -> bool {
    let requests = fake.requests();
    requests
        .iter()
        .all(|received| received.header("mcp-session-id").is_none())
}

/// A legacy server that dies after it has executed the first call of `hello`.
pub(crate) fn dies_once(ledger: &Path) -> FakeServer {
    fails_once(Era::Legacy, Fault::DiesAfterExecuting { code: 1 }).ledger(ledger)
}

/// Checks a server of [`dies_once`]: the call is lost and ran once, and the board finds the restarted server by itself.
pub(crate) async fn check_found_again(fake: &NetHandle, config: ServerConfig, ledger: &Path) {
    let board = board(config);
    let tools = board.toolset();
    lost(&call(&tools, "fx.hello", json!({"nonce": "n"})).await, Kind::Transport);
    until_lost(&board).await;
    let reply = hello(&tools).await;
    refused(&reply, Kind::RestartFailed);
    assert!(reply.outcome.hint().unwrap().contains("nothing listens"));
    fake.restart().await.unwrap();
    until_found_unasked(&board).await;
    assert_greets(&tools, "after the restart").await;
    assert_eq!(executed(ledger), ["n"]);
    assert_eq!((status(&board).restarts, fake.count("initialize")), (1, 2));
}
