//! Rows about the lifecycle: scope, start, failures, connect timeout, restarts, health.

use pegboard::{
    Config, Kind, Pegboard,
    config::{IdleStop, Probe, Scope, Start},
};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::{presets::fixtures::*, support::*};

/// Row `scope`: two agents share a server, or have one each.
#[tokio::test(start_paused = true)]
async fn scope() {
    use Scope::{Session, Shared};
    for (preset, scope) in row([Shared, Session, Shared, Shared, Session, Shared]) {
        assert_eq!(policy(preset).scope, scope, "{preset}");
        let stage = Stage::new(preset, "", &good()).await;
        let other = stage.board.toolset();
        for tools in [&stage.tools, &other] {
            assert_eq!(
                unfenced(&call(tools, "fx.hello", json!({})).await.text()),
                "hi",
                "{preset}"
            );
        }
        let expected = if scope == Session { 2 } else { 1 };
        assert_eq!(stage.starts(), expected, "{preset}");
    }
}

/// Row `start`: with the board, with the agent's session, with the first use, or on request.
#[tokio::test(start_paused = true)]
async fn start() {
    use Start::{Eager, Explicit, Lazy};
    let expected = row([
        (Eager, 1, 1),
        (Eager, 1, 1),
        (Eager, 1, 1),
        (Lazy, 0, 1),
        (Explicit, 0, 0),
        (Lazy, 0, 1),
    ]);
    for (preset, (start, with_board, with_list)) in expected {
        assert_eq!(file(preset, "").0.start, start, "{preset}");
        let stage = Stage::untouched(preset, "", &good());
        tokio::time::sleep(secs(5)).await;
        assert_eq!(stage.starts(), with_board, "{preset}: with the board");
        let listing = stage.tools.list(PATIENCE).await;
        assert_eq!(stage.starts(), with_list, "{preset}: with the listing");
        assert_eq!(listing.tools.len(), with_list as usize, "{preset}");
        if start == Explicit {
            assert_contains(&listing.unavailable[0].error, &["nobody has connected it"]);
            stage.board.reconnect(&name("fx")).await;
            assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
        }
    }
}

/// Row `on_start_failure`: the board opens, the other servers work, and the caller gets the reason; only `required` makes a board not
/// ready.
#[tokio::test(start_paused = true)]
async fn on_start_failure() {
    for (preset, ()) in row([(); 6]) {
        for required in [false, true] {
            let (_unused, broken) = silent().connect();
            let (_unused, other) = good().connect();
            let settings = file(preset, &format!("required = {required}")).0;
            let board = Pegboard::builder(Config::default())
                .in_process_with(name("fx"), dialer(&broken), settings)
                .in_process(name("other"), dialer(&other))
                .open();
            if preset == "goat" {
                board.reconnect(&name("fx")).await;
            }
            let tools = board.toolset();
            let listing = tools.list(secs(90)).await;
            let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, ["other__hello"], "{preset}");
            let missing = &listing.unavailable[0];
            assert_eq!(missing.server, name("fx"), "{preset}");
            assert!(!missing.error.is_empty(), "{preset}");
            assert_outcome(&call(&tools, "fx.hello", json!({})).await, Kind::Unavailable, false);
            assert_eq!(
                unfenced(&call(&tools, "other.hello", json!({})).await.text()),
                "hi",
                "{preset}"
            );
            assert_eq!(board.status().ready, !required, "{preset}");
        }
    }
}

/// Row `connect / acquire timeout`: how long the first caller waits; the second one fails fast. Later, a call is an attempt of its own if
/// restarts are on demand, and still fails fast if they run in the background.
#[tokio::test(start_paused = true)]
async fn connect_and_acquire_timeout() {
    let expected = row([(30, 10), (30, 30), (60, 10), (30, 30), (30, 10), (30, 10)]);
    for (preset, (seconds, later)) in expected {
        assert_eq!(file(preset, "").0.limits.connect_timeout, secs(seconds), "{preset}");
        let stage = Stage::new(preset, "", &silent()).await;
        let took = async || {
            let began = Instant::now();
            let reply = stage.call("hello").await;
            assert!(!reply.outcome.may_have_executed() && reply.is_error(), "{preset}");
            began.elapsed().as_secs()
        };
        assert_eq!(took().await, seconds, "{preset}");
        assert_eq!(took().await, 0, "{preset}: a short circuit");
        tokio::time::sleep(secs(600)).await;
        let took = took().await;
        match later {
            30 => assert_eq!(took, 30, "{preset}: on demand"),
            most => assert!(took <= most, "{preset}: {took}"),
        }
    }
}

/// Row `start_wait`: a caller waits while failing first starts are retried, or fails with the first of them.
#[tokio::test(start_paused = true)]
async fn start_wait() {
    for (preset, wait) in row([0, 0, 60, 0, 0, 30]) {
        assert_eq!(policy(preset).restart.start_wait, secs(wait), "{preset}");
        let stage = Stage::new(preset, "", &crashing()).await;
        let recovering = async {
            tokio::time::sleep(secs(2)).await;
            stage.handle.change(|script| *script = good().script().clone());
        };
        let (reply, ()) = tokio::join!(stage.call("hello"), recovering);
        assert_eq!(reply.is_error(), wait == 0, "{preset}: {}", reply.text());
    }
}

