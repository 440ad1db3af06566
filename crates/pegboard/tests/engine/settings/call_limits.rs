//! How often an agent may call a tool, and what it may call after untrusted output.

use pegboard::{
    Kind, View,
    approval::{Decision, Question},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

fn two() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("a").echoes())
        .tool(Tool::new("b").echoes())
}

/// How many of ten equal calls of each tool are answered.
async fn answered(settings: &str) -> [usize; 2] {
    let stage = Stage::new(settings, &two());
    let mut answered = [0; 2];
    for (tool, answered) in ["a", "b"].into_iter().zip(&mut answered) {
        for _ in 0..10 {
            let reply = stage.call(tool).await;
            match reply.outcome.kind() {
                Kind::Ok => *answered += 1,
                kind => assert_eq!(kind, Kind::LimitExceeded, "{}", reply.text()),
            }
        }
    }
    answered
}

#[tokio::test(start_paused = true)]
async fn an_agent_calls_no_more_often_than_the_rate() {
    for (settings, expected) in [
        ("", [10, 10]),
        ("rate = '4/min'", [4, 0]),
        ("rate = '14/10m'", [10, 4]),
        ("tools.a.rate = '3/h'", [3, 10]),
        ("rate = '5/min'\ntools.'?'.rate = '3/min'", [3, 2]),
    ] {
        assert_eq!(answered(settings).await, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_no_more_often_than_the_loop_limit() {
    for (settings, expected) in [
        ("loop_limit = 0", [10, 10]),
        ("loop_limit = 6", [6, 6]),
        ("loop_limit = 6\ntools.b.loop_limit = 0", [6, 10]),
        ("tools.a.loop_limit = 2", [2, 10]),
    ] {
        assert_eq!(answered(settings).await, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_high_risk_are_restricted_after_untrusted_output() {
    let yes = || {
        View::new().approver(|question: &Question<'_>| {
            assert!(question.is_tainted);
            Decision::Once
        })
    };
    for (settings, view, expected) in [
        ("taint = 'off'", View::new(), Kind::Ok),
        ("taint = 'ask'", View::new(), Kind::NotPermitted),
        ("taint = 'ask'", yes(), Kind::Ok),
        ("taint = 'block'", yes(), Kind::NotPermitted),
    ] {
        let stage = Stage::new(settings, &two());
        let tools = stage.board.toolset_with(view);
        assert_eq!(call(&tools, "fx.a", json!({})).await.outcome.kind(), Kind::Ok);
        let reply = call(&tools, "fx.b", json!({})).await;
        assert_eq!(reply.outcome.kind(), expected, "{settings}: {}", reply.text());
    }
}
