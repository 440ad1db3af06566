//! Unreachable servers and invalid responses: the right error kind, the right hint, within the time limits.

use std::time::Duration;

use pegboard::{Kind, Outcome, ServerConfig, State, ToolCall, config::RetryClass};
use pegboard_testkit::{Era, Fault, NetHandle, When, refused_address, stalled_listener};
use serde_json::json;

use crate::{
    fixtures::*,
    raw::{self, Step},
    support::*,
};

/// All network transports for one address.
fn transports(address: &str) -> [ServerConfig; 4] {
    [
        at(&format!("http://{address}/mcp")),
        http(&format!("http://{address}/mcp")),
        sse(&format!("http://{address}/sse")),
        ws(&format!("ws://{address}/mcp")),
    ]
}

async fn check_unreachable(config: ServerConfig, kind: Kind, hint: &str) -> String {
    let shown = config.transport.kind();
    let board = board(config);
    let tools = board.toolset();
    let reply = tokio::time::timeout(PATIENCE, hello(&tools)).await.expect("bounded");
    let text = refused(&reply, kind);
    let told = reply.outcome.hint().unwrap_or_default();
    assert!(told.contains(hint), "{shown}: {text}, {told:?}");
    assert_eq!(reply.attempts, 0);
    let status = status(&board);
    assert_eq!(status.state, State::Down);
    assert_eq!(status.last_error.unwrap().hint.as_deref(), reply.outcome.hint());
    board.shutdown().await;
    text
}

#[tokio::test]
async fn a_refused_connection_says_that_nothing_listens() {
    let address = refused_address().await.unwrap().to_string();
    for config in transports(&address) {
        check_unreachable(config, Kind::Unavailable, "nothing listens").await;
    }
}

#[tokio::test]
async fn an_unknown_host_says_so() {
    for config in transports("no-such-host.invalid") {
        check_unreachable(config, Kind::Unavailable, "host name is not known").await;
    }
}

#[tokio::test]
async fn a_host_that_never_says_a_word_ends_with_the_connect_limit() {
    let (address, _guard) = stalled_listener().await.unwrap();
    for scheme in ["", "s"] {
        for config in [
            at(&format!("http{scheme}://{address}/mcp")),
            http(&format!("http{scheme}://{address}/mcp")),
            sse(&format!("http{scheme}://{address}/sse")),
            ws(&format!("ws{scheme}://{address}/mcp")),
        ] {
            let board = board(limited(config, |limits| limits.connect_timeout = secs(1)));
            let started = tokio::time::Instant::now();
            let reply = tokio::time::timeout(PATIENCE, hello(&board.toolset()))
                .await
                .expect("bounded");
            assert!(matches!(reply.outcome, Outcome::Refused(_)), "{:?}", reply.outcome);
            assert!(matches!(reply.outcome.kind(), Kind::Timeout | Kind::Unavailable));
            assert!(reply.outcome.hint().is_some(), "{:?}", reply.outcome);
            // By default it would take 30 s.
            assert!(started.elapsed() < secs(20), "{:?}", started.elapsed());
        }
    }
}

#[tokio::test]
async fn a_captive_portal_is_shown_by_its_first_words() {
    for era in BOTH_ERAS {
        let fake = fake(era)
            .fault_on(When::always(), Fault::HtmlPage)
            .serve_http()
            .await
            .unwrap();
        for config in [at(&fake.url()), http(&fake.url()), sse(&fake.url())] {
            let text = check_unreachable(config, Kind::Unavailable, "not as an MCP server").await;
            assert!(
                text.contains("text/html") && text.contains("Welcome to the hotel"),
                "{text}"
            );
        }
    }
    let long = raw::serve(|_| raw::response("200 OK", "text/html", "<p>word ".repeat(10_000).as_bytes())).await;
    let text = check_unreachable(at(&long.url("/mcp")), Kind::Unavailable, "MCP server").await;
    assert!(text.len() < 600, "{}", text.len());
}

async fn faulty(era: Era, fault: Fault) -> NetHandle {
    fails_once(era, fault).serve_http().await.unwrap()
}

