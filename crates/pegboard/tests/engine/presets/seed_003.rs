//! goat's client (seed 003): its connection statuses and the equivalent states here.

use pegboard::{Config, Outcome, Pegboard, ServerConfig, State, catalog::Risk};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::{presets::fixtures::*, support::*};

/// A server of a goat file that is shared, so that the board can show its state.
fn shared(url: &str) -> ServerConfig {
    let text = format!("preset = 'goat'\n[servers.fx]\nurl = '{url}'\nscope = 'shared'");
    let loaded = load(&text);
    assert_eq!(loaded.problems, []);
    loaded.config.servers.into_values().next().unwrap()
}

fn state(board: &Pegboard) -> State {
    board.status().servers[0].state
}

/// goat: `pending` before it is requested and while it connects, then `connected`, `disabled`, and `connected` again.
#[tokio::test(start_paused = true)]
async fn seed_003_pending_connected_and_disabled() {
    let stage = Stage::untouched("goat", "scope = 'shared'", &good());
    tokio::time::sleep(secs(1)).await;
    assert_eq!(state(&stage.board), State::Idle, "pending: not asked for");
    stage.board.reconnect(&name("fx")).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
    assert_eq!(state(&stage.board), State::Ready, "connected");
    stage.board.disable(&name("fx")).await;
    assert_eq!(state(&stage.board), State::Disabled, "disabled");
    assert!(stage.tools.list(PATIENCE).await.tools.is_empty(), "its tools are gone");
    stage.board.enable(&name("fx")).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
    assert_eq!(state(&stage.board), State::Ready, "connected again");
}

/// goat: `pending` during the handshake and `failed` after it, with the reason.
#[tokio::test(start_paused = true)]
async fn seed_003_failed() {
    let stage = Stage::untouched("goat", "scope = 'shared'\nrestart = false", &silent());
    let board = stage.board.clone();
    let name = name("fx");
    let connecting = tokio::spawn(async move { board.reconnect(&name).await });
    tokio::time::sleep(secs(5)).await;
    assert_eq!(state(&stage.board), State::Connecting, "pending");
    connecting.await.unwrap();
    assert!(stage.call("hello").await.is_error());
    assert_eq!(state(&stage.board), State::Down, "failed");
    let error = stage.board.status().servers[0].last_error.clone().expect("a reason");
    assert!(!error.message.is_empty());
}

/// goat: `needs-auth`.
#[tokio::test]
async fn seed_003_needs_auth() {
    let http = good().bearer("secret").serve_http().await.unwrap();
    let mut config = Config::default();
    config.servers.insert(name("fx"), shared(&http.url()));
    let board = Pegboard::open(config);
    board.reconnect(&name("fx")).await;
    assert!(call(&board.toolset(), "fx.hello", json!({})).await.is_error());
    assert_eq!(state(&board), State::NeedsAuth);
    board.shutdown().await;
}

/// goat: undeclared capabilities are not requested.
#[tokio::test(start_paused = true)]
async fn seed_003_capability_gating() {
    let bare = FakeServer::new("fx").fault_on(When::method("resources/list"), Fault::NeverAnswers);
    for (row, capabilities, asked) in [
        ("tools and resources", json!({"tools": {}, "resources": {}}), [1, 1]),
        ("tools", json!({"tools": {}}), [1, 0]),
        ("resources", json!({"resources": {}}), [0, 1]),
        ("neither", json!({}), [0, 0]),
    ] {
        let stage = Stage::new("goat", "list_timeout = '1s'", &bare.clone().capabilities(capabilities)).await;
        stage.tools.list(secs(1)).await;
        let got = ["tools/list", "resources/list"].map(|method| stage.handle.count(method));
        assert_eq!(got, asked, "{row}");
    }
}

/// goat, JSON-RPC errors: code, message and data reach the caller.
#[tokio::test(start_paused = true)]
async fn seed_003_code_and_data_of_an_error_are_kept() {
    let error = Fault::AnswersError {
        code: -32042,
        message: "not now".into(),
        data: Some(json!({"retry": "tomorrow"})),
    };
    let stage = Stage::new("goat", "", &good().fault_on(When::tool("hello"), error)).await;
    let reply = stage.call("hello").await;
    assert_contains(&reply.text(), &["-32042", "not now"]);
    assert_eq!(
        serde_json::to_value(&reply).unwrap()["outcome"]["error_code"],
        json!(-32042)
    );
    let Outcome::ToolFailed(answer) = reply.outcome else {
        panic!("the server answered")
    };
    assert_eq!(answer.error_code, Some(-32042));
    assert_eq!(answer.structured, Some(json!({"retry": "tomorrow"})));
}

/// goat, ServerConnection and ServerStatus: capabilities and scope.
#[tokio::test(start_paused = true)]
async fn seed_003_status_tells_capabilities_and_scope() {
    let fake = good().capabilities(json!({"tools": {}, "logging": {}}));
    let stage = Stage::untouched("goat", "scope = 'shared'\ndescription = 'For greetings.'", &fake);
    let status = &stage.board.status().servers[0];
    assert_eq!((status.capabilities.as_ref(), status.scope), (None, "shared"));
    assert_eq!(status.description.as_deref(), Some("For greetings."));
    stage.board.reconnect(&name("fx")).await;
    stage.tools.list(PATIENCE).await;
    let status = serde_json::to_value(stage.board.status()).unwrap();
    assert_eq!(
        status["servers"][0]["capabilities"],
        json!({"tools": {}, "logging": {}})
    );
    for (scope, word) in [("session", "session"), ("pool(3)", "pool")] {
        let stage = Stage::untouched("goat", &format!("scope = '{scope}'"), &fake);
        assert_eq!(stage.board.status().servers[0].scope, word);
    }
}

/// goat, risk: resource tools are low, tools of servers are high, whatever their hints.
#[tokio::test(start_paused = true)]
async fn seed_003_risk() {
    let harmless = Tool::new("read").read_only().hint("openWorldHint", false);
    let fake = FakeServer::new("fx").tool(harmless).resource("a:b", "c");
    let stage = Stage::new("goat", "", &fake).await;
    let tools = stage.board.toolset_with(pegboard::View::new().resource_tools());
    let listing = tools.list(PATIENCE).await;
    let risks: Vec<_> = listing
        .tools
        .iter()
        .map(|tool| (tool.tool.name.as_str(), tool.risk))
        .collect();
    assert_eq!(
        risks,
        [
            ("read", Risk::High),
            ("list_resources", Risk::Low),
            ("list_resource_templates", Risk::Low),
            ("read_resource", Risk::Low),
        ]
    );
}
