//! Malformed responses over streamable HTTP and HTTP+SSE: a call never hangs and never gets another call's response.

use std::time::Duration;

use pegboard::{Kind, Outcome, Reply, ServerConfig, ToolCall};
use pegboard_testkit::{Era, FakeServer, Fault, NetHandle, Tool, When};
use serde_json::json;

use crate::{fixtures::*, support::*};

/// The fault on the first call of `hello`, on every transport and in every form of response.
async fn everywhere(fault: &Fault) -> Vec<(String, NetHandle, ServerConfig)> {
    let mut servers = Vec::new();
    for era in BOTH_ERAS {
        for streams in [false, true] {
            let mut server = fake(era).fault_on(When::tool("hello").first(1), fault.clone());
            if streams {
                server = server.streams();
            }
            let web = server.serve_http().await.unwrap();
            let config = http(&web.url());
            servers.push((format!("{era:?} streams: {streams}"), web, config));
        }
    }
    let server = fake(Era::Legacy).fault_on(When::tool("hello").first(1), fault.clone());
    let old = server.serve_sse().await.unwrap();
    let config = sse(&old.url());
    servers.push(("sse".to_owned(), old, config));
    servers
}

/// The call ends as `check` requires, at its timeout at the latest, and the next one succeeds.
async fn check(fault: Fault, limit: Option<Duration>, check: impl Fn(&str, &Reply)) {
    for (place, fake, config) in everywhere(&fault).await {
        let board = board(config);
        let tools = board.toolset();
        assert!(tools.list(PATIENCE).await.unavailable.is_empty());
        let mut calling = ToolCall::new("fx.hello");
        calling.timeout = limit;
        let reply = tokio::time::timeout(PATIENCE, tools.call(calling)).await;
        let reply = reply.unwrap_or_else(|_| panic!("{fault:?} at {place} has no end"));
        check(&format!("{fault:?} at {place}"), &reply);
        assert_eq!(fake.count("tools/call"), 1, "{fault:?} at {place}");
        assert_greets(&tools, &format!("after {fault:?} at {place}")).await;
        assert_eq!(status(&board).in_flight, 0);
        board.shutdown().await;
    }
}

fn is_lost(at: &str, reply: &Reply) {
    assert!(matches!(reply.outcome, Outcome::Lost(_)), "{at}: {:?}", reply.outcome);
}

fn is_well(at: &str, reply: &Reply) {
    assert_eq!(reply.text(), "hi", "{at}: {:?}", reply.outcome);
}

