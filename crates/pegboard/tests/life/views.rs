//! Servers of views as the board reports them: failures and changes.

use pegboard::{Pegboard, ServerConfig, State, View, config::Scope};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn good() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"))
}

fn of_views(change: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
    set_to(|settings| {
        settings.policy.scope = Scope::Session;
        change(settings);
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_of_a_view_that_cannot_be_had_is_a_warning_with_the_views_name_until_it_can() {
    let (board, handle) = in_memory_with(&good(), of_views(|settings| settings.limits.connect_timeout = secs(5)));
    let tools = board.toolset_with(View::new().name("agent"));
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert!(board.status().warnings.is_empty());
    let silent = FakeServer::new("fx").fault(pegboard_testkit::Fault::SilentHandshake);
    handle.change(|script| *script = silent.script().clone());
    handle.kill();
    tokio::time::sleep(secs(20)).await;
    let status = board.status();
    assert_eq!(status.servers[0].state, State::Down);
    assert!(!status.healthy);
    assert_eq!(status.warnings.len(), 1);
    assert_contains(&status.warnings[0].id, &["mcp_health:fx:agent"]);
    assert_contains(&status.warnings[0].message, &["fx", "agent", "down"]);
    handle.change(|script| *script = good().script().clone());
    tokio::time::sleep(secs(120)).await;
    let status = board.status();
    assert!(status.healthy && status.warnings.is_empty(), "{:?}", status.warnings);
}

#[tokio::test]
async fn a_server_of_a_view_that_wants_credentials_says_so() {
    let http = good().bearer("token-1234").serve_http().await.unwrap();
    let mut settings = at(&http.url());
    settings.policy.scope = Scope::Session;
    let board = board(settings);
    let tools = board.toolset_with(View::new().name("agent"));
    tools.list(PATIENCE).await;
    let rows = board.status().servers;
    assert_eq!((rows.len(), rows[0].state), (1, State::NeedsAuth));
    assert_eq!(rows[0].view.as_deref(), Some("agent"));
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_catalogues_of_views_are_told() {
    let (board, handle) = in_memory_with(&good(), of_views(|_| {}));
    let (first, second) = (board.toolset(), board.toolset());
    for tools in [&first, &second] {
        assert_eq!(call(tools, "fx.hello", json!({})).await.text(), "hi");
    }
    assert!(board.changes(name("fx")).is_empty());
    handle.change(|script| *script = good().tool(Tool::new("more")).script().clone());
    assert!(board.refresh(name("fx")));
    tokio::time::sleep(secs(1)).await;
    assert_eq!(board.changes(name("fx")).len(), 2, "one for each view");
}

#[tokio::test]
async fn connect_with_the_settings_that_a_server_has_connects_only_what_is_not_connected() {
    let settings = process(&good());
    let board = board(settings.clone());
    board.settle(PATIENCE).await;
    let before = board.status().servers[0].pid;
    assert!(before.is_some());
    board.connect(name("fx"), settings.clone()).await.unwrap();
    assert_eq!(board.status().servers[0].pid, before);
    board.disable(&name("fx")).await;
    board.connect(name("fx"), settings).await.unwrap();
    let after = &board.status().servers[0];
    assert_eq!(after.state, State::Ready);
    assert_ne!(after.pid, before);
    board.shutdown().await;
}

/// A spare waits a minute for a view; after that a later view starts the server anew.
#[tokio::test(start_paused = true)]
async fn a_spare_without_a_view_is_stopped_after_a_minute_unless_it_is_required() {
    for (required, after_two_minutes) in [(false, State::Idle), (true, State::Ready)] {
        let (board, _handle) = in_memory_with(&good(), of_views(|settings| settings.required = required));
        board.settle(PATIENCE).await;
        assert_eq!(state(&board), State::Ready);
        tokio::time::sleep(secs(120)).await;
        assert_eq!(state(&board), after_two_minutes, "required: {required}");
        assert!(board.status().healthy);
        let tools = board.toolset();
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    }
}

fn state(board: &Pegboard) -> State {
    board.status().servers[0].state
}
