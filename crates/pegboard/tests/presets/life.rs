//! Rows about a server's life: scope, start, failures, connect time, restarts, health.

use pegboard::{Config, IdleStop, Kind, Pegboard, Probe, Scope, Start, State};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::{support::*, words::*};

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

/// Row `start`: with the board, with the agent's session, with the first use, or when somebody says so.
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
            says(&listing.unavailable[0].error, &["nobody has connected it"]);
            stage.board.reconnect(&name("fx")).await;
            assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
        }
    }
}

/// Row `on_start_failure`: the board opens, the others work, and the caller learns why; only `required` makes a board not ready.
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
            ended_as(&call(&tools, "fx.hello", json!({})).await, Kind::Unavailable, false);
            assert_eq!(
                unfenced(&call(&tools, "other.hello", json!({})).await.text()),
                "hi",
                "{preset}"
            );
            assert_eq!(board.status().ready, !required, "{preset}");
        }
    }
}

/// Row `connect / acquire timeout`: how long the first caller waits; the second one is turned away at once. Later a call is an attempt of
/// its own where restarts are on demand, and is still turned away where they go on by themselves.
#[tokio::test(start_paused = true)]
async fn connect_and_acquire_timeout() {
    let expected = row([
        (30, Some(10)),
        (30, Some(30)),
        (60, Some(10)),
        (30, Some(30)),
        (30, Some(10)),
        (30, None),
    ]);
    for (preset, (seconds, later)) in expected {
        assert_eq!(file(preset, "").0.limits.connect, secs(seconds), "{preset}");
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
            Some(30) => assert_eq!(took, 30, "{preset}: on demand"),
            Some(most) => assert!(took <= most, "{preset}: {took}"),
            None => {}
        }
    }
    assert_eq!(
        policy("tarsy").restart.wait,
        secs(10),
        "a call waits so long for a new session"
    );
}

/// Row `restart backoff`: how often a server that never answers is started in an hour, and in the next.
#[tokio::test(start_paused = true)]
async fn restart_backoff() {
    let expected = row([
        (55..=75, 55..=65),
        (1..=1, 0..=0),
        (55..=75, 55..=65),
        (1..=1, 0..=0),
        (110..=130, 110..=120),
        (3..=3, 0..=0),
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
        // Whatever it was left at, a server that is well again is used again when somebody asks for it.
        stage.handle.change(|script| *script = good().script().clone());
        if preset == "minion" {
            assert_eq!(stage.board.status().servers[0].state, State::Down);
            stage.board.reconnect(&name("fx")).await;
        }
        tokio::time::sleep(secs(120)).await;
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
    }
    let waits = |preset| {
        policy(preset)
            .restart
            .waits
            .iter()
            .map(|wait| wait.as_secs())
            .collect::<Vec<_>>()
    };
    assert_eq!(waits("ai-agent"), [0, 1, 2, 5, 10, 30, 60]);
    assert_eq!(waits("goat"), [1, 2, 4, 8, 16, 30]);
    assert_eq!(
        (waits("minion"), policy("minion").restart.max_attempts),
        (waits("goat"), Some(3))
    );
    // Where the next call starts it, nobody else does.
    for (preset, on_demand) in row([false, true, false, true, false, false]) {
        assert_eq!(policy(preset).restart.enabled, !on_demand, "{preset}");
    }
}

/// Row `health`: what a server that nobody uses is asked in 280 seconds.
#[tokio::test(start_paused = true)]
async fn health() {
    let expected = row([
        ("ping", 3..=5),
        ("tools/list", 17..=19),
        ("ping", 0..=0),
        ("ping", 0..=0),
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

/// Row `health`, after a call has timed out: ai-agent asks once and waits three seconds; antwort and goat never ask.
#[tokio::test(start_paused = true)]
async fn health_after_a_timeout() {
    for (preset, asks) in [("ai-agent", 1), ("antwort", 0), ("goat", 0)] {
        let dead = FakeServer::new("fx")
            .tool(Tool::new("hello"))
            .fault_on(When::tool("hello"), Fault::NeverAnswers)
            .fault_on(When::method("ping"), Fault::NeverAnswers);
        let stage = Stage::new(preset, "call_timeout = '5s'\ncall_total_timeout = '5s'", &dead).await;
        ended_as(&stage.call("hello").await, Kind::Timeout, true);
        let starts = stage.starts();
        tokio::time::sleep(secs(2)).await;
        assert_eq!((stage.handle.count("ping"), stage.starts()), (asks, starts), "{preset}");
        tokio::time::sleep(secs(2)).await;
        assert_eq!(
            stage.starts(),
            starts + asks as u32,
            "{preset}: one that does not answer is replaced"
        );
    }
    assert_eq!(policy("ai-agent").health.within, secs(3));
    for preset in ["antwort", "goat"] {
        assert_eq!(policy(preset).health.probe, Probe::Never, "{preset}");
    }
}
