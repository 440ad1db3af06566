//! A board over a fake server, end to end, on every wire.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("echo").echoes())
}

async fn check(board: pegboard::Pegboard) {
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["fx__echo", "fx__hello"]);
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_eq!((reply.text().as_str(), reply.is_error()), ("hi", false));
    board.shutdown().await;
}

#[tokio::test]
async fn a_tool_is_listed_and_called_on_every_wire() {
    check(in_memory(&fake()).0).await;
    check(board(process(&fake()))).await;
    let http = fake().serve_http().await.unwrap();
    check(board(at(&http.url()))).await;
    let sse = fake().serve_sse().await.unwrap();
    check(board(at(&sse.url()))).await;
    let ws = fake().serve_ws().await.unwrap();
    let transport = pegboard::config::Transport::websocket(endpoint(&ws.url()));
    check(board(pegboard::ServerConfig::new(transport))).await;
}
