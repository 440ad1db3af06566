//! Restarts on paused time: what callers see while a server is down, and when the supervisor brings it back.

use std::{pin::Pin, sync::Arc, time::Duration};

use pegboard::{
    Config, Kind, Outcome, Pegboard, ServerConfig, State,
    config::{Command, Transport},
    in_process::{ByteSink, ByteSource, DialContext, Dialer, DialerError},
};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

fn good() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"))
}

/// A board without restart jitter.
fn on_schedule(fake: &FakeServer) -> (Pegboard, pegboard_testkit::MemoryHandle) {
    let (_unused, handle) = fake.connect();
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), dialer(&handle))
        .without_jitter()
        .open();
    (board, handle)
}

async fn state(board: &Pegboard) -> State {
    // Lets everything that is due now happen first.
    tokio::time::sleep(Duration::from_millis(1)).await;
    board.status().servers[0].state
}

/// Attempts happen at 0, 0, 1, 3 and 8 s. Until one succeeds callers fail fast, and recovery needs no caller.
#[tokio::test(start_paused = true)]
async fn callers_fail_fast_while_a_server_is_down_and_recover_unasked() {
    let broken = FakeServer::new("fx").fault(Fault::SilentHandshake);
    let (board, handle) = on_schedule(&broken);
    let tools = board.toolset();
    let began = Instant::now();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::Unavailable, "{}", reply.text());
    assert_eq!(
        began.elapsed().as_secs(),
        30,
        "callers share the first start and its limit"
    );
    let began = Instant::now();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert!(matches!(reply.outcome, Outcome::Refused(_)));
    let text = reply.text();
    assert!(
        text.contains("next try in") || text.contains("it is being tried again"),
        "{text}"
    );
    assert!(began.elapsed().as_secs() < 1, "a server that is down is not waited for");
    handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(120)).await;
    assert_eq!(state(&board).await, State::Ready);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
}

/// An idle server that dies is restarted in the background, and its tools stay listed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_server_that_dies_idle_is_back_before_anybody_asks() {
    let (board, handle) = on_schedule(&good());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    for restart in 1..=3 {
        handle.kill();
        tokio::time::sleep(secs(8)).await;
        assert_eq!(state(&board).await, State::Ready);
        assert_eq!(board.status().servers[0].restarts, restart);
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    }
    let last = board.status().servers[0]
        .last_error
        .clone()
        .expect("what happened last is remembered");
    assert!(last.message.contains("closed"), "{}", last.message);
    assert!(board.status().warnings.is_empty(), "a warning ends with the recovery");
}

/// Five exits within a minute are a crash loop, which is retried once a minute.
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_again_and_again_is_tried_rarely() {
    let (board, handle) = on_schedule(&good());
    board.settle(PATIENCE).await;
    for _ in 0..5 {
        while state(&board).await != State::Ready {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        handle.kill();
        state(&board).await;
    }
    assert_eq!(state(&board).await, State::CrashLooping);
    let starts = handle.starts();
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::RestartFailed, "{}", reply.text());
    tokio::time::sleep(secs(50)).await;
    assert_eq!(handle.starts(), starts, "nobody tries meanwhile");
    tokio::time::sleep(secs(15)).await;
    assert_eq!(state(&board).await, State::Ready);
}

/// A dialer whose other side, such as a daemon, supervises the server.
struct Supervised<D>(D);

impl<D: Dialer> Dialer for Supervised<D> {
    fn dial(
        &self,
        context: DialContext,
    ) -> Pin<Box<dyn Future<Output = Result<(ByteSource, ByteSink), DialerError>> + Send + '_>> {
        self.0.dial(context)
    }

    fn supervises(&self) -> bool {
        true
    }
}

/// However often the connection to a daemon is lost, its servers are in no crash loop.
#[tokio::test(start_paused = true)]
async fn a_server_that_the_other_side_supervises_is_tried_as_often_as_ever() {
    let (_unused, handle) = good().connect();
    let mut config = ServerConfig::new(Transport::Stdio(Command::new("unused")));
    config.policy.restart.backoff = vec![Duration::from_millis(100)];
    let config = Config::new().server("fx", config).unwrap();
    let connected: Arc<dyn Dialer> = Arc::new(Supervised(dialer(&handle)));
    let board = Pegboard::builder(config)
        .stand_ins(move |_, _| connected.clone())
        .without_jitter()
        .open();
    board.settle(PATIENCE).await;
    for _ in 0..12 {
        handle.kill();
        assert_ne!(state(&board).await, State::CrashLooping);
        let reply = call(&board.toolset(), "fx.hello", json!({})).await;
        assert!(!reply.is_error(), "{}", reply.text());
    }
}

/// An idle server gets the health check of its era and is replaced when it does not answer.
#[tokio::test(start_paused = true)]
async fn a_quiet_server_is_probed_and_replaced_when_it_is_dead() {
    let (board, handle) = on_schedule(&good());
    board.settle(PATIENCE).await;
    tokio::time::sleep(secs(100)).await;
    assert!(handle.count("ping") >= 1);
    handle.change(|script| {
        *script = good()
            .fault_on(When::method("ping"), Fault::NeverAnswers)
            .fault_on(When::method("tools/list"), Fault::NeverAnswers)
            .script()
            .clone()
    });
    tokio::time::sleep(secs(200)).await;
    assert!(board.status().servers[0].restarts >= 1);
    let modern = good().era(pegboard_testkit::Era::Modern);
    let (board, handle) = on_schedule(&modern);
    board.settle(PATIENCE).await;
    let asked = handle.count("server/discover");
    tokio::time::sleep(secs(100)).await;
    assert_eq!(handle.count("ping"), 0, "the newest era has no ping");
    assert!(handle.count("server/discover") > asked);
    assert_eq!(board.status().servers[0].restarts, 0);
}

