//! Legacy sessions over HTTP: kept, ended, forgotten by the server, and never mixed up.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use pegboard::{Kind, State, ToolCall};
use pegboard_testkit::{Era, Fault, When};
use serde_json::json;

use crate::{
    fixtures::*,
    raw::{self, Step},
    support::*,
};

#[tokio::test]
async fn a_session_is_opened_once_and_ended_once() {
    let fake = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    for _ in 0..3 {
        assert_greets(&tools, "in a session").await;
    }
    assert_eq!(fake.sessions().len(), 1);
    board.shutdown().await;
    assert_eq!((fake.count("initialize"), fake.count("DELETE")), (1, 1));
    assert!(fake.sessions().is_empty());
}

#[tokio::test]
async fn a_session_ends_with_the_last_handle_of_its_board() {
    let fake = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    assert_greets(&tools, "before the end").await;
    drop((board, tools));
    received(&fake, "DELETE", 1).await;
    until("the session is gone", || fake.sessions().is_empty()).await;
}

#[tokio::test]
async fn a_server_that_will_not_end_a_session_does_not_hold_up_the_shutdown() {
    let refused = status_fault(405, "");
    let fake = fake(Era::Legacy)
        .fault_on(When::method("DELETE"), refused)
        .serve_http()
        .await
        .unwrap();
    let silent = raw::serve(|seen| match (seen.verb.as_str(), seen.method()) {
        ("DELETE", _) => vec![Step::Hang],
        (_, "initialize") => {
            let mut steps = raw::healthy(seen, false);
            if let Step::Write(bytes) = &mut steps[0] {
                let text = String::from_utf8_lossy(bytes).replacen("\r\n", "\r\nmcp-session-id: s-1\r\n", 1);
                *bytes = text.into_bytes();
            }
            steps
        }
        (_, "tools/call") => raw::response("200 OK", "application/json", raw::hi(seen).to_string().as_bytes()),
        _ => raw::healthy(seen, false),
    })
    .await;
    for url in [fake.url(), silent.url("/mcp")] {
        let board = board(http(&url));
        assert_greets(&board.toolset(), "before").await;
        let limit = Duration::from_secs(3);
        tokio::time::timeout(limit, board.shutdown()).await.expect("bounded");
    }
    assert_eq!(fake.count("DELETE"), 1);
    let last = silent.seen().pop().unwrap();
    assert_eq!(
        (last.verb.as_str(), last.headers["mcp-session-id"].as_str()),
        ("DELETE", "s-1")
    );
}

#[tokio::test]
async fn a_call_in_a_forgotten_session_is_made_again_in_a_new_one() {
    let (_folder, ledger) = ledger();
    let fake = fake(Era::Legacy).ledger(&ledger).serve_http().await.unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    assert_greets(&tools, "first").await;
    fake.forget_sessions();
    let reply = call(&tools, "fx.hello", json!({"nonce": "n"})).await;
    assert_retried(&reply);
    assert_eq!(executed(&ledger), ["n"]);
    let now = status(&board);
    let error = now.last_error.unwrap().message;
    assert!(error.contains("session"), "{error}");
    assert_eq!((now.state, now.restarts), (State::Ready, 1));
    assert_eq!((fake.count("initialize"), fake.sessions().len()), (2, 1));
    // One call before, one rejected, one retried. A session that the server has forgotten is not deleted.
    assert_eq!((fake.count("tools/call"), fake.count("DELETE")), (3, 0));
}

