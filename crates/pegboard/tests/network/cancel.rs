//! Cancelling calls: the server is notified as its era requires, and other calls go on.

use std::time::Duration;

use pegboard::{Kind, ServerConfig, ToolCall, Toolset};
use pegboard_testkit::{Era, FakeServer, HttpStyle, NetHandle, Tool};
use serde_json::json;

use crate::{fixtures::*, support::*};

fn server(era: Era) -> FakeServer {
    FakeServer::new("fx")
        .era(era)
        .tool(Tool::new("wait").waits_at("gate").answers_text("late"))
        .tool(Tool::new("hello").answers_text("hi"))
}

/// Makes a call, waits until the server has received it, and drops the future.
async fn cancel_call(tools: &Toolset, fake: &NetHandle) {
    let calling = call(tools, "fx.wait", json!({}));
    tokio::select! {
        reply = calling => panic!("{:?}", reply.outcome),
        _ = received(fake, "tools/call", 1) => {}
    }
}

async fn time_out(tools: &Toolset) {
    assert!(tools.list(PATIENCE).await.unavailable.is_empty());
    let limit = Duration::from_millis(300);
    let reply = tools.call(ToolCall::new("fx.wait").timeout(limit)).await;
    lost(&reply, Kind::Timeout);
}

#[tokio::test]
async fn in_the_era_without_handshake_the_stream_is_closed() {
    for by_timeout in [false, true] {
        let fake = server(Era::Modern).streams().serve_http().await.unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        if by_timeout {
            time_out(&tools).await;
        } else {
            cancel_call(&tools, &fake).await;
        }
        received(&fake, "$closed", 1).await;
        assert_greets(&tools, "after").await;
        assert_eq!(fake.count("notifications/cancelled"), 0);
        assert_eq!(status(&board).in_flight, 0);
    }
}

/// The server gets one cancellation with the id of the request; a late response is dropped.
async fn check_notice(fake: NetHandle, config: ServerConfig) {
    let kind = config.transport.kind();
    let board = board(config);
    let tools = board.toolset();
    cancel_call(&tools, &fake).await;
    let told = received(&fake, "notifications/cancelled", 1).await;
    let id = received(&fake, "tools/call", 1).await.remove(0).id.unwrap();
    assert_eq!(told[0].params["requestId"], id, "{kind}");
    time_out(&tools).await;
    let told = received(&fake, "notifications/cancelled", 2).await;
    assert_ne!(told[1].params["requestId"], id, "{kind}");
    fake.open_gate("gate");
    assert_greets(&tools, "after").await;
    assert_eq!(call(&tools, "fx.wait", json!({})).await.text(), "late");
    assert_eq!(status(&board).in_flight, 0);
    assert_eq!(fake.count("notifications/cancelled"), 2);
    board.shutdown().await;
}

#[tokio::test]
async fn in_the_eras_with_handshake_the_server_is_told() {
    for style in [HttpStyle::default(), resumable()] {
        for stubborn in [false, true] {
            let mut server = server(Era::Legacy).http(style.clone());
            if stubborn {
                server = server.ignores_cancel();
            }
            let fake = server.serve_http().await.unwrap();
            let config = http(&fake.url());
            check_notice(fake, config).await;
        }
    }
    let fake = server(Era::Legacy).serve_sse().await.unwrap();
    let config = sse(&fake.url());
    check_notice(fake, config).await;
    let fake = server(Era::Legacy).ignores_cancel().serve_ws().await.unwrap();
    let config = ws(&fake.url());
    check_notice(fake, config).await;
}

#[tokio::test]
async fn a_call_given_up_does_not_disturb_another_one() {
    for era in BOTH_ERAS {
        let fake = server(era).streams().serve_http().await.unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        let other = tokio::spawn({
            let tools = tools.clone();
            async move { call(&tools, "fx.wait", json!({"other": true})).await }
        });
        received(&fake, "tools/call", 1).await;
        time_out(&tools).await;
        fake.open_gate("gate");
        assert_eq!(other.await.unwrap().text(), "late", "{era:?}");
    }
}

#[tokio::test]
async fn a_shutdown_in_the_middle_of_a_call_ends_both() {
    let servers = [
        (server(Era::Modern).serve_http().await.unwrap(), "http"),
        (server(Era::Legacy).serve_http().await.unwrap(), "http"),
        (server(Era::Legacy).serve_sse().await.unwrap(), "sse"),
        (server(Era::Legacy).serve_ws().await.unwrap(), "ws"),
    ];
    for (fake, kind) in servers {
        let config = match kind {
            "sse" => sse(&fake.url()),
            "ws" => ws(&fake.url()),
            _ => http(&fake.url()),
        };
        let board = board(config);
        let tools = board.toolset();
        let calling = tokio::spawn(async move { call(&tools, "fx.wait", json!({})).await });
        received(&fake, "tools/call", 1).await;
        tokio::time::timeout(PATIENCE, board.shutdown()).await.expect("bounded");
        let reply = tokio::time::timeout(PATIENCE, calling).await.expect("bounded").unwrap();
        lost(&reply, Kind::Transport);
    }
}
