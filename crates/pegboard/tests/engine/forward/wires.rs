//! Forwarded calls and requests over the wires of real servers.

use pegboard::{
    Pegboard,
    forward::{Forwarded, Forwarding},
    serde_json::value::RawValue,
};
use pegboard_testkit::{Era, FakeServer, Tool};
use serde_json::{Value, json};

use crate::{forward::raw_server::*, support::*};

/// A server with a long result of this many lines.
fn fake(era: Era, lines: usize) -> FakeServer {
    FakeServer::new("fx")
        .era(era)
        .tool(Tool::new("t").answers_text("line one\nline \"two\" é"))
        .tool(Tool::new("refuses").refuses(-32050, "not today"))
        .tool(Tool::new("long").answers_text("a line with \"quotes\" and \\ and é\n".repeat(lines)))
        .resource("a:a", "text of a")
}

async fn check(board: &Pegboard) {
    let tools = board.toolset_with(whole());
    for tool in ["fx.t", "fx.long"] {
        let expected = call(&tools, tool, json!({})).await;
        let passed: Value = serde_json::from_str(&json_of(forward(&tools, tool).await)).unwrap();
        assert!(passed["content"][0]["text"] == expected.text(), "{tool}");
    }
    match forward(&tools, "fx.refuses").await {
        Forwarded::Error { code, message, .. } => assert_eq!((code, message.as_str()), (-32050, "not today")),
        other => panic!("{other:?}"),
    }
    let params = RawValue::from_string(r#"{"uri":"a:a"}"#.to_owned()).unwrap();
    let read = tools
        .forward("fx", "resources/read", &params, &Forwarding::new(), None)
        .await;
    let read: Value = serde_json::from_str(&json_of(read)).unwrap();
    assert_eq!(read["contents"][0]["text"], "text of a");
    match tools
        .forward("fx", "com.example/none", &params, &Forwarding::new(), None)
        .await
    {
        Forwarded::Error { code, .. } => assert_eq!(code, -32601),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        board.metrics().buffered_bytes,
        0,
        "the memory of long messages is released"
    );
}

#[tokio::test]
async fn over_http_in_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        let fake = fake(era, 40_000).serve_http().await.unwrap();
        let board = board(at(&fake.url()));
        check(&board).await;
        board.shutdown().await;
    }
}

#[tokio::test]
async fn over_stdio_in_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        let board = board(process(&fake(era, 1500)));
        check(&board).await;
        board.shutdown().await;
    }
}
