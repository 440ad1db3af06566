//! WebSocket, on whole boards.

use pegboard::{
    Kind, Secret, ServerConfig, State,
    config::{Auth, Transport},
};
use pegboard_testkit::{Answer, Era, FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::{fixtures::*, support::*};

#[tokio::test]
async fn headers_and_subprotocol_are_sent_with_the_handshake_in_both_eras() {
    for era in BOTH_ERAS {
        let fake = fake(era).bearer("t0ken").serve_ws().await.unwrap();
        let mut endpoint = endpoint(&fake.url());
        endpoint.auth = Auth::Bearer(Secret::new("t0ken"));
        endpoint.headers.insert("X-Tenant".to_owned(), Secret::new("blue"));
        let board = board(ServerConfig::new(Transport::websocket(endpoint)));
        let tools = board.toolset();
        assert_greets(&tools, &format!("{era:?}")).await;
        assert_eq!(call(&tools, "fx.echo", json!({"a": "é"})).await.text(), r#"{"a":"é"}"#);
        let upgrades = received(&fake, "GET", 1).await;
        assert_eq!(upgrades.len(), 1);
        assert_eq!(upgrades[0].header("sec-websocket-protocol"), Some("mcp"));
        assert_eq!(upgrades[0].header("x-tenant"), Some("blue"));
        assert_eq!(status(&board).transport, "websocket");
        board.shutdown().await;
    }
}

#[tokio::test]
async fn user_and_password_of_the_url_are_sent_as_credentials() {
    let fake = fake(Era::Legacy).serve_ws().await.unwrap();
    let board = board(ws(&fake.url().replace("ws://", "ws://me:p%40ss@")));
    assert_greets(&board.toolset(), "with credentials").await;
    let upgrades = received(&fake, "GET", 1).await;
    assert_eq!(upgrades[0].header("authorization"), Some("Basic bWU6cEBzcw=="));
}

#[tokio::test]
async fn a_refused_upgrade_says_why() {
    for (code, kind, state) in [
        (401, Kind::NeedsAuth, State::NeedsAuth),
        (403, Kind::NeedsAuth, State::NeedsAuth),
        (404, Kind::Unavailable, State::Down),
        (500, Kind::Unavailable, State::Down),
    ] {
        let fault = status_fault(code, "");
        let fake = fake(Era::Legacy)
            .fault_on(When::method("GET"), fault)
            .serve_ws()
            .await
            .unwrap();
        let board = board(ws(&fake.url()));
        let reply = hello(&board.toolset()).await;
        let text = refused(&reply, kind);
        assert!(text.contains(&code.to_string()), "{text}");
        assert!(reply.outcome.hint().is_some(), "{code}");
        assert_eq!((status(&board).state, fake.count("GET")), (state, 1));
    }
    let fake = fake(Era::Legacy).serve_http().await.unwrap();
    refused(
        &hello(&board(ws(&fake.url().replace("http", "ws"))).toolset()).await,
        Kind::Unavailable,
    );
}

#[tokio::test]
async fn a_message_larger_than_the_limit_costs_only_the_call_that_it_answers() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("big").answers(Answer::Bytes(256 << 10)))
        .tool(Tool::new("hello").answers_text("hi"))
        .serve_ws()
        .await
        .unwrap();
    let board = board(limited(ws(&fake.url()), |limits| limits.max_message = 64 << 10));
    let tools = board.toolset();
    let reply = call(&tools, "fx.big", json!({})).await;
    let text = lost(&reply, Kind::LimitExceeded);
    assert!(
        text.contains("larger than 65536 bytes") && text.contains("`max_message`"),
        "{text}"
    );
    assert!(reply.outcome.hint().unwrap().contains("raise `max_message`"));
    assert_greets(&tools, "on the same connection").await;
    assert_eq!(board.status().servers[0].restarts, 0);
}

#[tokio::test]
async fn a_connection_that_ends_loses_what_is_under_way_and_the_next_call_opens_another() {
    // The half of the response that arrived is unreadable.
    for (fault, kind) in [
        (Fault::ClosesOutput, Kind::Transport),
        (Fault::ResetInStream, Kind::Internal),
    ] {
        let fake = fake(Era::Legacy)
            .tool(Tool::new("wait").waits_at("gate"))
            .fault_on(When::tool("hello").first(1), fault.clone())
            .serve_ws()
            .await
            .unwrap();
        let board = board(ws(&fake.url()));
        let tools = board.toolset();
        let waiting = tokio::spawn({
            let tools = tools.clone();
            async move { call(&tools, "fx.wait", json!({})).await }
        });
        received(&fake, "tools/call", 1).await;
        lost(&hello(&tools).await, kind);
        lost(&waiting.await.unwrap(), Kind::Transport);
        until_lost(&board).await;
        until_found_unasked(&board).await;
        assert_greets(&tools, &format!("after {fault:?}")).await;
        assert_eq!(fake.count("tools/call"), 3);
    }
}

#[tokio::test]
async fn a_server_that_dies_loses_the_call_and_is_found_again() {
    let (_folder, ledger) = ledger();
    let fake = dies_once(&ledger).serve_ws().await.unwrap();
    check_found_again(&fake, ws(&fake.url()), &ledger).await;
}

#[tokio::test]
async fn a_thousand_calls_end_exactly_once_when_the_server_dies() {
    let fake = fake(Era::Legacy)
        .tool(Tool::new("wait").waits_at("gate"))
        .serve_ws()
        .await
        .unwrap();
    let board = board(limited(ws(&fake.url()), |limits| limits.max_in_flight = 1000));
    let tools = board.toolset();
    let calls = (0..1000).map(|_| {
        let tools = tools.clone();
        tokio::spawn(async move { call(&tools, "fx.wait", json!({})).await })
    });
    let calls: Vec<_> = calls.collect();
    received(&fake, "tools/call", 1000).await;
    fake.stop().await;
    for call in calls {
        lost(&call.await.unwrap(), Kind::Transport);
    }
    until("nothing waits any more", || status(&board).in_flight == 0).await;
}