#[tokio::test]
async fn a_call_with_an_answer_of_the_wrong_kind_is_lost_with_a_look_at_it() {
    for era in BOTH_ERAS {
        for kind in ["text/plain", "application/xml; charset=utf-8"] {
            let fault = Fault::WrongContentType {
                content_type: kind.to_owned(),
            };
            let fake = faulty(era, fault).await;
            let tools = board(http(&fake.url())).toolset();
            let text = lost(&hello(&tools).await, Kind::Internal);
            assert!(
                text.contains(kind.split(';').next().unwrap()) && text.contains("jsonrpc"),
                "{text}"
            );
            assert_greets(&tools, "after").await;
        }
        // Content types are case-insensitive and may have parameters.
        let fault = Fault::WrongContentType {
            content_type: "Application/JSON; charset=UTF-8".to_owned(),
        };
        assert_greets(&board(http(&faulty(era, fault).await.url())).toolset(), "same kind").await;
    }
}

#[tokio::test]
async fn a_status_says_whether_the_call_can_have_run() {
    enum Ends {
        Refused,
        Lost,
    }
    use Ends::*;
    let cases = [
        (401, Refused, Kind::NeedsAuth, "auth"),
        (403, Refused, Kind::NeedsAuth, "does not allow this without credentials"),
        (405, Refused, Kind::Transport, "path of `url`"),
        (413, Refused, Kind::Transport, ""),
        (415, Refused, Kind::Transport, ""),
        (408, Lost, Kind::Transport, ""),
        (409, Lost, Kind::Transport, ""),
        (500, Lost, Kind::Transport, "log"),
        (502, Lost, Kind::Transport, "log"),
        (503, Lost, Kind::Transport, "log"),
        (504, Lost, Kind::Transport, "log"),
    ];
    for (status, ends, kind, hint) in cases {
        for era in BOTH_ERAS {
            let headers = vec![("retry-after".to_owned(), "7".to_owned())];
            let fault = Fault::Status {
                status,
                headers,
                body: "<h1>upstream said no</h1>".to_owned(),
            };
            let fake = faulty(era, fault).await;
            let tools = board(http(&fake.url())).toolset();
            let reply = hello(&tools).await;
            let text = match ends {
                Refused => refused(&reply, kind),
                Lost => lost(&reply, kind),
            };
            assert!(
                text.contains(&status.to_string()) && text.contains("upstream said no"),
                "{text}"
            );
            let told = reply.outcome.hint().unwrap_or_default();
            assert!(told.contains(hint), "{status}: {told}");
            assert_eq!(fake.count("tools/call"), 1, "{status}: no second attempt");
            assert_greets(&tools, "after").await;
        }
    }
}

fn busy(status: u16, retry_after: Option<u64>) -> Fault {
    let headers = retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string()));
    Fault::Status {
        status,
        headers: headers.into_iter().collect(),
        body: "<h1>upstream said no</h1>".to_owned(),
    }
}

