//! ai-agent's provider (seed 001): its table of settings, its invariants, and its rules for callers that wait for one server.

use std::time::Duration;

use pegboard::{
    Config, Env, Format, Kind, Pegboard, ServerConfig, State, ToolCall,
    config::{Probe, Scope, Transport},
};
use pegboard_testkit::{Era, FakeServer, Fault, Tool, When, is_alive};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{presets::fixtures::*, support::*};

/// Servers as ai-agent's files write them.
fn servers(servers: &Value) -> Config {
    let text = json!({"preset": "ai-agent", "mcpServers": servers, "queues": {"heavy": 1}}).to_string();
    let loaded = Config::from_text(&text, Format::Json, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{text}");
    loaded.config
}

fn server(settings: &Value) -> ServerConfig {
    let mut config = servers(&json!({"fx": settings}));
    config.servers.remove(&name("fx")).expect("a server")
}

/// Settings of the table on an in-process server.
fn stage(settings: &Value, fake: &FakeServer) -> (Pegboard, pegboard_testkit::MemoryHandle) {
    let mut all = json!({"type": "stdio", "command": "in-process"});
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    in_memory_with(fake, server(&all))
}

/// ai-agent, configuration: `type`, `command/args/env`, `url/headers`.
#[test]
fn seed_001_type_command_and_url() {
    let url = |kind: &str, url: &str| server(&json!({"type": kind, "url": url, "headers": {"X-Key": "k"}})).transport;
    for (row, transport, kind) in [
        ("type: websocket", url("websocket", "wss://h.test/mcp"), "websocket"),
        ("type: http", url("http", "https://h.test/mcp"), "http"),
        ("type: sse", url("sse", "https://h.test/sse"), "sse"),
    ] {
        assert_eq!(transport.kind(), kind, "{row}");
        let headers = &transport.endpoint().expect("a URL").headers;
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["X-Key"], "{row}");
    }
    let settings = json!({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "t"}});
    let Transport::Stdio(command) = server(&settings).transport else {
        panic!("type: stdio")
    };
    assert_eq!(
        (command.program.as_str(), command.args.len()),
        ("npx", 2),
        "command, args"
    );
    assert_eq!(command.env.keys().collect::<Vec<_>>(), ["TOKEN"], "env");
}

/// ai-agent, configuration: `toolsAllowed`, `toolsDenied`, case-insensitive.
#[tokio::test(start_paused = true)]
async fn seed_001_tools_allowed_and_denied() {
    let fake = FakeServer::new("fx").tools(["search_code", "delete_repo", "Search_Issues"].map(Tool::new));
    for (row, settings, expected) in [
        (
            "neither",
            json!({}),
            &["Search_Issues", "delete_repo", "search_code"][..],
        ),
        (
            "all",
            json!({"toolsAllowed": ["*"]}),
            &["Search_Issues", "delete_repo", "search_code"],
        ),
        ("allowed", json!({"toolsAllowed": ["SEARCH_CODE"]}), &["search_code"]),
        (
            "denied",
            json!({"toolsDenied": ["DELETE_REPO"]}),
            &["Search_Issues", "search_code"],
        ),
        (
            "both",
            json!({"toolsAllowed": ["search_*"], "toolsDenied": ["search_issues"]}),
            &["search_code"],
        ),
    ] {
        let (board, _handle) = stage(&settings, &fake);
        let tools = board.toolset().list(PATIENCE).await.tools;
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.tool.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{row}");
    }
}

