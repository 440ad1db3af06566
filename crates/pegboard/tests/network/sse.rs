//! HTTP+SSE, the transport of protocol version 2024-11-05.

use std::time::Duration;

use pegboard::{Kind, State};
use pegboard_testkit::{Ask, Era, FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::{fixtures::*, raw, support::*};

#[tokio::test]
async fn the_address_for_messages_may_be_relative_or_whole() {
    for url in [
        "/messages?session=SESSION",
        "messages?session=SESSION",
        "./messages?session=SESSION",
        "HOST/messages?session=SESSION",
    ] {
        let fake = fake(Era::Legacy).serve_sse().await.unwrap();
        let url = url.replace("HOST", &format!("http://{}", fake.address()));
        fake.change(|script| {
            *script = crate::fixtures::fake(Era::Legacy)
                .fault(Fault::Endpoint { url: url.clone() })
                .script()
                .clone();
        });
        let board = board(sse(&fake.url()));
        assert_greets(&board.toolset(), &url).await;
        assert_eq!(status(&board).transport, "sse");
        board.shutdown().await;
    }
}

#[tokio::test]
async fn every_message_after_the_handshake_names_the_agreed_version() {
    let asking = Tool::new("ask").asks(Ask::Ping).answers_text("asked");
    let fake = FakeServer::new("fx").tool(asking).serve_sse().await.unwrap();
    let board = board(sse(&fake.url()));
    let reply = call(&board.toolset(), "fx.ask", json!({})).await;
    assert!(reply.text().starts_with("asked"), "{:?}", reply.outcome);
    board.shutdown().await;
    for received in fake.requests() {
        let expected = match received.method.as_str() {
            "GET" | "initialize" => json!({}),
            _ => json!({"mcp-protocol-version": "2025-11-25"}),
        };
        assert_eq!(mcp_headers(&received), expected, "{}", received.method);
    }
    assert_eq!(fake.count("$response"), 1);
}

#[tokio::test]
async fn an_address_on_another_origin_is_refused_at_once_and_hears_nothing() {
    let other = raw::serve(|seen| raw::healthy(seen, false)).await;
    let by_name = other.url("/messages").replace("127.0.0.1", "localhost");
    for url in [
        other.url("/messages"),
        by_name,
        "//no-such-host.invalid/x".to_owned(),
        "http://[".to_owned(),
    ] {
        let fake = fake(Era::Legacy)
            .fault(Fault::Endpoint { url: url.clone() })
            .serve_sse()
            .await
            .unwrap();
        for config in [sse(&fake.url()), at(&fake.url())] {
            let is_auto = config.transport == pegboard::config::Transport::auto(endpoint(&fake.url()));
            let text = refused(&hello(&board(config).toolset()).await, Kind::Unavailable);
            assert!(is_auto || text.contains("address for messages"), "{url}: {text}");
        }
        assert_eq!(fake.count("initialize"), 0);
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_stream_that_never_names_an_address_ends_with_the_connect_limit() {
    let fake = fake(Era::Legacy).fault(Fault::NoEndpoint).serve_sse().await.unwrap();
    for config in [sse(&fake.url()), at(&fake.url())] {
        let board = board(limited(config, |limits| {
            limits.connect_timeout = Duration::from_millis(700)
        }));
        let started = tokio::time::Instant::now();
        refused(&hello(&board.toolset()).await, Kind::Unavailable);
        assert!(started.elapsed() < secs(20), "{:?}", started.elapsed());
        assert_eq!(status(&board).state, State::Down);
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_shown() {
    let fake = fake(Era::Legacy)
        .fault_on(When::method("GET"), Fault::HtmlPage)
        .serve_sse()
        .await
        .unwrap();
    let reply = hello(&board(sse(&fake.url())).toolset()).await;
    let text = refused(&reply, Kind::Unavailable);
    assert!(text.contains("text/html") && text.contains("hotel"), "{text}");
}

#[tokio::test]
async fn a_refused_message_says_whether_it_can_have_run_and_the_stream_goes_on() {
    for (code, is_lost, kind) in [
        (401, false, Kind::NeedsAuth),
        (403, false, Kind::NeedsAuth),
        (413, false, Kind::Transport),
        (500, true, Kind::Transport),
        (502, true, Kind::Transport),
    ] {
        let fault = status_fault(code, "no");
        let fake = fails_once(Era::Legacy, fault).serve_sse().await.unwrap();
        let board = board(sse(&fake.url()));
        let tools = board.toolset();
        let reply = hello(&tools).await;
        if is_lost {
            lost(&reply, kind);
        } else {
            refused(&reply, kind);
        }
        assert_eq!((reply.attempts, fake.count("tools/call")), (1, 1), "{code}");
        assert_greets(&tools, "after").await;
        assert_eq!((fake.count("GET"), fake.count("initialize")), (1, 1), "{code}");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_on_the_same_stream_when_it_says_so() {
    let fault = Fault::Status {
        status: 429,
        headers: vec![("retry-after".to_owned(), "1".to_owned())],
        body: "no".to_owned(),
    };
    let fake = fails_once(Era::Legacy, fault).serve_sse().await.unwrap();
    let board = board(sse(&fake.url()));
    let reply = hello(&board.toolset()).await;
    assert_retried(&reply);
    assert!(reply.latency >= secs(1), "{:?}", reply.latency);
    assert_eq!((fake.count("GET"), fake.count("tools/call")), (1, 2));
}

#[tokio::test]
async fn a_call_in_a_session_that_the_server_does_not_know_is_made_again_in_a_new_one() {
    let (_folder, ledger) = ledger();
    let fault = status_fault(404, "");
    let fake = fake(Era::Legacy)
        .ledger(&ledger)
        .fault_on(When::tool("hello").first(1), fault)
        .serve_sse()
        .await
        .unwrap();
    let board = board(sse(&fake.url()));
    let tools = board.toolset();
    let reply = call(&tools, "fx.hello", json!({"nonce": "n"})).await;
    assert_retried(&reply);
    assert_eq!(executed(&ledger), ["n"]);
    assert_eq!((status(&board).state, status(&board).restarts), (State::Ready, 1));
    assert_eq!((fake.count("GET"), fake.count("initialize")), (2, 2));
}

#[tokio::test]
async fn the_end_of_the_stream_loses_what_is_under_way_and_the_next_call_connects_anew() {
    for fault in [Fault::ClosesOutput, Fault::CutThenEof, Fault::ResetInStream] {
        let (_folder, ledger) = ledger();
        let fake = fake(Era::Legacy)
            .ledger(&ledger)
            .tool(Tool::new("wait").waits_at("gate"))
            .fault_on(When::tool("hello").first(1), fault.clone())
            .serve_sse()
            .await
            .unwrap();
        let board = board(sse(&fake.url()));
        let tools = board.toolset();
        let waiting = tokio::spawn({
            let tools = tools.clone();
            async move { call(&tools, "fx.wait", json!({"nonce": "other"})).await }
        });
        received(&fake, "tools/call", 1).await;
        lost(&call(&tools, "fx.hello", json!({"nonce": "n"})).await, Kind::Transport);
        lost(&waiting.await.unwrap(), Kind::Transport);
        let executed = std::fs::read_to_string(&ledger).unwrap();
        assert_eq!(executed.lines().count(), 2, "{fault:?}: {executed}");
        until_lost(&board).await;
        assert_greets(&tools, &format!("after {fault:?}")).await;
        assert_eq!(fake.count("initialize"), 2);
    }
}

#[tokio::test]
async fn a_server_that_dies_loses_the_call_and_is_found_again() {
    let (_folder, ledger) = ledger();
    let fake = dies_once(&ledger).serve_sse().await.unwrap();
    check_found_again(&fake, sse(&fake.url()), &ledger).await;
}

#[tokio::test]
async fn an_event_that_is_too_large_costs_its_call_and_an_endless_one_the_connection() {
    let small = 64 << 10;
    let oversized = Fault::Oversized {
        bytes: 2 * small,
        with_id: true,
        then_valid: false,
    };
    let fake = fails_once(Era::Legacy, oversized).serve_sse().await.unwrap();
    let board = board(limited(sse(&fake.url()), |limits| limits.max_message = small));
    let tools = board.toolset();
    lost(&hello(&tools).await, Kind::LimitExceeded);
    assert_greets(&tools, "on the same stream").await;
    assert_eq!(fake.count("GET"), 1);

    let fake = fails_once(Era::Legacy, Fault::EndlessLine).serve_sse().await.unwrap();
    let board = crate::support::board(limited(sse(&fake.url()), |limits| limits.max_message = small));
    let tools = board.toolset();
    let reply = tokio::time::timeout(PATIENCE, hello(&tools)).await.expect("bounded");
    assert!(reply.outcome.may_have_executed(), "{:?}", reply.outcome);
    until_lost(&board).await;
    assert_greets(&tools, "on another stream").await;
}
