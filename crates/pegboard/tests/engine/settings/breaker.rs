//! When the circuit breaker of a server opens, and when it closes.

use crate::{settings::fixtures::*, support::*};

/// A breaker that stays open for a minute, with more settings.
fn stage(settings: &str) -> Stage {
    let settings = format!("call_timeout = '1s'\nhealth_probe = 'none'\nbreaker = {{ open = '60s', {settings} }}");
    Stage::new(&settings, &good())
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_after_failures_in_a_row_unless_it_is_off() {
    for (settings, expected) in [
        ("breaker = { failures = 2 }", "open"),
        ("breaker = { failures = 3 }", "closed"),
        ("breaker = { failures = 2, enabled = false }", "closed"),
        ("breaker = false", "closed"),
    ] {
        let stage = Stage::new(&format!("call_timeout = '1s'\n{settings}"), &good());
        for _ in 0..2 {
            assert!(stage.call("mute").await.is_error());
        }
        assert_eq!(stage.breaker(), expected, "{settings}");
    }
}

/// Three of four calls fail, at most two of them in a row.
#[tokio::test(start_paused = true)]
async fn a_breaker_opens_when_too_large_a_part_of_the_last_calls_failed() {
    for (settings, expected) in [
        ("percent = 50, of = 4", "open"),
        ("percent = 80, of = 4", "closed"),
        ("percent = 50, of = 5", "closed"),
        ("percent = 0, of = 4", "closed"),
    ] {
        let stage = stage(&format!("failures = 100, {settings}"));
        for tool in ["mute", "hello", "mute", "mute"] {
            stage.call(tool).await;
        }
        assert_eq!(stage.breaker(), expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_is_open_for_its_time() {
    for (seconds, expected) in [(59, "open"), (61, "half_open")] {
        let stage = stage("failures = 1");
        stage.call("mute").await;
        tokio::time::sleep(secs(seconds)).await;
        assert_eq!(stage.breaker(), expected, "`open` after {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_open_breaker_lets_some_probes_through_at_once() {
    for probes in [1, 2, 3] {
        let settings = format!("breaker = {{ failures = 1, open = '60s', probes = {probes} }}");
        let stage = Stage::new(
            &format!("call_timeout = '30s'\nhealth_probe = 'none'\n{settings}"),
            &good(),
        );
        stage.call("mute").await;
        tokio::time::sleep(secs(61)).await;
        let before = stage.handle.count("tools/call");
        stage.tools.call_all(["fx.slow"; 4]).await;
        assert_eq!(stage.handle.count("tools/call") - before, probes, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_open_breaker_closes_after_enough_successes() {
    for (successes, expected) in [(1, "closed"), (2, "half_open")] {
        let stage = stage(&format!("failures = 1, successes = {successes}"));
        stage.call("mute").await;
        tokio::time::sleep(secs(61)).await;
        assert_eq!(stage.call("hello").await.text(), "hi");
        assert_eq!(stage.breaker(), expected, "successes = {successes}");
        assert_eq!(stage.call("hello").await.text(), "hi");
        assert_eq!(stage.breaker(), "closed", "successes = {successes}");
    }
}