/// ai-agent, configuration: `shared`, `healthProbe`, `queue`.
#[tokio::test(start_paused = true)]
async fn seed_001_shared_health_probe_and_queue() {
    let policy = |more: Value| {
        let mut settings = json!({"command": "x"});
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        server(&settings).policy
    };
    for (row, settings, scope, probe) in [
        ("neither", json!({}), Scope::Shared, Probe::Auto),
        ("shared: true", json!({"shared": true}), Scope::Shared, Probe::Auto),
        ("shared: false", json!({"shared": false}), Scope::Session, Probe::Auto),
        (
            "healthProbe: ping",
            json!({"healthProbe": "ping"}),
            Scope::Shared,
            Probe::Auto,
        ),
        (
            "healthProbe: listTools",
            json!({"healthProbe": "listTools"}),
            Scope::Shared,
            Probe::ListTools,
        ),
    ] {
        let policy = policy(settings);
        assert_eq!((policy.scope, policy.health.probe), (scope, probe), "{row}");
    }
    let config = servers(&json!({"fx": {"command": "in-process", "queue": "heavy"}}));
    let slow = FakeServer::new("fx").tool(Tool::new("slow").answers_text("done").after(secs(10)));
    let (_unused, handle) = slow.connect();
    let settings = config.servers[&name("fx")].clone();
    let mut rest = config;
    rest.servers.clear();
    let board = Pegboard::builder(rest)
        .in_process_with(name("fx"), dialer(&handle), settings)
        .open();
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let began = Instant::now();
    tools
        .call_all(vec![ToolCall::new("fx.slow"), ToolCall::new("fx.slow")])
        .await;
    assert_eq!(began.elapsed().as_secs(), 20, "queue: one at a time");
}

/// ai-agent, invariants 1 to 3: names contain the server, nothing is called before the handshake, and servers are shared.
#[tokio::test(start_paused = true)]
async fn seed_001_invariants_of_names_order_and_sharing() {
    let stage = Stage::new("ai-agent", "", &good()).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
    let methods: Vec<String> = stage
        .handle
        .requests()
        .into_iter()
        .map(|request| request.method)
        .collect();
    let position = |method: &str| methods.iter().position(|seen| seen == method).expect(method);
    assert!(position("initialize") < position("tools/list"), "2: {methods:?}");
    assert!(position("tools/list") < position("tools/call"), "2: {methods:?}");
    for tool in stage.tools.list(PATIENCE).await.tools {
        assert!(tool.name.starts_with("fx__"), "1: {}", tool.name);
    }
    call(&stage.board.toolset(), "fx.hello", json!({})).await;
    assert_eq!(stage.starts(), 1, "3");
}

/// ai-agent, invariants 4 and 6: an agent's own server ends and restarts alone; a shared one lives as long as one agent needs it.
#[tokio::test(start_paused = true)]
async fn seed_001_invariants_of_restarts_and_counting() {
    let own = Stage::new("ai-agent", "scope = 'session'", &good()).await;
    let other = own.board.toolset();
    own.call("hello").await;
    call(&other, "fx.hello", json!({})).await;
    other.close().await;
    assert_eq!(own.call("hello").await.text(), "hi");
    assert_eq!(own.starts(), 2, "4: the end of one is not noticed by the other");

    let shared = Stage::new("ai-agent", "", &good()).await;
    let other = shared.board.toolset();
    shared.call("hello").await;
    other.close().await;
    drop(other);
    assert_eq!(shared.call("hello").await.text(), "hi");
    assert_eq!(shared.starts(), 1, "6: one holder is left");
    shared.handle.kill();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let again = shared.board.toolset();
    let (one, two) = tokio::join!(shared.call("hello"), call(&again, "fx.hello", json!({})));
    assert_eq!((one.text().as_str(), two.text().as_str()), ("hi", "hi"));
    assert_eq!(shared.starts(), 2, "4: one restart for all");
}

/// ai-agent, invariant 5: the process id is known while the process runs, and the process ends with the board.
#[tokio::test]
async fn seed_001_invariant_of_processes() {
    let mut settings = process(&good());
    settings.policy = policy("ai-agent");
    let board = board(settings);
    board.settle(PATIENCE).await;
    let pid = board.status().servers[0].pid.expect("a process");
    assert!(is_alive(pid));
    board.shutdown().await;
    gone(pid, secs(10)).await;
}

/// ai-agent, acquire: the first callers wait together for sixty seconds, later ones fail fast, until the server has recovered in the
/// background.
#[tokio::test(start_paused = true)]
async fn seed_001_acquire_timeout_and_short_circuit() {
    let stage = Stage::new("ai-agent", "", &silent()).await;
    let began = Instant::now();
    let second = async {
        tokio::time::sleep(secs(5)).await;
        stage.call("hello").await
    };
    let watch = async {
        tokio::time::sleep(secs(59)).await;
        stage.starts()
    };
    let (first, second, starts) = tokio::join!(stage.call("hello"), second, watch);
    assert!(first.is_error() && second.is_error());
    assert_eq!(
        (began.elapsed().as_secs(), starts),
        (60, 1),
        "T=60s: both fail together"
    );
    let third = Instant::now();
    assert!(stage.call("hello").await.is_error());
    assert!(third.elapsed() < secs(1), "T=65s: a short circuit");
    stage.handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(240)).await;
    assert_eq!(
        stage.board.status().servers[0].state,
        State::Ready,
        "T=300s: it has recovered unasked"
    );
    assert_eq!(stage.call("hello").await.text(), "hi", "T=305s");
}

