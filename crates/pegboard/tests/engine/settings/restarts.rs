//! When a server is started again after its session was lost or a start has failed.

use std::time::Duration;

use pegboard::Kind;
use tokio::time::Instant;

use crate::{settings::fixtures::*, support::*};

#[tokio::test(start_paused = true)]
async fn a_lost_server_is_restarted_unless_that_is_off() {
    for (settings, expected) in [
        ("", 2),
        ("restart = false", 1),
        ("restart = { enabled = false }", 1),
        ("restart = { enabled = true }", 2),
    ] {
        let stage = Stage::new(settings, &good());
        assert_eq!(stage.call("hello").await.text(), "hi");
        stage.handle.kill();
        tokio::time::sleep(secs(30)).await;
        assert_eq!(stage.starts(), expected, "{settings}");
        assert_eq!(stage.call("hello").await.text(), "hi", "{settings}");
    }
}

/// Each start fails after a second.
#[tokio::test(start_paused = true)]
async fn failed_starts_are_repeated_by_the_schedule_and_so_often() {
    for (settings, expected) in [
        ("restart = { backoff = ['100s'] }", [1, 2, 10]),
        ("restart = { backoff = ['10s', '300s'] }", [2, 2, 5]),
        ("restart = { backoff = ['100s'], max_attempts = 2 }", [1, 2, 2]),
    ] {
        let stage = Stage::new(&format!("connect_timeout = '1s'\n{settings}"), &silent());
        let mut starts = Vec::new();
        for seconds in [50, 100, 850] {
            tokio::time::sleep(secs(seconds)).await;
            starts.push(stage.starts());
        }
        assert_eq!(starts, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_restart_as_long_as_the_config_says() {
    for seconds in [0, 4, 10] {
        let stage = Stage::new(&format!("restart = {{ wait = '{seconds}s' }}"), &good());
        assert_eq!(stage.call("hello").await.text(), "hi");
        stage.handle.change(|script| *script = silent().script().clone());
        stage.handle.kill();
        // The board notices the end of the connection first.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let began = Instant::now();
        assert_eq!(stage.call("hello").await.outcome.kind(), Kind::RestartInProgress);
        assert_eq!(began.elapsed().as_secs_f64().round() as u64, seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_while_first_starts_fail_for_the_start_wait() {
    for (settings, is_error) in [("", true), ("start_wait = '60s'", false)] {
        let stage = Stage::new(&format!("connect_timeout = '1s'\n{settings}"), &silent());
        let recovering = async {
            tokio::time::sleep(secs(2)).await;
            stage.handle.change(|script| *script = good().script().clone());
        };
        let (reply, ()) = tokio::join!(stage.call("hello"), recovering);
        assert_eq!(reply.is_error(), is_error, "{settings}: {}", reply.text());
    }
}
