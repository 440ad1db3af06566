//! minion's client (seed 004): its error categories (8.1) and its capability layers (5.2).

use pegboard::{Config, Grants, Kind, Pegboard, Provider, State, ToolCall, View};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::{presets::fixtures::*, support::*};

/// minion, 8.1, configuration errors: reported at once, before anything runs, and the other servers are available.
#[test]
fn seed_004_configuration_errors() {
    for (row, settings, words) in [
        ("an invalid transport", "type = 'carrier-pigeon'\ncommand = 'x'", "type"),
        ("a transport that it has not", "url = 'wss://h.test/'", "transports"),
        ("a required field is missing", "type = 'http'", "url"),
        ("both", "command = 'x'\nurl = 'https://h.test'", "not both"),
    ] {
        let loaded = load(&format!(
            "preset = 'minion'\n[servers.bad]\n{settings}\n[servers.good]\ncommand = 'x'"
        ));
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 1, "{row}: {errors:?}");
        assert_contains(&errors[0], &[words]);
        assert_eq!(loaded.config.servers.len(), 1, "{row}");
    }
}

/// minion, 8.1 and 8.4, connection errors: three retries with growing pauses, then one with every health check.
#[tokio::test(start_paused = true)]
async fn seed_004_connection_errors() {
    let stage = Stage::new("minion", "", &silent()).await;
    assert_outcome(&stage.call("hello").await, Kind::Unavailable, false);
    tokio::time::sleep(secs(120)).await;
    assert_eq!(stage.starts(), 4, "one attempt and three retries");
    let status = stage.board.status().servers[0].clone();
    assert_eq!(status.state, State::Down);
    assert_contains(&status.last_error.unwrap().message, &["after 4 failed starts"]);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(stage.starts(), 5, "a health check");
}

/// minion, 5.3: a call on a disconnected client connects it, also after the retries are used up; many calls make few attempts.
#[tokio::test(start_paused = true)]
async fn seed_004_a_call_connects_a_server_that_was_given_up() {
    let stage = Stage::new("minion", "", &crashing()).await;
    assert_outcome(&stage.call("hello").await, Kind::Unavailable, false);
    let began = Instant::now();
    let given_up = stage.starts();
    let mut refused = String::new();
    for _ in 0..120 {
        let reply = stage.call("hello").await;
        assert!(reply.is_error());
        refused = reply.text();
        tokio::time::sleep(secs(1)).await;
    }
    assert_contains(
        &refused,
        &["closed its output", "failed starts", "a call starts it again in"],
    );
    let attempts = f64::from(stage.starts() - given_up) / f64::from(given_up) * 4.0;
    assert!((3.0..=5.0).contains(&attempts), "{attempts} in {:?}", began.elapsed());
    stage.handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(30)).await;
    let (one, two) = tokio::join!(stage.call("hello"), stage.call("hello"));
    assert_eq!((one.text().as_str(), two.text().as_str()), ("hi", "hi"));
    assert_eq!(stage.board.status().servers[0].state, State::Ready);
    // After a successful start all retries are available again.
    stage.handle.change(|script| *script = crashing().script().clone());
    stage.handle.kill();
    let message = || stage.board.status().servers[0].last_error.clone().unwrap().message;
    let began = Instant::now();
    while !message().contains("after 4 failed starts") {
        assert!(began.elapsed() < secs(200), "{}", message());
        tokio::time::sleep(secs(1)).await;
    }
}

/// minion, 8.4: call retries pause 1, 2 and 4 seconds.
#[tokio::test(start_paused = true)]
async fn seed_004_pauses_between_call_retries() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").read_only())
        .fault_on(When::tool("read"), Fault::UnknownResultType);
    let stage = Stage::new("minion", "trust = true", &fake).await;
    stage.tools.list(PATIENCE).await;
    let began = Instant::now();
    assert_eq!(stage.call("read").await.attempts, 4);
    assert_eq!(began.elapsed().as_secs(), 7);
    let waits: Vec<u64> = policy("minion")
        .retry
        .backoff
        .iter()
        .map(|wait| wait.as_secs())
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 30]);
}

/// minion, 8.4: with `unsafe`, a call that timed out is retried, and its timeout leaves time for all retries.
#[tokio::test(start_paused = true)]
async fn seed_004_timeouts_are_retried_where_that_is_allowed() {
    let settings = "retry = { attempts = 3, backoff = ['1s', '2s', '4s'], unsafe = true }";
    for (mute, attempts, seconds) in [(2, 3, 123), (9, 4, 247)] {
        let fake = good().fault_on(When::tool("hello").first(mute), Fault::NeverAnswers);
        let stage = Stage::new("minion", settings, &fake).await;
        stage.tools.list(PATIENCE).await;
        let began = Instant::now();
        let reply = stage.call("hello").await;
        assert_eq!((reply.attempts, began.elapsed().as_secs()), (attempts, seconds));
        assert_eq!(reply.is_error(), mute == 9, "{}", reply.text());
    }
}

