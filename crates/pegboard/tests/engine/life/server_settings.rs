//! A server's own settings for restarts, health checks and calls, which override those of the board.

use std::time::Duration;

use pegboard::{
    Config, Kind, Outcome, Pegboard, ServerConfig, State,
    config::{BreakerPolicy, BreakerRule, Probe, Restart},
};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

fn good() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("slow").answers_text("done").after(secs(900)))
}

fn silent() -> FakeServer {
    FakeServer::new("fx").fault(Fault::SilentHandshake)
}

fn restarts(change: impl FnOnce(&mut Restart)) -> ServerConfig {
    let mut settings = in_process_settings();
    change(&mut settings.policy.restart);
    settings
}

/// Lets everything that is due now happen first.
async fn settled(board: &Pegboard) -> State {
    tokio::time::sleep(Duration::from_millis(1)).await;
    board.status().servers[0].state
}

/// Restarts on demand: only the next call starts the server.
#[tokio::test(start_paused = true)]
async fn without_restarts_the_next_call_starts_a_lost_server() {
    let (board, handle) = in_memory_with(&good(), restarts(|restart| restart.enabled = false));
    let tools = board.toolset();
    board.settle(PATIENCE).await;
    let starts = handle.starts();
    handle.kill();
    assert_eq!(settled(&board).await, State::Down, "lost, and not idle");
    let status = board.status();
    assert!(!status.healthy);
    assert!(status.servers[0].last_error.is_some());
    tokio::time::sleep(secs(3600)).await;
    assert_eq!(handle.starts(), starts);
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(handle.starts(), starts + 1);
}

/// The same for a failed start: each later call is one more attempt, and reports its result.
#[tokio::test(start_paused = true)]
async fn without_restarts_a_failed_start_is_tried_again_by_the_next_call_only() {
    let (board, handle) = in_memory_with(&silent(), restarts(|restart| restart.enabled = false));
    let tools = board.toolset();
    let before = handle.starts();
    for attempt in 1..=2 {
        assert!(call(&tools, "fx.hello", json!({})).await.is_error());
        tokio::time::sleep(secs(600)).await;
        assert_eq!(handle.starts(), before + attempt);
    }
    handle.change(|script| *script = good().script().clone());
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
}

/// After its last attempt a server stays down until an operator reconnects it.
#[tokio::test(start_paused = true)]
async fn a_server_is_left_alone_after_its_last_attempt() {
    let (board, handle) = in_memory_with(&silent(), restarts(|restart| restart.max_attempts = Some(3)));
    let before = handle.starts();
    tokio::time::sleep(secs(7200)).await;
    assert_eq!(handle.starts(), before + 3);
    let status = board.status().servers[0].clone();
    assert_eq!(status.state, State::Down);
    assert_contains(
        &status.last_error.expect("a reason").message,
        &["after 3 failed starts"],
    );
    handle.change(|script| *script = good().script().clone());
    board.reconnect(&name("fx")).await;
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
}

/// Callers wait for a restart as long as the config says, or not at all.
#[tokio::test(start_paused = true)]
async fn how_long_a_call_waits_for_a_restart_is_a_setting() {
    for (wait, expected) in [(0, 0), (4, 4), (10, 10)] {
        let (board, handle) = in_memory_with(&good(), restarts(|restart| restart.wait = secs(wait)));
        let tools = board.toolset();
        board.settle(PATIENCE).await;
        handle.change(|script| *script = silent().script().clone());
        handle.kill();
        settled(&board).await;
        let began = Instant::now();
        let reply = call(&tools, "fx.hello", json!({})).await;
        assert_eq!(
            reply.outcome.kind(),
            Kind::RestartInProgress,
            "{wait}: {}",
            reply.text()
        );
        assert_eq!(began.elapsed().as_secs_f64().round() as u64, expected, "{wait}");
    }
}