/// Row `restart backoff`: how often a server that never answers is started in the first hour, and in the next.
#[tokio::test(start_paused = true)]
async fn restart_backoff() {
    let expected = row([
        (55..=75, 55..=65),
        (220..=240, 220..=240),
        (55..=75, 55..=65),
        (55..=65, 55..=65),
        (110..=130, 110..=120),
        (110..=125, 110..=125),
    ]);
    for (preset, (first, second)) in expected {
        let stage = Stage::new(preset, "connect_timeout = '1s'", &silent()).await;
        stage.call("hello").await;
        tokio::time::sleep(secs(3600)).await;
        let after_one = stage.starts();
        tokio::time::sleep(secs(3600)).await;
        let then = stage.starts() - after_one;
        assert!(first.contains(&after_one), "{preset}: {after_one}");
        assert!(second.contains(&then), "{preset}: {then}");
        // Whatever its state, a recovered server is used by the next call.
        stage.handle.change(|script| *script = good().script().clone());
        tokio::time::sleep(secs(120)).await;
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
    }
    let waits = |preset| {
        policy(preset)
            .restart
            .backoff
            .iter()
            .map(|wait| wait.as_secs())
            .collect::<Vec<_>>()
    };
    assert_eq!(waits("ai-agent"), [0, 1, 2, 5, 10, 30, 60]);
    assert_eq!(waits("goat"), [1, 2, 4, 8, 16, 30]);
    assert_eq!(
        (waits("minion"), policy("minion").restart.max_attempts),
        (waits("goat"), Some(4)),
        "three after the first"
    );
    // With restarts on demand, only a health check or the next call starts the server.
    for (preset, on_demand) in row([false, true, false, true, false, false]) {
        assert_eq!(policy(preset).restart.enabled, !on_demand, "{preset}");
    }
}

/// Row `health`: the health checks that an idle server gets in 280 seconds.
#[tokio::test(start_paused = true)]
async fn health() {
    let expected = row([
        ("ping", 3..=5),
        ("tools/list", 17..=19),
        ("ping", 0..=0),
        ("ping", 3..=5),
        ("ping", 0..=0),
        ("ping", 8..=10),
    ]);
    for (preset, (method, often)) in expected {
        let stage = Stage::new(preset, "", &good()).await;
        stage.call("hello").await;
        let (asked, all) = (stage.handle.count(method), stage.handle.requests().len());
        tokio::time::sleep(secs(280)).await;
        let asked = stage.handle.count(method) - asked;
        assert!(often.contains(&asked), "{preset}: {asked}");
        let others = stage.handle.requests().len() - all - asked;
        assert_eq!(others, 0, "{preset}: nothing else is asked");
    }
    assert_eq!(
        policy("minion").idle_stop,
        IdleStop::Auto,
        "after five minutes it rests"
    );
}

/// Row `health`, after a call has timed out: ai-agent waits three seconds for a response, antwort five; goat never checks.
#[tokio::test(start_paused = true)]
async fn health_after_a_timeout() {
    for (preset, asks, within) in [("ai-agent", 1, 3), ("antwort", 1, 5), ("goat", 0, 5)] {
        let dead = FakeServer::new("fx")
            .tool(Tool::new("hello"))
            .fault_on(When::tool("hello"), Fault::NeverAnswers)
            .fault_on(When::method("ping"), Fault::NeverAnswers)
            .fault_on(When::method("tools/list").after(1), Fault::NeverAnswers);
        let stage = Stage::new(preset, "call_timeout = '5s'\ncall_total_timeout = '5s'", &dead).await;
        assert_outcome(&stage.call("hello").await, Kind::Timeout, true);
        let starts = stage.starts();
        tokio::time::sleep(secs(within - 1)).await;
        assert_eq!((stage.handle.count("ping"), stage.starts()), (asks, starts), "{preset}");
        tokio::time::sleep(secs(2)).await;
        assert_eq!(
            stage.starts(),
            starts + asks as u32,
            "{preset}: one that does not answer is replaced"
        );
    }
    assert_eq!(policy("goat").health.probe, Probe::Never);
}

/// Row `health`: which lost servers are restarted by a health check although restarts are on demand or have ended.
#[tokio::test(start_paused = true)]
async fn health_restart() {
    for (preset, restarts) in row([false, true, false, true, false, true]) {
        assert_eq!(policy(preset).health.restart, restarts, "{preset}");
        let stage = Stage::new(preset, "restart = false", &good()).await;
        stage.call("hello").await;
        let starts = stage.starts();
        stage.handle.kill();
        tokio::time::sleep(secs(61)).await;
        assert_eq!(stage.starts(), starts + u32::from(restarts), "{preset}");
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
        assert_eq!(stage.starts(), starts + 1, "{preset}: once");
    }
}