#[tokio::test]
async fn an_answer_under_another_id_is_nobodys() {
    for fault in [Fault::WrongId, Fault::MissingId, Fault::NullId] {
        check(fault, Some(Duration::from_secs(1)), is_lost).await;
    }
    for fault in [Fault::StringId, Fault::FloatId] {
        check(fault, Some(Duration::from_secs(1)), |at, reply| {
            assert!(
                matches!(reply.outcome, Outcome::Lost(_)) || reply.text() == "hi",
                "{at}: {:?}",
                reply.outcome
            );
        })
        .await;
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call() {
    for fault in [
        Fault::InvalidUtf8,
        Fault::NulByte,
        Fault::Nested { depth: 200_000 },
        Fault::DuplicateKeys,
        Fault::CaseVariantKeys,
    ] {
        check(fault, Some(Duration::from_secs(1)), is_lost).await;
    }
}

#[tokio::test]
async fn what_is_merely_unusual_does_no_harm() {
    for fault in [
        Fault::AnswersTwice,
        Fault::StrayAnswers { count: 50 },
        Fault::ProgressFlood { count: 5_000 },
        Fault::Bom,
        Fault::Crlf,
    ] {
        check(fault, None, is_well).await;
    }
    // The separator is inside a string of the result, so it must be kept.
    check(Fault::LineSeparator, None, |at, reply| {
        assert!(
            matches!(reply.outcome, Outcome::Lost(_) | Outcome::Done(_)),
            "{at}: {:?}",
            reply.outcome
        );
    })
    .await;
}

#[tokio::test]
async fn a_hundred_answers_for_nobody_end_the_session_and_the_next_call_opens_another() {
    for (place, fake, config) in everywhere(&Fault::StrayAnswers { count: 150 }).await {
        let board = board(config);
        let tools = board.toolset();
        let reply = hello(&tools).await;
        is_lost(&place, &reply);
        assert!(reply.text().contains("broke the protocol"), "{place}: {}", reply.text());
        until_lost(&board).await;
        assert_greets(&tools, &place).await;
        assert_eq!(fake.count("tools/call"), 2);
    }
}

#[tokio::test]
async fn an_answer_after_the_limit_reaches_nobody() {
    let places = everywhere(&Fault::LateAnswer { ms: 2000 }).await;
    futures_util::future::join_all(places.into_iter().map(async |(place, _fake, config)| {
        let board = board(config);
        let tools = board.toolset();
        assert!(tools.list(PATIENCE).await.unavailable.is_empty());
        let short = ToolCall::new("fx.hello").timeout(Duration::from_secs(1));
        lost(&tools.call(short).await, Kind::Timeout);
        // The late response arrives while this call is in flight.
        let echoed = call(&tools, "fx.echo", json!({"delay_ms": 2500})).await;
        assert_eq!(echoed.text(), r#"{"delay_ms":2500}"#, "{place}");
    }))
    .await;
}

fn board_config(fake: &NetHandle, place: &str) -> ServerConfig {
    if place == "sse" {
        sse(&fake.url())
    } else {
        http(&fake.url())
    }
}

#[tokio::test]
async fn requests_that_were_never_asked_for_are_answered_in_one_era_and_end_the_other() {
    for method in ["sampling/createMessage", "vendor/unheard_of"] {
        let flood = |count| Fault::ServerRequests {
            method: method.to_owned(),
            count,
        };
        for wire in ["http", "sse"] {
            let server = fake(Era::Legacy).fault_on(When::tool("hello").first(1), flood(20));
            let fake = match wire {
                "http" => server.serve_http().await.unwrap(),
                _ => server.serve_sse().await.unwrap(),
            };
            let board = board(board_config(&fake, wire));
            assert_greets(&board.toolset(), method).await;
            let answers = received(&fake, "$response", 20).await;
            assert!(
                answers.iter().all(|answer| answer.params["error"]["code"] == -32601),
                "{answers:?}"
            );
        }
        let fake = fails_once(Era::Modern, flood(10)).serve_http().await.unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        lost(&hello(&tools).await, Kind::Transport);
        until_lost(&board).await;
        assert_greets(&tools, "after").await;
        assert_eq!(fake.count("$response"), 0);
    }
}

#[tokio::test]
async fn odd_results_of_the_newest_era_fail_their_call() {
    for fault in [
        Fault::UnknownResultType,
        Fault::InputForEver,
        Fault::HugeRequestState { bytes: 100 << 10 },
    ] {
        for streams in [false, true] {
            let mut server = fake(Era::Modern).fault_on(When::tool("hello"), fault.clone());
            if streams {
                server = server.streams();
            }
            let fake = server.serve_http().await.unwrap();
            let tools = board(http(&fake.url())).toolset();
            let reply = hello(&tools).await;
            is_lost(&format!("{fault:?}"), &reply);
            assert!(fake.count("tools/call") <= 11, "{fault:?}");
            assert_eq!(call(&tools, "fx.echo", json!({})).await.text(), "{}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_tool_is_passed_on_and_never_repeated() {
    for era in BOTH_ERAS {
        let fake = FakeServer::new("fx")
            .era(era)
            .tool(Tool::new("fail").read_only().fails_with("no such pod"))
            .tool(Tool::new("refuse").refuses(-32000, "broken"))
            .serve_http()
            .await
            .unwrap();
        let tools = board(http(&fake.url())).toolset();
        let reply = call(&tools, "fx.fail", json!({})).await;
        assert!(matches!(reply.outcome, Outcome::ToolFailed(_)));
        assert_eq!(reply.text(), "no such pod");
        let reply = call(&tools, "fx.refuse", json!({})).await;
        assert!(matches!(reply.outcome, Outcome::ToolFailed(_)) && reply.text().contains("broken"));
        assert_eq!(fake.count("tools/call"), 2, "{era:?}");
    }
}

#[tokio::test]
async fn a_hundred_callers_share_one_start() {
    for era in BOTH_ERAS {
        let fake = fake(era).serve_http().await.unwrap();
        let mut config = limited(at(&fake.url()), |limits| limits.max_in_flight = 100);
        config.start = pegboard::config::Start::Lazy;
        let board = board(config);
        let tools = board.toolset();
        let replies = futures_util::future::join_all((0..100).map(|_| hello(&tools))).await;
        assert!(replies.iter().all(|reply| reply.text() == "hi"));
        assert_eq!(fake.count("server/discover"), 1);
        assert_eq!(fake.count("initialize"), usize::from(era == Era::Legacy));
        assert_eq!(fake.count("tools/list"), 1);
    }
}

#[tokio::test]
async fn a_storm_of_change_notices_leads_to_few_listings() {
    let storm = Fault::ListChanged {
        count: 500,
        every_ms: 1,
    };
    for wire in ["http", "sse"] {
        let server = fake(Era::Legacy).fault_on(When::method("tools/list").first(1), storm.clone());
        let fake = match wire {
            "http" => server.serve_http().await.unwrap(),
            _ => server.serve_sse().await.unwrap(),
        };
        let started = tokio::time::Instant::now();
        let board = board(board_config(&fake, wire));
        assert_greets(&board.toolset(), "in the storm").await;
        received(&fake, "tools/list", 2).await;
        let most = 3 + started.elapsed().as_secs();
        assert!(
            fake.count("tools/list") as u64 <= most,
            "{wire}: {}",
            fake.count("tools/list")
        );
    }
}

#[tokio::test]
async fn a_server_that_changes_its_era_under_a_board_is_found_again() {
    for (from, to) in [(Era::Legacy, Era::Modern), (Era::Modern, Era::Legacy)] {
        let (_folder, ledger) = ledger();
        let server = |era| fake(era).ledger(&ledger);
        let fake = server(from).then_after(1, server(to)).serve_http().await.unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        assert_greets(&tools, "before").await;
        fake.restart().await.unwrap();
        let reply = call(&tools, "fx.hello", json!({"nonce": "n"})).await;
        // The rejection of the old session or era proves that the call did not run.
        assert_retried(&reply);
        assert_eq!(executed(&ledger), ["n"]);
        until_lost(&board).await;
        assert_greets(&tools, &format!("{from:?} to {to:?}")).await;
        assert_eq!(fake.count("tools/call"), 4);
    }
}

#[tokio::test]
async fn every_call_ends_exactly_once_when_the_server_dies() {
    let server = || fake(Era::Legacy).tool(Tool::new("wait").waits_at("gate"));
    let modern = fake(Era::Modern).tool(Tool::new("wait").waits_at("gate"));
    // Over streamable HTTP every call has its own connection.
    let servers = [
        (100, modern.serve_http().await.unwrap(), "http"),
        (100, server().serve_http().await.unwrap(), "http"),
        (1000, server().serve_sse().await.unwrap(), "sse"),
    ];
    for (count, fake, wire) in servers {
        let board = board(limited(board_config(&fake, wire), |limits| {
            limits.max_in_flight = count
        }));
        let tools = board.toolset();
        let calls = (0..count).map(|_| {
            let tools = tools.clone();
            tokio::spawn(async move { call(&tools, "fx.wait", json!({})).await })
        });
        let calls: Vec<_> = calls.collect();
        received(&fake, "tools/call", count).await;
        fake.stop().await;
        for call in calls {
            lost(&call.await.unwrap(), Kind::Transport);
        }
        until("nothing waits any more", || status(&board).in_flight == 0).await;
        assert_eq!(fake.count("tools/call"), count);
    }
}