/// A server's own backoff schedule overrides the one of the builder.
#[tokio::test(start_paused = true)]
async fn a_servers_own_schedule_wins_over_the_boards() {
    let (_unused, handle) = silent().connect();
    let mut settings = restarts(|restart| restart.backoff = vec![secs(100)]);
    settings.limits.connect_timeout = secs(1);
    let board = Pegboard::builder(Config::default())
        .in_process_with(name("fx"), dialer(&handle), settings)
        .restart_schedule(vec![secs(5)])
        .unwrap()
        .without_jitter()
        .open();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let first = handle.starts();
    tokio::time::sleep(secs(99)).await;
    assert_eq!(handle.starts(), first);
    tokio::time::sleep(secs(3)).await;
    assert_eq!(handle.starts(), first + 1);
    drop(board);
}

/// The kind and the interval of health checks are settings.
#[tokio::test(start_paused = true)]
async fn a_server_is_asked_in_the_words_and_as_often_as_its_config_says() {
    let asked = async |probe, every, method: &str| {
        let mut settings = in_process_settings();
        settings.policy.health.probe = probe;
        settings.policy.health.interval = every;
        let (board, handle) = in_memory_with(&good(), settings);
        board.settle(PATIENCE).await;
        let before = handle.count(method);
        tokio::time::sleep(secs(600)).await;
        handle.count(method) - before
    };
    let fifteen = Some(secs(15));
    let often = asked(Probe::ListTools, fifteen, "tools/list").await;
    assert!((35..=40).contains(&often), "{often}");
    assert_eq!(asked(Probe::ListTools, fifteen, "ping").await, 0);
    let usual = asked(Probe::Auto, Some(secs(60)), "ping").await;
    assert!((8..=10).contains(&usual), "{usual}");
    assert_eq!(asked(Probe::Auto, None, "ping").await, 0);
    assert_eq!(asked(Probe::Never, fifteen, "ping").await, 0);
}

/// Only an idle server is checked. A busy single-threaded server may not answer a health check, and must not lose its call for that.
#[tokio::test(start_paused = true)]
async fn a_server_at_work_is_not_asked() {
    let mut settings = in_process_settings();
    settings.limits.call_timeout = secs(3600);
    settings.limits.call_total_timeout = secs(3600);
    let deaf = good()
        .fault_on(When::method("ping"), Fault::NeverAnswers)
        .fault_on(When::method("tools/list").after(1), Fault::NeverAnswers);
    let (board, handle) = in_memory_with(&deaf, settings);
    board.settle(PATIENCE).await;
    assert_eq!(call(&board.toolset(), "fx.slow", json!({})).await.text(), "done");
    assert_eq!((handle.count("ping"), board.status().servers[0].restarts), (0, 0));
    tokio::time::sleep(secs(120)).await;
    assert!(
        board.status().servers[0].restarts > 0,
        "once it rests it is asked and found dead"
    );
}

/// With `health_interval = "off"` a server is checked only after a call has timed out.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_never_asked_by_itself_is_asked_after_a_timeout() {
    for (probe, expected) in [(Probe::Auto, 1), (Probe::Never, 0)] {
        let mut settings = in_process_settings();
        settings.policy.health.interval = None;
        settings.policy.health.probe = probe;
        settings.policy.health.timeout = secs(3);
        settings.limits.call_timeout = secs(5);
        let dead = good()
            .fault_on(When::method("ping"), Fault::NeverAnswers)
            .fault_on(When::method("tools/list").after(1), Fault::NeverAnswers)
            .fault_on(When::tool("hello"), Fault::NeverAnswers);
        let (board, _handle) = in_memory_with(&dead, settings);
        let reply = call(&board.toolset(), "fx.hello", json!({})).await;
        assert_outcome(&reply, Kind::Timeout, true);
        tokio::time::sleep(secs(10)).await;
        assert_eq!(board.status().servers[0].restarts, expected, "{probe:?}");
    }
}

