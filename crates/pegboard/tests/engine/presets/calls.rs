//! Rows about calls: timeouts, retries, the circuit breaker, arguments.

use pegboard::{Arguments, Kind, Outcome, ToolCall, config::BreakerPolicy};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{presets::fixtures::*, support::*};

const DAY: u64 = 24 * 3600;

/// Row `call timeout`: how long a call without a response takes, and whether progress keeps it alive.
#[tokio::test(start_paused = true)]
async fn call_timeout() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("mute"))
        .tool(Tool::new("busy").progress(5, secs(40)).answers_text("done"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers);
    let expected = row([
        (60, true),
        (60, false),
        (300, true),
        (DAY, true),
        (DAY, true),
        (60, true),
    ]);
    for (preset, (seconds, lives_by_progress)) in expected {
        // No health check interferes here.
        let stage = Stage::new(preset, "health_probe = 'none'", &fake).await;
        stage.tools.list(PATIENCE).await;
        let began = Instant::now();
        assert_outcome(&stage.call("mute").await, Kind::Timeout, true);
        assert_eq!(began.elapsed().as_secs(), seconds, "{preset}");
        let busy = stage.call("busy").await;
        let lives = matches!(busy.outcome, Outcome::Done(_));
        assert_eq!(lives, lives_by_progress, "{preset}: {}", busy.text());
        // The caller's own timeout applies under every preset.
        let began = Instant::now();
        let hasty = stage.tools.call(ToolCall::new("fx.mute").timeout(secs(7))).await;
        assert_outcome(&hasty, Kind::Timeout, true);
        assert_eq!(began.elapsed().as_secs(), 7, "{preset}");
    }
}

/// Row `retry calls`: how often a call is sent to a server that dies during it each time.
#[tokio::test(start_paused = true)]
async fn retry_calls() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("x"))
        .tool(Tool::new("write").answers_text("x"))
        .fault_on(When::method("tools/call"), Fault::DiesAfterExecuting { code: 1 });
    for (preset, again) in row([2, 1, 0, 0, 0, 3]) {
        assert_eq!(policy(preset).retry.attempts, again, "{preset}");
        let settings = format!("trust = true\nretry = {again}");
        for (settings, tool, attempts) in [
            ("trust = true", "read", again + 1),
            ("trust = true", "write", 1),
            ("", "read", 1),
            (&settings, "read", again + 1),
        ] {
            let stage = Stage::new(preset, settings, &fake).await;
            let reply = stage.call(tool).await;
            assert_eq!(
                reply.attempts,
                attempts,
                "{preset}: {tool}: {settings}: {}",
                reply.text()
            );
            assert!(reply.outcome.may_have_executed());
        }
    }
}

/// Row `retry calls`: two of the designs retry calls that may have run; here that must be configured.
#[tokio::test(start_paused = true)]
async fn retry_of_calls_that_may_have_run_is_opt_in() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("write").answers_text("x"))
        .fault_on(When::tool("write").first(1), Fault::DiesAfterExecuting { code: 1 });
    for (preset, attempts) in [("tarsy", 1), ("minion", 3)] {
        assert!(!policy(preset).retry.even_if_run, "{preset}");
        let settings = format!("retry = {{ attempts = {attempts}, unsafe = true }}");
        let stage = Stage::new(preset, &settings, &fake).await;
        let reply = stage.call("write").await;
        assert_eq!((reply.text().as_str(), reply.attempts), ("x", 2), "{preset}");
    }
}

/// Row `breaker`: how many of twelve calls reach a server that answers none of them.
#[tokio::test(start_paused = true)]
async fn breaker() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers);
    for (preset, reached) in row([5, 12, 12, 12, 12, 5]) {
        let stage = Stage::new(preset, "call_timeout = '1s'\ncall_total_timeout = '1s'", &fake).await;
        stage.tools.list(PATIENCE).await;
        for _ in 0..12 {
            assert!(stage.call("mute").await.is_error());
        }
        assert_eq!(stage.handle.count("tools/call"), reached, "{preset}");
    }
    let Some(BreakerPolicy::On(rule)) = policy("minion").breaker else {
        panic!("minion has a breaker")
    };
    let numbers = (
        rule.failures,
        rule.percent,
        rule.of,
        rule.open,
        rule.probes,
        rule.successes,
    );
    assert_eq!(numbers, (5, 50, 10, secs(30), 3, 2));
}

/// Row `args`: plain text, a wrong type, a missing argument, and an unknown one.
#[tokio::test(start_paused = true)]
async fn arguments() {
    let schema = json!({"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
        "title": {"type": "string"}, "limit": {"type": "integer"},
    }});
    let fake = FakeServer::new("fx").tool(Tool::new("create").schema(schema).echoes());
    let refused = None;
    let (text, number, nothing, more) = (
        json!({"title": "x", "limit": 5}),
        json!({"title": 5}),
        json!({}),
        json!({"title": "x", "more": 1}),
    );
    let mended = Some(json!({"title": "5"}));
    let as_is = |value: &Value| Some(value.clone());
    let expected = row([
        [refused.clone(), mended.clone(), None, None],
        [as_is(&text), as_is(&number), as_is(&nothing), as_is(&more)],
        [refused.clone(), mended.clone(), None, None],
        [refused.clone(), as_is(&number), as_is(&nothing), as_is(&more)],
        [refused.clone(), as_is(&number), None, as_is(&more)],
        [refused, mended, None, as_is(&more)],
    ]);
    for (preset, expected) in expected {
        let stage = Stage::new(preset, "", &fake).await;
        let object = |value: &Value| ToolCall::new("fx.create").arguments(Arguments::try_from(value.clone()).unwrap());
        let calls = [
            ToolCall::new("fx.create").text("title: x, limit: 5"),
            object(&number),
            object(&nothing),
            object(&more),
        ];
        for (call, expected) in calls.into_iter().zip(expected) {
            let reply = stage.tools.call(call).await;
            let got: Option<Value> = match reply.outcome {
                Outcome::Done(_) => Some(serde_json::from_str(unfenced(&reply.text())).unwrap()),
                _ => {
                    assert_outcome(&reply, Kind::InvalidArguments, false);
                    None
                }
            };
            assert_eq!(got, expected, "{preset}: {}", reply.text());
        }
    }
}