/// ai-agent, acquire, with a server that fails quickly: the first callers wait together while its start is retried.
#[tokio::test(start_paused = true)]
async fn seed_001_callers_wait_over_failing_starts() {
    let stage = Stage::new("ai-agent", "", &crashing()).await;
    let began = Instant::now();
    let second = async {
        tokio::time::sleep(secs(5)).await;
        stage.call("hello").await
    };
    let recovering = async {
        tokio::time::sleep(secs(20)).await;
        let status = stage.board.status().servers[0].clone();
        assert_eq!(status.state, State::Connecting);
        assert_contains(&status.last_error.unwrap().message, &["closed its output"]);
        stage.handle.change(|script| *script = good().script().clone());
    };
    let (first, second, ()) = tokio::join!(stage.call("hello"), second, recovering);
    assert_eq!((first.text().as_str(), second.text().as_str()), ("hi", "hi"));
    // The attempts follow each other after 0, 1, 2, 5, 10 and 30 s.
    assert_eq!(began.elapsed().as_secs(), 48);
}

/// ai-agent, acquire: with a server that keeps failing the first callers fail together after sixty seconds, and later ones at once, with
/// the age of the failure.
#[tokio::test(start_paused = true)]
async fn seed_001_callers_fail_together_and_learn_since_when() {
    let stage = Stage::new("ai-agent", "", &crashing()).await;
    let began = Instant::now();
    let second = async {
        tokio::time::sleep(secs(5)).await;
        stage.call("hello").await
    };
    let (first, second) = tokio::join!(stage.call("hello"), second);
    assert_eq!(began.elapsed().as_secs(), 60, "together");
    for reply in [first, second] {
        assert_outcome(&reply, Kind::Unavailable, false);
        assert_contains(&reply.text(), &["closed its output"]);
    }
    let since = stage.board.status().servers[0].since;
    for at in [65, 120, 450] {
        tokio::time::sleep_until(began + secs(at) + Duration::from_millis(100)).await;
        let asked = Instant::now();
        let reply = stage.call("hello").await;
        assert!(asked.elapsed() < secs(1), "a short circuit");
        assert_contains(
            &reply.text(),
            &["closed its output", &format!("(down for {at} s; next try in")],
        );
        assert_eq!(stage.board.status().servers[0].since, since, "{at}");
    }
    stage.handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(60)).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
}

/// ai-agent, acquire: a caller with a shorter timeout gets the reason, and a failure that no retry can fix is reported at once.
#[tokio::test(start_paused = true)]
async fn seed_001_who_does_not_wait_for_failing_starts() {
    let stage = Stage::new("ai-agent", "", &crashing()).await;
    let reply = stage.tools.call(ToolCall::new("fx.hello").timeout(secs(7))).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["did not become ready in time", "closed its output"]);
    let config = servers(&json!({"fx": {"command": "/no/such/program"}}));
    let board = Pegboard::open(config);
    let began = Instant::now();
    assert!(call(&board.toolset(), "fx.hello", json!({})).await.is_error());
    assert!(began.elapsed() < secs(1));
    assert_eq!(board.status().servers[0].state, State::Down);
}

/// ai-agent, background retries: a web page in place of the server, such as a maintenance page, is an ordinary outage if callers wait for
/// failing starts. Otherwise it is not taken for an MCP server, and tried again after a minute or when an operator reconnects it.
#[tokio::test]
async fn seed_001_a_web_page_in_place_of_the_server_is_retried() {
    let page = good().fault_on(When::always(), Fault::HtmlPage);
    for (preset, waits) in [("ai-agent", true), ("pegboard", false)] {
        let http = page.serve_http().await.unwrap();
        let url = http.url();
        let loaded = load(&format!("preset = '{preset}'\n[servers.fx]\nurl = '{url}'"));
        assert_eq!(loaded.problems, []);
        let board = Pegboard::open(loaded.config);
        let tools = board.toolset();
        let recovering = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            http.change(|script| *script = good().script().clone());
        };
        let (reply, ()) = tokio::join!(call(&tools, "fx.hello", json!({})), recovering);
        assert_eq!(reply.is_error(), !waits, "{preset}: {}", reply.text());
        if !waits {
            assert_contains(&reply.text(), &["text/html", "next try in 60 s"]);
            assert!(board.reconnect(&name("fx")).await);
        }
        ready(&board).await;
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi", "{preset}");
        board.shutdown().await;
    }
}