#[tokio::test]
async fn a_server_with_too_much_to_do_is_asked_again_when_it_says_so() {
    for era in BOTH_ERAS {
        for (retry_after, at_least) in [(Some(1), Duration::from_secs(1)), (None, Duration::from_millis(100))] {
            let fake = faulty(era, busy(429, retry_after)).await;
            let reply = hello(&board(http(&fake.url())).toolset()).await;
            assert_retried(&reply);
            assert!(
                reply.latency >= at_least,
                "{era:?} {retry_after:?}: {:?}",
                reply.latency
            );
            assert_eq!(fake.count("tools/call"), 2);
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_left_alone_when_the_time_it_names_is_too_late() {
    for era in BOTH_ERAS {
        let fake = faulty(era, busy(429, Some(7))).await;
        let tools = board(http(&fake.url())).toolset();
        assert!(tools.list(PATIENCE).await.unavailable.is_empty());
        let reply = tools.call(ToolCall::new("fx.hello").timeout(secs(5))).await;
        let text = refused(&reply, Kind::Transport);
        assert!(text.contains("429") && text.contains("upstream said no"), "{text}");
        let told = reply.outcome.hint().unwrap();
        assert!(told.contains('7') && told.contains("again"), "{told}");
        assert!(reply.latency < secs(5), "nobody waits in vain: {:?}", reply.latency);
        assert_eq!((reply.attempts, fake.count("tools/call")), (1, 1));
        assert_greets(&tools, "after").await;
    }
}

#[tokio::test]
async fn a_server_that_stays_busy_is_asked_three_times() {
    let fake = fake(Era::Legacy)
        .fault_on(When::tool("hello"), busy(429, None))
        .serve_http()
        .await
        .unwrap();
    let reply = hello(&board(http(&fake.url())).toolset()).await;
    refused(&reply, Kind::Transport);
    assert_eq!((reply.attempts, fake.count("tools/call")), (3, 3));
}

/// A 503 may come from a proxy that forwarded the call, so only safe requests are retried, after the time in `Retry-After`.
#[tokio::test]
async fn an_unavailable_server_is_asked_again_only_for_what_is_harmless() {
    for era in BOTH_ERAS {
        let fake = faulty(era, busy(503, Some(1))).await;
        let mut config = http(&fake.url());
        config.policy.tool_retry.insert("hello".to_owned(), RetryClass::Safe);
        let reply = hello(&board(config).toolset()).await;
        assert_retried(&reply);
        assert!(reply.latency >= secs(1), "{:?}", reply.latency);
    }
}

#[tokio::test]
async fn an_error_status_with_an_error_of_the_protocol_is_the_servers_answer() {
    for (status, code, executed) in [
        (400, -32021, false),
        (404, -32601, false),
        (400, -32602, true),
        (500, -32603, true),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":3,"error":{{"code":{code},"message":"sorry"}}}}"#);
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let fake = faulty(Era::Modern, Fault::Status { status, headers, body }).await;
        let tools = board(http(&fake.url())).toolset();
        let reply = hello(&tools).await;
        assert!(
            reply.is_error() && reply.text().contains("sorry"),
            "{:?}",
            reply.outcome
        );
        assert_eq!(reply.outcome.may_have_executed(), executed, "{status} {code}");
        assert_eq!((reply.attempts, fake.count("tools/call")), (1, 1), "answers are final");
        assert_greets(&tools, "after").await;
    }
}

#[tokio::test]
async fn headers_that_do_not_fit_are_looked_up_once_and_no_more() {
    let body = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32020,"message":"sorry"}}"#;
    for (times, is_well) in [(1, true), (2, false)] {
        let fault = Fault::Status {
            status: 400,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_owned(),
        };
        let fake = fake(Era::Modern)
            .fault_on(When::tool("hello").first(times), fault)
            .serve_http()
            .await
            .unwrap();
        let tools = board(http(&fake.url())).toolset();
        let reply = hello(&tools).await;
        assert_eq!(!reply.is_error(), is_well, "{:?}", reply.outcome);
        assert!(is_well || (reply.text().contains("sorry") && !reply.outcome.may_have_executed()));
        assert_eq!((fake.count("tools/call"), fake.count("tools/list")), (2, 2));
        assert_greets(&tools, "after").await;
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_once_at_the_start() {
    for code in [429, 503] {
        let fault = status_fault(code, "");
        let fake = fake(Era::Legacy)
            .fault_on(When::always(), fault)
            .serve_http()
            .await
            .unwrap();
        check_unreachable(at(&fake.url()), Kind::Unavailable, "").await;
        assert_eq!(methods(&fake), ["server/discover"], "{code}");
    }
}

#[tokio::test]
async fn a_server_in_trouble_at_the_start_is_asked_once_in_each_way() {
    for code in [500, 502, 504] {
        let fault = status_fault(code, "");
        let fake = fake(Era::Legacy)
            .fault_on(When::always(), fault)
            .serve_http()
            .await
            .unwrap();
        let text = check_unreachable(at(&fake.url()), Kind::Unavailable, "log").await;
        assert!(text.contains(&code.to_string()), "{text}");
        assert_eq!(methods(&fake), ["server/discover", "initialize", "GET"], "{code}");
    }
}

#[tokio::test]
async fn a_server_that_stops_between_calls_refuses_them_and_is_found_again() {
    for era in BOTH_ERAS {
        let (_folder, ledger) = ledger();
        let fake = fake(era).ledger(&ledger).serve_http().await.unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        let numbered = |nonce: &str| call(&tools, "fx.hello", json!({ "nonce": nonce }));
        assert_eq!(numbered("1-before").await.text(), "hi");
        fake.stop().await;
        let reply = numbered("2-stopped").await;
        refused(&reply, Kind::Unavailable);
        assert_eq!(reply.attempts, 3, "{era:?}");
        assert!(reply.outcome.hint().unwrap().contains("nothing listens"));
        fake.restart().await.unwrap();
        // The new process does not know the old session; this call detects that and opens a new one.
        let reply = numbered("3-after").await;
        let attempts = 1 + u32::from(era == Era::Legacy);
        assert_eq!(
            (reply.text().as_str(), reply.attempts),
            ("hi", attempts),
            "{:?}",
            reply.outcome
        );
        assert_eq!(executed(&ledger), ["1-before", "3-after"]);
    }
}

#[tokio::test]
async fn a_call_outlives_a_short_stop_of_the_server() {
    let fake = fake(Era::Modern).serve_http().await.unwrap();
    let tools = board(http(&fake.url())).toolset();
    assert_greets(&tools, "before").await;
    fake.stop().await;
    let (reply, restarted) = tokio::join!(hello(&tools), fake.restart());
    restarted.unwrap();
    assert_eq!(reply.text(), "hi", "{:?}", reply.outcome);
    assert_eq!(fake.count("tools/call"), 2);
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_loses_it_at_once() {
    for era in BOTH_ERAS {
        for fault in [
            Fault::DiesBeforeExecuting { code: 1 },
            Fault::DiesAfterExecuting { code: 1 },
            Fault::DiesWhileAnswering { code: 1 },
        ] {
            let folder = tempfile::tempdir().unwrap();
            let fake = fake(era)
                .ledger(folder.path().join("ledger"))
                .fault_on(When::tool("hello").first(1), fault.clone())
                .serve_http()
                .await
                .unwrap();
            let board = board(http(&fake.url()));
            let tools = board.toolset();
            lost(&hello(&tools).await, Kind::Transport);
            assert_eq!(fake.count("tools/call"), 1, "{era:?} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_cut_before_any_answer_is_not_a_reason_to_ask_again() {
    let server = raw::serve(|seen| match seen.method() {
        "tools/call" => vec![Step::Reset],
        _ => raw::healthy(seen, true),
    })
    .await;
    let tools = board(http(&server.url("/mcp"))).toolset();
    lost(&hello(&tools).await, Kind::Transport);
    assert_eq!(server.count("tools/call"), 1);
}

/// Set in the process that may use up its own descriptors.
#[cfg(unix)]
const ALONE: &str = "PEGBOARD_TEST_ALONE";

/// Run by the test below in its own process.
#[cfg(unix)]
#[tokio::test]
async fn without_free_descriptors_a_start_fails_and_others_live() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let few = rustix::process::Rlimit {
        current: Some(200),
        ..limit
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
    let (known, other) = (
        fake(Era::Modern).serve_http().await.unwrap(),
        fake(Era::Modern).serve_http().await.unwrap(),
    );
    let mut late = http(&other.url());
    late.start = pegboard::config::Start::Lazy;
    let board = boards([("fx", http(&known.url())), ("late", late)]);
    let tools = board.toolset();
    assert_greets(&tools, "before").await;
    let mut held = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    let reply = call(&tools, "late.hello", json!({})).await;
    refused(&reply, Kind::Unavailable);
    assert_greets(&tools, "on the connection that is there").await;
    drop(held);
    let is_ready = |server: &pegboard::status::ServerStatus| server.state == State::Ready;
    until("both are there, unasked", || {
        board.status().servers.iter().all(is_ready)
    })
    .await;
    assert_eq!(call(&tools, "late.hello", json!({})).await.text(), "hi");
}

#[cfg(unix)]
#[tokio::test]
async fn a_machine_out_of_descriptors_fails_what_needs_one_and_recovers() {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "refusals::without_free_descriptors_a_start_fails_and_others_live",
    ]);
    let output = command.env(ALONE, "1").output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