/// `list_changed` causes a new listing in both eras; a flood of these notifications causes only a few.
#[tokio::test(start_paused = true)]
async fn a_changed_listing_is_seen_and_a_storm_of_notices_is_not_followed_one_by_one() {
    for era in [pegboard_testkit::Era::Legacy, pegboard_testkit::Era::Modern] {
        let (board, handle) = on_schedule(&good().era(era));
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        tokio::time::sleep(secs(2)).await;
        handle.change(|script| {
            *script = good()
                .era(era)
                .tool(Tool::new("new").answers_text("new"))
                .script()
                .clone()
        });
        for _ in 0..100 {
            handle.tools_changed().await;
        }
        tokio::time::sleep(secs(2)).await;
        assert_eq!(call(&tools, "fx.new", json!({})).await.text(), "new", "{era:?}");
        assert!(
            handle.count("tools/list") <= 4,
            "{era:?}: {}",
            handle.count("tools/list")
        );
    }
}

/// A caller that cannot wait for a restart learns that one is in flight; a caller that arrives after it failed learns the failure.
#[tokio::test(start_paused = true)]
async fn a_restart_under_way_and_a_failed_one_are_told_apart() {
    let (board, handle) = on_schedule(&good());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    handle.change(|script| *script = FakeServer::new("fx").fault(Fault::SilentHandshake).script().clone());
    handle.kill();
    state(&board).await;
    let hasty = tools.call(pegboard::ToolCall::new("fx.hello").timeout(secs(2))).await;
    assert_eq!(hasty.outcome.kind(), Kind::RestartInProgress, "{}", hasty.text());
    tokio::time::sleep(secs(60)).await;
    let late = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(late.outcome.kind(), Kind::RestartFailed, "{}", late.text());
    handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(120)).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
}

/// A safe call is retried after an unknown outcome. If the retry cannot even start, the outcome stays unknown.
#[tokio::test(start_paused = true)]
async fn what_may_have_run_stays_so_when_the_next_attempt_is_refused() {
    let fake = good().tool(Tool::new("read").answers_text("x").after(secs(3600)));
    let (_unused, handle) = fake.connect();
    let mut settings = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
    settings
        .policy
        .tool_retry
        .insert("read".to_owned(), pegboard::config::RetryClass::Safe);
    let builder = Pegboard::builder(Config::default()).in_process_with(name("fx"), dialer(&handle), settings);
    let board = builder.without_jitter().open();
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let silent = FakeServer::new("fx").fault(Fault::SilentHandshake).script().clone();
    let calling = tokio::spawn(async move { call(&tools, "fx.read", json!({})).await });
    handle.wait_for("tools/call", 1).await;
    handle.change(|script| *script = silent);
    handle.kill();
    let reply = calling.await.unwrap();
    assert!(matches!(reply.outcome, Outcome::Lost(_)), "{:?}", reply.outcome);
    assert!(reply.outcome.may_have_executed());
}

/// A server that keeps forgetting its sessions is not in a crash loop: nothing crashed, and every call is answered.
#[tokio::test]
async fn a_server_that_forgets_often_is_not_taken_for_one_that_crashes() {
    let http = good().era(pegboard_testkit::Era::Legacy).serve_http().await.unwrap();
    let board = board(at(&http.url()));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    for _ in 0..4 {
        http.forget_sessions();
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        http.forget_sessions();
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    }
    assert_eq!(board.status().servers[0].restarts, 8);
    board.shutdown().await;
}

/// Only a change of the server or its config helps, so callers fail fast and further starts are rare.
#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_none_of_our_versions_is_tried_again_once_a_minute() {
    let stranger = FakeServer::new("fx").versions(&["2030-01-01"]);
    let (board, handle) = on_schedule(&stranger);
    let tools = board.toolset();
    let text = call(&tools, "fx.hello", json!({})).await.text();
    for said in ["2030-01-01", "2025-11-25", "2026-07-28", "next try in 60 s"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let starts = handle.starts();
    tokio::time::sleep(secs(59)).await;
    assert_eq!((handle.starts(), state(&board).await), (starts, State::Down));
    handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(2)).await;
    assert_eq!(state(&board).await, State::Ready);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
}

/// The handshake is rejected with an error that no retry fixes: the program is not an MCP server, or speaks no version of ours.
#[tokio::test(start_paused = true)]
async fn a_first_start_that_is_refused_as_invalid_is_rarely_repeated_and_a_later_one_often() {
    let refusing = |code| {
        let refusal = Fault::AnswersError {
            code,
            message: "invalid request".to_owned(),
            data: None,
        };
        good().fault_on(When::method("initialize"), refusal)
    };
    for (code, is_lasting) in [
        (-32600, true),
        (-32601, true),
        (-32602, true),
        (-32022, true),
        (-32603, false),
    ] {
        let (board, handle) = on_schedule(&refusing(code));
        call(&board.toolset(), "fx.hello", json!({})).await;
        let starts = handle.starts();
        tokio::time::sleep(secs(59)).await;
        assert_eq!(handle.starts() == starts, is_lasting, "{code}");
        tokio::time::sleep(secs(2)).await;
        assert!(handle.starts() > starts, "{code}");
    }

    let (board, handle) = on_schedule(&good());
    board.toolset().list(PATIENCE).await;
    handle.change(|script| *script = refusing(-32600).script().clone());
    handle.kill();
    tokio::time::sleep(secs(60)).await;
    handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(3600)).await;
    assert_eq!(state(&board).await, State::Ready);
}