#[tokio::test]
async fn all_calls_of_a_forgotten_session_share_one_new_session_and_run_once_each() {
    let (_folder, ledger) = ledger();
    let fake = fake(Era::Legacy).ledger(&ledger).serve_http().await.unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    assert_greets(&tools, "first").await;
    fake.restart().await.unwrap();
    let calls = (0..10).map(|number| call(&tools, "fx.hello", json!({"nonce": number.to_string()})));
    let replies = futures_util::future::join_all(calls).await;
    for reply in &replies {
        assert_eq!(reply.text(), "hi", "{:?}", reply.outcome);
        assert!(reply.attempts <= 2, "{}", reply.attempts);
    }
    let each_once: Vec<_> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(executed(&ledger), each_once);
    assert_eq!((fake.count("initialize"), fake.sessions().len()), (2, 1));
    assert_eq!((status(&board).state, status(&board).restarts), (State::Ready, 1));
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_asked_twice() {
    let (_folder, ledger) = ledger();
    let fake = fake(Era::Legacy)
        .ledger(&ledger)
        .fault_on(When::tool("hello"), Fault::SessionGone)
        .serve_http()
        .await
        .unwrap();
    let board = board(http(&fake.url()));
    let reply = call(&board.toolset(), "fx.hello", json!({"nonce": "n"})).await;
    let text = refused(&reply, Kind::Transport);
    assert!(text.contains("404"), "{text}");
    assert_eq!((reply.attempts, fake.count("tools/call")), (2, 2));
    assert!(executed(&ledger).is_empty());
}

#[tokio::test]
async fn a_session_id_that_no_header_may_carry_is_refused() {
    for id in ["with space", "tab\there", "é"] {
        let fake = fake(Era::Legacy)
            .fault(Fault::SessionId { id: id.to_owned() })
            .serve_http()
            .await
            .unwrap();
        let board = board(at(&fake.url()));
        let text = refused(&hello(&board.toolset()).await, Kind::Unavailable);
        assert!(text.contains("session id"), "{id:?}: {text}");
        assert_eq!(fake.count("tools/call"), 0);
        assert!(sends_no_session_id(&fake));
    }
}

#[tokio::test]
async fn a_session_id_that_changes_midway_is_never_taken_over() {
    let fake = fake(Era::Legacy)
        .fault_on(
            When::tool("hello").first(1),
            Fault::SessionId {
                id: "somebody-else".to_owned(),
            },
        )
        .serve_http()
        .await
        .unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    let text = lost(&hello(&tools).await, Kind::Internal);
    assert!(text.contains("session"), "{text}");
    assert_greets(&tools, "in a new session").await;
    assert_eq!(fake.count("initialize"), 2);
    board.shutdown().await;
    assert!(
        fake.requests()
            .iter()
            .all(|received| received.header("mcp-session-id") != Some("somebody-else"))
    );
}

#[tokio::test]
async fn a_server_without_sessions_gets_no_session_id_and_no_end() {
    let style = pegboard_testkit::HttpStyle {
        stateless: true,
        no_get_stream: true,
        ..Default::default()
    };
    let fake = fake(Era::Legacy).http(style).serve_http().await.unwrap();
    let board = board(http(&fake.url()));
    let tools = board.toolset();
    assert_greets(&tools, "without a session").await;
    assert_eq!(call(&tools, "fx.echo", json!({"a": 1})).await.text(), r#"{"a":1}"#);
    board.shutdown().await;
    assert_eq!(fake.count("DELETE"), 0);
    assert!(sends_no_session_id(&fake));
}

/// The server answers neither the health check nor the DELETE, so closing the session takes a while.
#[tokio::test]
async fn a_call_that_comes_while_a_dead_session_is_closed_is_made_in_the_next_one() {
    let (calls, is_dead) = (AtomicUsize::new(0), AtomicBool::new(false));
    let server = raw::serve(move |seen| match (seen.verb.as_str(), seen.method()) {
        ("DELETE", _) => vec![Step::Hang],
        (_, "initialize") => {
            is_dead.store(false, Ordering::Relaxed);
            let answer = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": {
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "raw", "version": "1" },
            } })
            .to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n",
                answer.len()
            );
            vec![Step::Write([head.as_bytes(), answer.as_bytes()].concat())]
        }
        (_, "tools/call") if calls.fetch_add(1, Ordering::Relaxed) == 0 => {
            is_dead.store(true, Ordering::Relaxed);
            vec![Step::Hang]
        }
        _ if is_dead.load(Ordering::Relaxed) => vec![Step::Hang],
        (_, "tools/call") => raw::response("200 OK", "application/json", raw::hi(seen).to_string().as_bytes()),
        _ => raw::healthy(seen, false),
    })
    .await;
    let mut config = http(&server.url("/mcp"));
    config.policy.health.timeout = Duration::from_millis(200);
    let board = board(config);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let first = ToolCall::new("fx.hello").timeout(Duration::from_millis(200));
    lost(&tools.call(first).await, Kind::Timeout);
    until("the dead session is being ended", || {
        server.seen().iter().any(|seen| seen.verb == "DELETE")
    })
    .await;
    let reply = hello(&tools).await;
    assert_eq!(
        (reply.text().as_str(), reply.attempts),
        ("hi", 1),
        "{:?}",
        reply.outcome
    );
}