/// minion, client metrics: the last error of a call, and its time, for a server that is healthy again.
#[tokio::test(start_paused = true)]
async fn seed_004_the_last_error_of_calls() {
    let schema = json!({"type": "object", "required": ["n"]});
    let fake = good()
        .tool(Tool::new("logic").fails_with("no such issue"))
        .tool(Tool::new("strict").schema(schema))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers);
    let stage = Stage::new("minion", "", &fake).await;
    let last = || {
        let status = stage.board.status();
        assert!(status.healthy && status.warnings.is_empty(), "the server is well");
        status.servers[0].last_error.clone()
    };
    stage.call("hello").await;
    stage.call("strict").await;
    assert_eq!(last(), None, "what was not sent says nothing about the server");
    stage.call("logic").await;
    let first = last().expect("an error");
    assert_contains(&first.message, &["fx.logic", "no such issue"]);
    stage.call("mute").await;
    let second = last().expect("an error");
    assert_contains(&second.message, &["fx.mute", "60 s"]);
    assert!(second.at > first.at);
    stage.call("hello").await;
    assert_eq!(last(), Some(second), "it stays the last one");
}

/// minion, 8.1, authentication errors: reported at once with a warning, and not retried.
#[tokio::test]
async fn seed_004_authentication_errors() {
    let http = good().bearer("secret").serve_http().await.unwrap();
    let loaded = load(&format!("preset = 'minion'\n[servers.fx]\nurl = '{}'", http.url()));
    assert_eq!(loaded.problems, []);
    let board = Pegboard::open(loaded.config);
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::NeedsAuth, false);
    let status = board.status();
    assert_eq!(
        (status.servers[0].state, status.servers[0].restarts),
        (State::NeedsAuth, 0)
    );
    assert!(!status.healthy && !status.warnings.is_empty());
    assert!(reply.outcome.hint().is_some(), "what to do about it");
    board.shutdown().await;
}

/// minion, 8.1, tool execution errors and protocol errors: an error result, once, and the server goes on.
#[tokio::test(start_paused = true)]
async fn seed_004_tool_and_protocol_errors() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let fake = good()
        .tool(Tool::new("strict").schema(schema))
        .tool(Tool::new("logic").fails_with("no such issue"))
        .tool(Tool::new("refuses").refuses(-32602, "bad parameters"))
        .tool(Tool::new("odd").answers_text("x"))
        .fault_on(When::tool("odd"), Fault::UnknownResultType);
    let stage = Stage::new("minion", "", &fake).await;
    for (row, tool, kind, ran, attempts) in [
        (
            "invalid parameters, seen by us",
            "strict",
            Kind::InvalidArguments,
            false,
            0,
        ),
        ("invalid parameters, seen by it", "refuses", Kind::ToolError, true, 1),
        ("tool logic", "logic", Kind::ToolError, true, 1),
        ("invalid message", "odd", Kind::Internal, true, 1),
    ] {
        let reply = stage.call(tool).await;
        assert_outcome(&reply, kind, ran);
        assert_eq!(reply.attempts, attempts, "{row}");
        assert!(!reply.text().is_empty(), "{row}");
        assert_eq!(stage.call("hello").await.text(), "hi", "{row}: the server goes on");
    }
    assert_eq!(stage.starts(), 1);
}

/// minion, 8.1, resource errors: excess calls are rejected, and calls in flight go on.
#[tokio::test(start_paused = true)]
async fn seed_004_resource_errors() {
    let loaded = load("preset = 'minion'\nmax_servers = 1");
    let (_unused, handle) = good().connect();
    let board = Pegboard::builder(loaded.config)
        .in_process(name("fx"), dialer(&handle))
        .open();
    let refused = board.connect(name("more"), in_process_settings()).await;
    assert_contains(&refused.unwrap_err().to_string(), &["the board takes 1 servers"]);
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
}

/// minion, 5.2: all servers, one server, one tool; and nothing without a capability.
#[tokio::test(start_paused = true)]
async fn seed_004_capability_layers() {
    let github = FakeServer::new("github").tools(["create_issue", "list_issues"].map(Tool::new));
    let slack = FakeServer::new("slack").tool(Tool::new("post"));
    let settings = file("minion", "").0;
    let config = load("preset = 'minion'").config;
    let all = ["mcp_github_create_issue", "mcp_github_list_issues", "mcp_slack_post"];
    for (layer, capabilities, granted) in [
        ("global", &["mcp_integration"][..], &all[..]),
        ("server", &["mcp_github"], &all[..2]),
        ("tool", &["mcp_github_list_issues"], &all[1..2]),
        (
            "tools of two servers",
            &["mcp_github_list_issues", "mcp_slack"],
            &all[1..],
        ),
        ("none", &["something_else"], &[]),
    ] {
        let mut builder = Pegboard::builder(Config::clone(&config));
        for fake in [&github, &slack] {
            let (_unused, handle) = fake.connect();
            let server = name(&fake.script().name);
            builder = builder.in_process_with(server, dialer(&handle), settings.clone());
        }
        let board = builder.open();
        let grants = Grants::from_words(capabilities.iter().copied());
        let tools = board.toolset_with(View::new().grants(grants));
        let listing = tools.list(PATIENCE).await.tools;
        let names: Vec<&str> = listing.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, granted, "{layer}");
        for tool in all {
            let kind = call(&tools, tool, json!({})).await.outcome.kind();
            let expected = if granted.contains(&tool) {
                Kind::Ok
            } else {
                Kind::NotPermitted
            };
            assert_eq!(kind, expected, "{layer}: {tool}");
        }
    }
}

