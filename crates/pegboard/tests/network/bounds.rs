//! Endless and slow responses: every call ends at its timeout, and the board goes on.

use std::time::Duration;

use pegboard::{Kind, ServerConfig, ToolCall};
use pegboard_testkit::{Answer, Era, FakeServer, Fault, NetHandle, Tool, When};

use crate::{
    fixtures::*,
    raw::{self, Step},
    support::*,
};

const SMALL: usize = 64 << 10;

/// A server of each transport and era, with a fault on the first call.
async fn broken(fault: &Fault) -> Vec<(NetHandle, ServerConfig)> {
    let with = |era| fake(era).fault_on(When::tool("hello").first(1), fault.clone());
    let mut servers = Vec::new();
    for era in BOTH_ERAS {
        let web = with(era).serve_http().await.unwrap();
        let config = http(&web.url());
        servers.push((web, config));
    }
    servers
}

#[tokio::test]
async fn an_answer_larger_than_the_limit_costs_its_call_only() {
    let oversized = Fault::Oversized {
        bytes: 2 * SMALL,
        with_id: true,
        then_valid: false,
    };
    for fault in [Fault::EndlessBody, oversized] {
        for (fake, config) in broken(&fault).await {
            let board = board(limited(config, |limits| limits.max_message = SMALL));
            let tools = board.toolset();
            let reply = hello(&tools).await;
            let text = lost(&reply, Kind::LimitExceeded);
            let said = [
                "discarded for its size",
                &format!("larger than {SMALL} bytes"),
                "`max_message`",
            ];
            assert!(said.iter().all(|said| text.contains(said)), "{text}");
            assert!(reply.outcome.hint().unwrap().contains("max_message"));
            assert_eq!(fake.count("tools/call"), 1);
            assert_greets(&tools, &format!("after {fault:?}")).await;
        }
    }
}

#[tokio::test]
async fn an_event_larger_than_the_limit_costs_its_call_only() {
    for era in BOTH_ERAS {
        let fake = FakeServer::new("fx")
            .era(era)
            .streams()
            .tool(Tool::new("big").answers(Answer::Bytes(2 * SMALL)))
            .tool(Tool::new("hello").answers_text("hi"))
            .serve_http()
            .await
            .unwrap();
        let board = board(limited(http(&fake.url()), |limits| limits.max_message = SMALL));
        let tools = board.toolset();
        lost(&tools.call(ToolCall::new("fx.big")).await, Kind::LimitExceeded);
        assert_greets(&tools, "after").await;
    }
}

