//! TARSy's client (seed 000): its tables of parsing, routing and recovery, as an agent sees them under the preset `tarsy`.

use std::{sync::Arc, time::Duration};

use pegboard::{Kind, Outcome, Reply, Selection, State, ToolCall, ToolExecutor, View};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{presets::fixtures::*, support::*};

/// TARSy, section 4: every row of the parsing cascade, and the types that values get.
#[tokio::test(start_paused = true)]
async fn seed_000_parsing() {
    let fake = FakeServer::new("fx").tool(Tool::new("run").echoes());
    let stage = Stage::new("tarsy", "", &fake).await;
    for (row, text, expected) in [
        ("empty input", "  ", json!({})),
        (
            "1. JSON object",
            r#"{"namespace": "default"}"#,
            json!({"namespace": "default"}),
        ),
        ("2. JSON string", r#""pods""#, json!({"input": "pods"})),
        ("2. JSON number", "42", json!({"input": 42})),
        ("2. JSON array", "[1, 2]", json!({"input": [1, 2]})),
        (
            "3. YAML with an array",
            "items:\n  - a\n  - b",
            json!({"items": ["a", "b"]}),
        ),
        (
            "3. YAML with a map",
            "meta:\n  app: web",
            json!({"meta": {"app": "web"}}),
        ),
        ("4. key: value", "namespace: default", json!({"namespace": "default"})),
        ("4. key=value", "a=1, b=x", json!({"a": 1, "b": "x"})),
        ("4. on lines", "a: 1\nb: x", json!({"a": 1, "b": "x"})),
        ("5. raw string", "list all pods", json!({"input": "list all pods"})),
        ("boolean", "a: true, b: FALSE", json!({"a": true, "b": false})),
        ("null", "a: null, b: None", json!({"a": null, "b": null})),
        ("integer", "a: -7", json!({"a": -7})),
        ("float", "a: 0.5", json!({"a": 0.5})),
        ("text", "a: 1.2.3", json!({"a": "1.2.3"})),
    ] {
        let reply = stage.tools.call(ToolCall::new("fx.run").text(text)).await;
        let got: Value = serde_json::from_str(&reply.text()).unwrap_or_else(|_| panic!("{row}: {}", reply.text()));
        assert_eq!(got, expected, "{row}");
    }
}

/// TARSy, section 5: both forms of a name reach the tool; any other name gives a result that lists the tools, not an error of the program.
#[tokio::test(start_paused = true)]
async fn seed_000_routing() {
    let fake = good()
        .tool(Tool::new("other"))
        .tool(Tool::new("a__b").answers_text("ab"));
    let stage = Stage::new("tarsy", "", &fake).await;
    let chosen = Selection::new().tools("fx", ["hello", "a__b"]);
    let tools: Arc<dyn ToolExecutor> = Arc::new(stage.board.toolset_with(View::new().selection(chosen)));
    let call = async |tool: &str| -> Reply { tools.call(ToolCall::new(tool)).await };
    for (row, tool, text) in [
        ("server.tool", "fx.hello", "hi"),
        ("server__tool", "fx__hello", "hi"),
        ("only the first __ divides", "fx__a__b", "ab"),
    ] {
        assert_eq!(call(tool).await.text(), text, "{row}");
    }
    for (row, tool, kind, words) in [
        (
            "not in server.tool format",
            "!",
            Kind::UnknownTool,
            &["there is no tool `!`"][..],
        ),
        (
            "server not available",
            "nope.hello",
            Kind::UnknownTool,
            &["nope", "Available servers: fx."],
        ),
        (
            "tool not in the filter",
            "fx.other",
            Kind::NotPermitted,
            &[
                "tool `other` of server `fx` is not part of the selection",
                "Available tools of server `fx`: a__b, hello.",
            ],
        ),
    ] {
        let reply = call(tool).await;
        assert_eq!(reply.outcome.kind(), kind, "{row}: {}", reply.text());
        assert_outcome(&reply, kind, false);
        assert_contains(&reply.text(), words);
    }
}

/// TARSy, section 6, on one connection: what is not retried, and what is retried in a new session.
#[tokio::test(start_paused = true)]
async fn seed_000_recovery() {
    let once = |fault| {
        let tool = Tool::new("read").read_only().answers_text("ok");
        FakeServer::new("fx")
            .tool(tool)
            .fault_on(When::tool("read").first(1), fault)
    };
    let error = Fault::AnswersError {
        code: -32602,
        message: "bad request".into(),
        data: None,
    };
    let lost = Fault::DiesAfterExecuting { code: 1 };
    for (row, fault, trust, attempts, starts, kind) in [
        ("deadline: no retry", Fault::NeverAnswers, true, 1, 1, Kind::Timeout),
        ("protocol error: no retry", error, true, 1, 1, Kind::ToolError),
        (
            "unknown error: no retry",
            Fault::UnknownResultType,
            false,
            1,
            1,
            Kind::Internal,
        ),
        ("connection lost: new session", lost.clone(), true, 2, 2, Kind::Ok),
        // We differ here: a call that may have run is retried only if the tool is known to be safe.
        ("connection lost, perhaps a write", lost, false, 1, 1, Kind::Transport),
    ] {
        let stage = Stage::new("tarsy", &format!("trust = {trust}"), &once(fault)).await;
        let reply = stage.call("read").await;
        assert_eq!(reply.outcome.kind(), kind, "{row}: {}", reply.text());
        assert_eq!((reply.attempts, stage.starts()), (attempts, starts), "{row}");
    }
    let always = FakeServer::new("fx")
        .tool(Tool::new("read").read_only())
        .fault_on(When::tool("read"), Fault::DiesAfterExecuting { code: 1 });
    let stage = Stage::new("tarsy", "trust = true", &always).await;
    assert_eq!(stage.call("read").await.attempts, 2, "max retries: 1");
}

/// TARSy, section 6, over HTTP: a rate limit is waited for in the same session, a forgotten session is replaced; both for any tool.
#[tokio::test]
async fn seed_000_recovery_over_http() {
    let limited = Fault::Status {
        status: 429,
        headers: vec![("Retry-After".into(), "0".into())],
        body: String::new(),
    };
    for (row, fault, sessions) in [("rate limit", limited, 1), ("session gone", Fault::SessionGone, 2)] {
        let fake = good()
            .era(pegboard_testkit::Era::Legacy)
            .fault_on(When::tool("hello").first(1), fault);
        let http = fake.serve_http().await.unwrap();
        let loaded = load(&format!(
            "preset = 'tarsy'\n[servers.fx]\nurl = '{}'\ntype = 'http'",
            http.url()
        ));
        assert_eq!(loaded.problems, []);
        let board = pegboard::Pegboard::open(loaded.config);
        let reply = call(&board.toolset(), "fx.hello", json!({})).await;
        assert_eq!((reply.text().as_str(), reply.attempts), ("hi", 2), "{row}");
        assert_eq!(http.count("initialize"), sessions, "{row}");
        board.shutdown().await;
    }
}

/// TARSy, section 6: however many callers lose a session, it is recreated once.
#[tokio::test(start_paused = true)]
async fn seed_000_a_session_is_recreated_once() {
    let tool = Tool::new("read").read_only().answers_text("ok").after(secs(1));
    let stage = Stage::new("tarsy", "trust = true", &FakeServer::new("fx").tool(tool)).await;
    stage.tools.list(PATIENCE).await;
    let calls = tokio::spawn({
        let tools = stage.tools.clone();
        async move { tools.call_all(["fx.read"; 5]).await }
    });
    stage.handle.wait_for("tools/call", 5).await;
    stage.handle.kill();
    for reply in calls.await.unwrap() {
        assert!(matches!(reply.outcome, Outcome::Done(_)), "{}", reply.text());
        assert_eq!(reply.attempts, 2);
    }
    assert_eq!(stage.starts(), 2);
}

/// TARSy, section 6: a new session has ten seconds (`ReinitTimeout`), not the thirty of the first.
#[tokio::test(start_paused = true)]
async fn seed_000_reinit_timeout() {
    let tool = Tool::new("read").read_only().answers_text("ok");
    let fake = FakeServer::new("fx")
        .tool(tool)
        .fault_on(When::tool("read"), Fault::DiesBeforeExecuting { code: 1 });
    let stage = Stage::new("tarsy", "trust = true", &fake).await;
    stage.tools.list(PATIENCE).await;
    let calling = async {
        let began = Instant::now();
        let reply = stage.call("read").await;
        (reply, began.elapsed().as_secs())
    };
    let breaking = async {
        stage.handle.wait_for("tools/call", 1).await;
        stage.handle.change(|script| *script = silent().script().clone());
    };
    let ((reply, took), ()) = tokio::join!(calling, breaking);
    assert!(reply.is_error(), "{}", reply.text());
    assert_eq!((took, stage.starts()), (10, 2), "{}", reply.text());
}

/// TARSy, section 6: the pause before the retry is 250 to 750 ms.
#[tokio::test(start_paused = true)]
async fn seed_000_retry_backoff() {
    for _ in 0..20 {
        let tool = Tool::new("read").read_only().answers_text("ok");
        let fake = FakeServer::new("fx")
            .tool(tool)
            .fault_on(When::tool("read").first(1), Fault::DiesAfterExecuting { code: 1 });
        let stage = Stage::new("tarsy", "trust = true", &fake).await;
        stage.tools.list(PATIENCE).await;
        let began = Instant::now();
        assert_eq!(stage.call("read").await.text(), "ok");
        let pause = began.elapsed().as_millis();
        assert!((250..=760).contains(&pause), "{pause}");
    }
}

/// TARSy, constants: a listing has ten seconds (`MCPListToolsTimeout`).
#[tokio::test(start_paused = true)]
async fn seed_000_list_tools_timeout() {
    let fake = good().fault_on(When::method("tools/list"), Fault::NeverAnswers);
    let stage = Stage::new("tarsy", "", &fake).await;
    let began = Instant::now();
    assert!(stage.call("hello").await.is_error());
    assert_eq!(began.elapsed().as_secs(), 10);
}

/// TARSy, section 8: the listing of a health check replaces the tools that the agent sees, also between its calls.
#[tokio::test(start_paused = true)]
async fn seed_000_a_health_check_updates_the_tools() {
    let stage = Stage::new("tarsy", "", &good()).await;
    assert_eq!(stage.tools.list(PATIENCE).await.tools.len(), 1);
    let more = good().tool(Tool::new("more").answers_text("new"));
    stage.handle.change(|script| *script = more.script().clone());
    for _ in 0..4 {
        tokio::time::sleep(secs(4)).await;
        assert_eq!(stage.call("hello").await.text(), "hi");
    }
    assert_eq!(stage.tools.list(PATIENCE).await.tools.len(), 2, "without a notice");
    assert_eq!(stage.call("more").await.text(), "new");
    assert_eq!(stage.starts(), 1);
}

/// TARSy, section 8: a failed health check recreates the session once, without a caller.
#[tokio::test(start_paused = true)]
async fn seed_000_a_failed_health_check_reinitializes() {
    let error = Fault::AnswersError {
        code: -32603,
        message: "out of order".into(),
        data: None,
    };
    for (row, fault) in [
        ("an error", error),
        ("no answer", Fault::NeverAnswers),
        ("closed", Fault::CutThenEof),
    ] {
        let fake = good().fault_on(When::method("tools/list").nth(2), fault);
        let stage = Stage::new("tarsy", "", &fake).await;
        stage.tools.list(PATIENCE).await;
        assert_eq!(stage.starts(), 1, "{row}");
        tokio::time::sleep(secs(40)).await;
        assert_eq!(stage.starts(), 2, "{row}");
        assert_eq!(stage.call("hello").await.text(), "hi", "{row}");
        assert_eq!(stage.starts(), 2, "{row}");
    }
}

/// TARSy, section 8: a server that cannot be reconnected is unhealthy, with a warning, until a later check finds it. The board shows shared
/// servers.
#[tokio::test(start_paused = true)]
async fn seed_000_a_server_that_is_gone_is_unhealthy_until_a_check_finds_it() {
    for (row, kills, scope) in [
        ("killed between calls", true, "shared"),
        ("lists nothing any more", false, "shared"),
        ("killed, a server for each session", true, "session"),
        ("lists nothing, a server for each session", false, "session"),
        ("killed, several connections", true, "pool(2)"),
    ] {
        let stage = Stage::new("tarsy", &format!("scope = '{scope}'"), &good()).await;
        stage.board.settle(PATIENCE).await;
        assert!(stage.board.status().healthy, "{row}");
        let dead = crashing().fault_on(
            When::method("tools/list"),
            Fault::AnswersError {
                code: -32603,
                message: "out of order".into(),
                data: None,
            },
        );
        stage.handle.change(|script| *script = dead.script().clone());
        if kills {
            stage.handle.kill();
        }
        tokio::time::sleep(secs(16)).await;
        let since = stage.board.status().servers[0].since;
        for _ in 0..4 {
            let starts = stage.starts();
            tokio::time::sleep(secs(15)).await;
            assert!(stage.starts() > starts, "{row}: every check tries again");
            let status = stage.board.status();
            let server = &status.servers[0];
            assert_eq!((server.state, status.healthy), (State::Down, false), "{row}");
            assert_eq!(status.warnings.len(), 1, "{row}");
            assert_contains(&status.warnings[0].details, &["closed its output"]);
            assert_eq!((server.since, status.warnings[0].created_at), (since, since), "{row}");
            assert_contains(
                server.check_error.as_deref().unwrap_or_default(),
                &["closed its output"],
            );
        }
        stage.handle.change(|script| *script = good().script().clone());
        tokio::time::sleep(secs(15)).await;
        let status = stage.board.status();
        assert_eq!((status.servers[0].state, status.healthy), (State::Ready, true), "{row}");
        assert!(status.warnings.is_empty(), "{row}");
        assert_eq!(status.servers[0].check_error, None, "{row}");
    }
}

/// TARSy, section 8: between two checks, a call is an attempt of its own.
#[tokio::test(start_paused = true)]
async fn seed_000_a_call_does_not_wait_for_the_next_check() {
    let stage = Stage::new("tarsy", "", &good()).await;
    stage.tools.list(PATIENCE).await;
    stage.handle.change(|script| *script = crashing().script().clone());
    stage.handle.kill();
    tokio::time::sleep(secs(1)).await;
    let began = Instant::now();
    assert!(stage.call("hello").await.is_error());
    assert!(began.elapsed() < secs(1));
    stage.handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(1)).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
    assert!(began.elapsed() < secs(3));
}

/// TARSy, section 8: `HealthStatus.LastCheck`.
#[tokio::test(start_paused = true)]
async fn seed_000_the_time_of_the_last_check() {
    let stage = Stage::untouched("tarsy", "scope = 'shared'", &good());
    let checked = || stage.board.status().servers[0].checked_at;
    assert_eq!(checked(), None);
    stage.board.settle(PATIENCE).await;
    let mut last = checked().expect("a start is a check");
    for _ in 0..3 {
        tokio::time::sleep(secs(15) + Duration::from_millis(1)).await;
        let next = checked().unwrap();
        assert!(next > last);
        last = next;
    }
    let asked = stage.handle.count("tools/list");
    stage.call("hello").await;
    assert_eq!((checked(), stage.handle.count("tools/list")), (Some(last), asked));
}