/// A web page in place of a response is a protocol error. It is never taken for the response, and it does not end the session.
#[tokio::test]
async fn seed_001_a_web_page_in_place_of_an_answer_is_lost() {
    for era in [Era::Legacy, Era::Modern] {
        let fake = good().era(era).fault_on(When::tool("hello").first(1), Fault::HtmlPage);
        let http = fake.serve_http().await.unwrap();
        let mut config = servers(&json!({"fx": {"type": "http", "url": http.url()}}));
        config.servers.get_mut(&name("fx")).unwrap().limits.connect_timeout = secs(10);
        let board = Pegboard::open(config);
        let tools = board.toolset();
        let reply = call(&tools, "fx.hello", json!({})).await;
        assert_outcome(&reply, Kind::Internal, true);
        assert_contains(&reply.text(), &["was answered", "text/html"]);
        let error = board.status().servers[0].last_error.clone().unwrap();
        assert_contains(&error.message, &["fx.hello", "text/html"]);
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        assert_eq!(board.status().servers[0].restarts, 0);
        board.shutdown().await;
    }
}

/// ai-agent, health probes: if `ping` is rejected or not answered, the tools are listed before the server is restarted.
#[tokio::test(start_paused = true)]
async fn seed_001_a_probe_falls_back_to_listing() {
    let refused = Fault::AnswersError {
        code: -32601,
        message: "no such method".into(),
        data: None,
    };
    for (row, era, ping, list, restarts) in [
        ("both", Era::Legacy, None, None, 0),
        ("no answer", Era::Legacy, Some(Fault::NeverAnswers), None, 0),
        ("refused", Era::Legacy, Some(refused.clone()), None, 0),
        (
            "neither",
            Era::Legacy,
            Some(Fault::NeverAnswers),
            Some(Fault::NeverAnswers),
            1,
        ),
        ("both refused", Era::Legacy, Some(refused.clone()), Some(refused), 1),
        ("no answer, modern", Era::Modern, Some(Fault::NeverAnswers), None, 0),
        (
            "neither, modern",
            Era::Modern,
            Some(Fault::NeverAnswers),
            Some(Fault::NeverAnswers),
            1,
        ),
    ] {
        let mut fake = FakeServer::new("fx")
            .era(era)
            .tool(Tool::new("mute"))
            .fault_on(When::tool("mute"), Fault::NeverAnswers);
        let word = match era {
            Era::Modern => When::method("server/discover").after(1),
            _ => When::method("ping"),
        };
        if let Some(fault) = ping {
            fake = fake.fault_on(word, fault);
        }
        if let Some(fault) = list {
            fake = fake.fault_on(When::method("tools/list").nth(2), fault);
        }
        let stage = Stage::new("ai-agent", "call_timeout = '5s'", &fake).await;
        assert_outcome(&stage.call("mute").await, Kind::Timeout, true);
        tokio::time::sleep(secs(4)).await;
        assert_eq!(stage.board.status().servers[0].restarts, restarts, "{row}");
        let pings = usize::from(era == Era::Legacy);
        assert_eq!(stage.handle.count("ping"), pings, "{row}");
    }
}

/// ai-agent, restart loop: a remote server that a call did not reach is probed, down with the reason, and reconnected in the background.
#[tokio::test]
async fn seed_001_a_remote_server_that_is_gone_is_noticed_and_found_again() {
    let http = good().serve_http().await.unwrap();
    let board = Pegboard::open(servers(&json!({"fx": {"type": "http", "url": http.url()}})));
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    http.stop().await;
    assert_outcome(&call(&tools, "fx.hello", json!({})).await, Kind::Unavailable, false);
    let waiting = async {
        while board.status().servers[0].state != State::Down {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    http.restart().await.unwrap();
    ready(&board).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
}
