//! A server over WebSocket, on the last SDK that has this transport.

use pegboard::{ServerConfig, View, config::Transport};
use serde_json::json;

use crate::{peer::*, support::*, talk::*};

#[tokio::test]
async fn tools_are_called_over_websocket() {
    let server = Listening::python_websocket().await;
    let board = board(ServerConfig::new(Transport::websocket(server.endpoint())));
    let tools = board.toolset_with(View::new().whole_results());
    assert_eq!(listed(&tools).await, of_fx(&["add", "count", "echo", "fail"]));
    assert_eq!(spoken(&board), handshake());
    assert_eq!(status(&board, "fx").transport, "websocket");
    assert_eq!(text(&tools, "add", json!({"a": 2, "b": 3})).await, "5");
    // Larger than one frame of any common buffer size.
    let long = "é".repeat(300_000);
    assert_eq!(text(&tools, "echo", json!({"text": long})).await, long);
    let failed = complaint(&tools, "fail", json!({})).await;
    assert!(failed.contains("this tool always fails"), "{failed}");
    let (told, end) = steps(&tools, "count", json!({"steps": 4})).await;
    assert_eq!((told, end.as_str()), (counted(4), "counted to 4"));
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_that_refuses_the_newest_era_is_spoken_to_in_the_other() {
    let server = Listening::python_websocket().await;
    let transport = Transport::websocket(server.endpoint());
    let board = board(in_era(ServerConfig::new(transport), pegboard::config::EraChoice::Probe));
    assert_eq!(listed(&board.toolset()).await.len(), 4);
    assert_eq!(spoken(&board), handshake());
    board.shutdown().await;
}