/// minion, `requiredCapabilities`: a tool may require more than its own grant.
#[tokio::test(start_paused = true)]
async fn seed_004_a_tool_may_require_further_capabilities() {
    let fake = good().tool(Tool::new("plain"));
    let settings = "[servers.fx.tools.'hello*']\nrequired_capabilities = ['deploy', 'on_call']";
    let stage = Stage::new("minion", settings, &fake).await;
    for (row, capabilities, kind) in [
        (
            "all of them",
            Some(&["mcp_integration", "on_call", "deploy"][..]),
            Kind::Ok,
        ),
        (
            "one is missing",
            Some(&["mcp_integration", "deploy"]),
            Kind::NotPermitted,
        ),
        (
            "the tool is not granted",
            Some(&["on_call", "deploy"]),
            Kind::NotPermitted,
        ),
        ("no grants at all", None, Kind::NotPermitted),
    ] {
        let view = match capabilities {
            Some(words) => View::new().grants(Grants::from_words(words.iter().copied())),
            None => View::new(),
        };
        let tools = stage.board.toolset_with(view);
        let listing = tools.list(PATIENCE).await;
        let is_listed = listing.tools.iter().any(|tool| tool.tool.name == "hello");
        assert_eq!(is_listed, kind == Kind::Ok, "{row}");
        let reply = call(&tools, "fx.hello", json!({})).await;
        assert_eq!(reply.outcome.kind(), kind, "{row}: {}", reply.text());
    }
    // The other tools do not need that capability.
    assert_eq!(stage.call("plain").await.text(), "ok");
    let reply = stage.call("hello").await;
    assert_eq!(
        reply.text(),
        "tool `fx.hello` may not be used: it needs a capability that was not granted. Available tools of server `fx`: plain."
    );
    assert_contains(reply.outcome.hint().unwrap(), &["`requires`"]);
}

/// minion, `ToolOutput`: the server and the tool are named also if the server was never reached.
#[tokio::test(start_paused = true)]
async fn seed_004_a_reply_names_its_server_also_when_it_cannot_be_reached() {
    let stage = Stage::new("minion", "", &silent()).await;
    for asked in ["fx.hello", "fx__hello", "mcp_fx_hello"] {
        let reply = stage.tools.call(ToolCall::new(asked)).await;
        assert_outcome(&reply, Kind::Unavailable, false);
        assert_contains(&reply.text(), &["server `fx` is down", "go on without it"]);
        assert_eq!((reply.name.as_str(), reply.asked.as_str()), ("fx.hello", asked));
        let json = serde_json::to_value(&reply).unwrap();
        assert_eq!((&json["server"], &json["tool"]), (&json!("fx"), &json!("hello")));
    }
    // A name without a server gives a reply without one.
    let reply = stage.tools.call(ToolCall::new("hello")).await;
    assert_eq!((reply.server, reply.tool), (None, None));
}

/// minion, `Execute`: an error without content gets a text, for the program and for the model.
#[tokio::test(start_paused = true)]
async fn seed_004_an_error_without_words_is_told() {
    let fake = FakeServer::new("fx").tool(Tool::new("silent").fails_with(""));
    let reply = Stage::new("minion", "", &fake).await.call("silent").await;
    assert_outcome(&reply, Kind::ToolError, true);
    let words = "the tool reported an error without saying why";
    assert_eq!(reply.text(), words);
    for provider in [Provider::Mcp, Provider::OpenAi, Provider::Anthropic, Provider::Gemini] {
        assert_contains(&provider.tool_result(&reply).to_string(), &[words]);
    }
}

/// minion, bridge: a server without tools causes a warning.
#[tokio::test(start_paused = true)]
async fn seed_004_a_server_without_tools_is_warned_about() {
    let stage = Stage::new("minion", "", &FakeServer::new("fx")).await;
    let listing = stage.tools.list(PATIENCE).await;
    assert_eq!(listing.warnings, ["fx: the server offers no tools, and nothing else"]);
    let stage = Stage::new("minion", "", &good()).await;
    assert!(stage.tools.list(PATIENCE).await.warnings.is_empty());
}