/// The status reports only checks that took place: without probes, the start stays the last one.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_never_probed_was_last_checked_when_it_started() {
    for (probe, is_checked) in [(Probe::Auto, true), (Probe::Never, false)] {
        let mut settings = in_process_settings();
        settings.policy.health.interval = None;
        settings.policy.health.probe = probe;
        settings.limits.call_timeout = secs(5);
        let (board, _handle) = in_memory_with(&good(), settings);
        board.settle(PATIENCE).await;
        let checked_at = || board.status().servers[0].checked_at.expect("the check of the start");
        let at_start = checked_at();
        let reply = call(&board.toolset(), "fx.slow", json!({})).await;
        assert_outcome(&reply, Kind::Timeout, true);
        tokio::time::sleep(secs(10)).await;
        assert_eq!(checked_at() > at_start, is_checked, "{probe:?}");
    }
}

/// A call that may have run is retried only if the operator's config says so, and at most as often.
#[tokio::test(start_paused = true)]
async fn a_servers_config_says_which_calls_are_made_again() {
    let check = async |attempts, even_if_run, expected: Result<u32, u32>| {
        let mut settings = in_process_settings();
        settings.policy.retry.attempts = attempts;
        settings.policy.retry.even_if_run = even_if_run;
        let dying = good().fault_on(When::tool("hello").first(2), Fault::DiesAfterExecuting { code: 1 });
        let (board, _handle) = in_memory_with(&dying, settings);
        let reply = call(&board.toolset(), "fx.hello", json!({})).await;
        let got = match reply.outcome {
            Outcome::Done(_) => Ok(reply.attempts),
            _ => Err(reply.attempts),
        };
        assert_eq!(got, expected, "{attempts} {even_if_run}: {}", reply.text());
    };
    check(2, false, Err(1)).await;
    check(2, true, Ok(3)).await;
    check(1, true, Err(2)).await;
    check(0, true, Err(1)).await;
}

/// Each server has the circuit breaker of its own config, whatever the board's is.
#[tokio::test(start_paused = true)]
async fn a_servers_own_breaker_wins_over_the_boards() {
    let mut rule = BreakerRule::default();
    (rule.failures, rule.open) = (2, secs(60));
    for (policy, let_through) in [
        (None, 4),
        (Some(BreakerPolicy::Off), 4),
        (Some(BreakerPolicy::On(rule)), 2),
    ] {
        let mut settings = in_process_settings();
        settings.policy.breaker = policy;
        settings.limits.call_timeout = secs(1);
        let (_unused, handle) = good().fault_on(When::tool("hello"), Fault::NeverAnswers).connect();
        let board = Pegboard::builder(Config::default())
            .in_process_with(name("fx"), dialer(&handle), settings)
            .without_breaker()
            .open();
        let tools = board.toolset();
        for _ in 0..4 {
            call(&tools, "fx.hello", json!({})).await;
        }
        assert_eq!(handle.count("tools/call"), let_through, "{policy:?}");
        let is_open = board.status().servers[0].breaker == "open";
        assert_eq!(is_open, let_through == 2, "{policy:?}");
    }
}

/// A program that cannot be executed is not executed again to try the other era; a program that exits by itself is.
#[tokio::test]
async fn a_program_that_cannot_be_run_is_not_tried_in_the_other_era() {
    for (code, expected) in [(127, 1), (126, 1), (1, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = format!("echo run >> {}; exit {code}", log.display());
        let command = pegboard::config::Command::new("/bin/sh").args(["-c", &script]);
        let mut config = ServerConfig::new(pegboard::config::Transport::Stdio(command));
        config.policy.restart.enabled = false;
        let board = board(config);
        board.settle(PATIENCE).await;
        let error = board.status().servers[0].last_error.clone().expect("a reason");
        assert_contains(&error.message, &[&format!("exit code {code}")]);
        let runs = std::fs::read_to_string(&log).unwrap_or_default().lines().count();
        assert_eq!(runs, expected, "exit code {code}");
        board.shutdown().await;
    }
}