#[tokio::test]
async fn events_without_end_are_bounded_whatever_they_are_made_of() {
    let line = |text: &str| text.repeat(6 * SMALL / text.len());
    let endless = [
        format!("data: {}", line("x")),
        line("data: x\n"),
        line("data\n"),
        format!("event: {}", line("e")),
        format!("id: {}", line("i")),
        format!(": {}", line("c")),
        line("no colon "),
    ];
    for modern in [true, false] {
        for text in endless.clone() {
            let start = text[..12].to_owned();
            let server = raw::serve(move |seen| match seen.method() {
                "tools/call" => vec![raw::stream_head(), Step::Write(text.clone().into_bytes()), Step::Hang],
                _ => raw::healthy(seen, modern),
            })
            .await;
            let board = board(limited(http(&server.url("/mcp")), |limits| limits.max_message = SMALL));
            let reply = tokio::time::timeout(PATIENCE, hello(&board.toolset())).await;
            let reply = reply.unwrap_or_else(|_| panic!("no end for {start}"));
            lost(&reply, Kind::LimitExceeded);
        }
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_to_an_end_ends_with_the_calls_limit() {
    let faults = [
        Fault::BodyDrip { every_ms: 50 },
        Fault::OnlyKeepAlive { every_ms: 10 },
        Fault::NeverAnswers,
        Fault::ProgressForEver { every_ms: 10 },
    ];
    for fault in faults {
        for (fake, config) in broken(&fault).await {
            let board = board(config);
            let tools = board.toolset();
            board_is_ready(&tools).await;
            let limited = ToolCall::new("fx.hello").timeout(Duration::from_millis(700));
            let reply = tokio::time::timeout(PATIENCE, tools.call(limited))
                .await
                .expect("bounded");
            lost(&reply, Kind::Timeout);
            assert_eq!(fake.count("tools/call"), 1);
            until("nothing waits any more", || status(&board).in_flight == 0).await;
            assert_greets(&tools, &format!("after {fault:?}")).await;
        }
    }
}

#[tokio::test]
async fn keep_alives_are_no_sign_of_life_but_progress_is() {
    for (fake, config) in broken(&Fault::OnlyKeepAlive { every_ms: 10 }).await {
        let board = board(limited(config, |limits| {
            limits.call_timeout = Duration::from_millis(300)
        }));
        let text = lost(&hello(&board.toolset()).await, Kind::Timeout);
        assert!(text.contains("no sign of life"), "{text}");
        drop(fake);
    }
    for era in BOTH_ERAS {
        let fake = FakeServer::new("fx")
            .era(era)
            .tool(
                Tool::new("hello")
                    .progress(30, Duration::from_millis(100))
                    .answers_text("hi"),
            )
            .serve_http()
            .await
            .unwrap();
        let board = board(limited(http(&fake.url()), |limits| {
            limits.call_timeout = Duration::from_secs(2)
        }));
        assert_greets(&board.toolset(), "longer than the idle limit, with progress").await;
    }
}

#[tokio::test]
async fn a_caller_may_allow_less_than_the_server_does() {
    for (_fake, config) in broken(&Fault::NeverAnswers).await {
        let tools = board(config).toolset();
        let limit = Duration::from_millis(200);
        // The first call connects the server, so the second one measures the call alone.
        board_is_ready(&tools).await;
        let reply = tools.call(ToolCall::new("fx.hello").timeout(limit)).await;
        lost(&reply, Kind::Timeout);
        assert_greets(&tools, "after").await;
    }
}

async fn board_is_ready(tools: &pegboard::Toolset) {
    assert!(tools.list(PATIENCE).await.unavailable.is_empty());
}

#[tokio::test]
async fn an_endless_answer_at_the_start_is_an_error_of_the_start() {
    for method in ["server/discover", "initialize", "tools/list"] {
        let fake = fake(Era::Both)
            .fault_on(When::method(method), Fault::EndlessBody)
            .serve_http()
            .await
            .unwrap();
        let mut config = limited(http(&fake.url()), |limits| limits.max_message = SMALL);
        if method == "initialize" {
            config.era = pegboard::config::EraChoice::Legacy;
        } else {
            config.era = pegboard::config::EraChoice::Modern;
        }
        let reply = tokio::time::timeout(PATIENCE, hello(&board(config).toolset()))
            .await
            .expect("bounded");
        let text = refused(&reply, Kind::Unavailable);
        assert!(text.contains("larger than"), "{method}: {text}");
    }
}

#[tokio::test]
async fn a_page_of_an_error_that_never_ends_is_not_waited_for() {
    let server = raw::serve(|seen| match seen.method() {
        "tools/call" => {
            let head = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
            vec![Step::Write(head.to_vec()), Step::Write(vec![b'x'; 1 << 20]), Step::Hang]
        }
        _ => raw::healthy(seen, true),
    })
    .await;
    let reply = hello(&board(http(&server.url("/mcp"))).toolset()).await;
    let text = lost(&reply, Kind::Transport);
    assert!(text.len() < 600, "{}", text.len());
}

#[tokio::test]
async fn listings_are_bounded_over_the_network_too() {
    for era in BOTH_ERAS {
        for (fault, words) in [
            (Fault::EndlessPages, None),
            (Fault::RepeatedCursor, Some("cursor")),
            (Fault::HangingPage { page: 2 }, Some("no answer")),
        ] {
            let fake = fake(era)
                .tools((0..4).map(|number| Tool::new(format!("more{number}"))))
                .pages_of(2)
                .fault(fault.clone())
                .serve_http()
                .await
                .unwrap();
            let config = limited(http(&fake.url()), |limits| {
                limits.list_timeout = Duration::from_secs(2);
                limits.max_pages = 10;
            });
            let reply = tokio::time::timeout(PATIENCE, hello(&board(config).toolset()))
                .await
                .expect("bounded");
            let Some(words) = words else {
                assert!(!reply.is_error(), "what was listed can be called: {}", reply.text());
                continue;
            };
            assert!(
                reply.is_error() && !reply.outcome.may_have_executed(),
                "{:?}",
                reply.outcome
            );
            assert!(reply.text().contains(words), "{fault:?}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn a_bad_tool_costs_itself_and_a_warning() {
    for era in BOTH_ERAS {
        for fault in [
            Fault::DuplicateTools,
            Fault::LongToolName { length: 200 },
            Fault::BrokenSchema,
            Fault::SchemaBomb {
                kind: pegboard_testkit::Bomb::Depth,
            },
            Fault::SchemaBomb {
                kind: pegboard_testkit::Bomb::HugeEnum,
            },
        ] {
            let fake = fake(era).fault(fault.clone()).serve_http().await.unwrap();
            let board = board(http(&fake.url()));
            let tools = board.toolset();
            let listing = tools.list(PATIENCE).await;
            let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, ["fx__echo", "fx__hello"], "{era:?} {fault:?}");
            assert!(!listing.warnings.is_empty(), "{era:?} {fault:?}");
            assert_greets(&tools, &format!("{fault:?}")).await;
        }
        let fake = fake(era)
            .fault(Fault::ManyTools { count: 3000 })
            .serve_http()
            .await
            .unwrap();
        let listing = board(http(&fake.url())).toolset().list(PATIENCE).await;
        assert_eq!(listing.tools.len(), 2048);
        assert!(!listing.warnings.is_empty());
    }
    let fake = fake(Era::Modern)
        .fault(Fault::BrokenMcpHeader)
        .serve_http()
        .await
        .unwrap();
    let listing = board(http(&fake.url())).toolset().list(PATIENCE).await;
    assert_eq!(listing.tools.len(), 2, "{:?}", listing.warnings);
}
