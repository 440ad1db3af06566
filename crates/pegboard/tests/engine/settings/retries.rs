//! Which failed calls are retried, how often, and after which waits.

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::{settings::fixtures::*, support::*};

/// A server that dies after it has executed each of the first two calls of `hello`.
fn dying() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").read_only().answers_text("hi"))
        .fault_on(When::tool("hello").first(2), Fault::DiesAfterExecuting { code: 1 })
}

async fn attempts(settings: &str) -> u32 {
    let stage = Stage::new(settings, &dying());
    stage.call_with("hello", json!({"id": "7"})).await.attempts
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_run_is_retried_as_the_server_is_configured() {
    for (settings, expected) in [
        ("", 1),
        ("retry = 'safe'", 3),
        ("retry = { mode = 'safe' }", 3),
        ("retry = { mode = 'safe', attempts = 1 }", 2),
        ("retry = { mode = 'idempotent' }", 2),
        ("trust = true", 3),
        ("trust = true\nretry = { mode = 'never' }", 1),
        ("retry = { unsafe = true }", 3),
        ("retry = { unsafe = true, attempts = 0 }", 1),
    ] {
        assert_eq!(attempts(settings).await, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_its_key_is_retried() {
    for (settings, expected) in [
        ("retry = { key_argument = 'id' }", 3),
        ("retry = { key_argument = 'other' }", 1),
    ] {
        assert_eq!(attempts(settings).await, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_a_retry_rule_of_its_own() {
    for (settings, expected) in [
        ("tools.hello.retry = 'safe'", 3),
        ("tools.hello.retry = 'never'\nretry = 'safe'", 1),
        ("tools.other.retry = 'safe'", 1),
        ("tools.hello.retry = { key_argument = 'id' }", 3),
        ("tools.hello.retry = { key_argument = 'other' }", 1),
    ] {
        assert_eq!(attempts(settings).await, expected, "{settings}");
    }
}

/// The milliseconds that a call takes that fails three times at once.
async fn waited(settings: &str) -> u128 {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read"))
        .fault_on(When::tool("read"), Fault::UnknownResultType);
    let settings = format!("call_timeout = '1h'\ncall_total_timeout = '1h'\nhealth_probe = 'none'\n{settings}");
    let stage = Stage::new(&settings, &fake);
    stage.tools.list(PATIENCE).await;
    let began = Instant::now();
    assert_eq!(stage.call("read").await.attempts, 3, "{settings}");
    began.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn the_waits_before_retries_are_those_of_the_config() {
    let waited = waited("retry = { mode = 'safe', attempts = 2, backoff = ['100s', '200s'] }").await;
    assert_eq!(waited / 1000, 300);
}

/// Each sum of waits lies within 150 s of 300 s. That both are 300.0 s is as good as impossible with jitter.
#[tokio::test(start_paused = true)]
async fn waits_vary_by_the_jitter() {
    let settings = "retry = { mode = 'safe', attempts = 2, backoff = ['100s', '200s'], jitter = 50 }";
    let (first, second) = (waited(settings).await, waited(settings).await);
    for waited in [first, second] {
        assert!((150_000..=451_000).contains(&waited), "{waited} ms");
    }
    assert!(first != second || first / 100 != 3000, "{first} ms and {second} ms");
}
