//! Servers of views as the board reports them: failures and changes.

use pegboard::{
    Config, Kind, Pegboard, Selection, ServerConfig, State, View,
    config::{Scope, Start},
    status::ToolCacheState,
};
use pegboard_testkit::{FakeServer, Fault, Tool};
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
    let silent = FakeServer::new("fx").fault(Fault::SilentHandshake);
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

/// A view gets its own servers started as far as it shows them, and leaves the spares of the others to other views.
#[tokio::test(start_paused = true)]
async fn a_view_starts_only_the_servers_that_it_shows() {
    let (_unused, handle) = good().connect();
    let narrow_views = || {
        [
            View::new().servers(["one"]),
            View::new().selection(Selection::new().server("one")),
        ]
    };
    for required in [false, true] {
        let settings = of_views(|settings| settings.required = required);
        let builder = Pegboard::builder(Config::default());
        let builder = builder.in_process_with(name("one"), dialer(&handle), settings.clone());
        let board = builder.in_process_with(name("two"), dialer(&handle), settings).open();
        board.settle(PATIENCE).await;
        // The spares, which wait for views.
        let mut starts = handle.starts();
        for view in narrow_views() {
            let tools = board.toolset_with(view);
            assert_eq!(call(&tools, "one.hello", json!({})).await.text(), "hi");
            tokio::time::sleep(secs(10)).await;
            let states: Vec<_> = board
                .status()
                .servers
                .iter()
                .map(|row| (row.name.to_string(), row.state))
                .collect();
            assert!(!states.contains(&("two".to_owned(), State::Down)), "{states:?}");
            assert!(board.status().ready, "{states:?}");
            tools.close().await;
            tokio::time::sleep(secs(10)).await;
        }
        let more = handle.starts() - std::mem::replace(&mut starts, handle.starts());
        // One for the second view, whose spare was taken by the first; and one for each view that ends, where the server is required.
        assert_eq!(more, if required { 2 } else { 1 }, "required: {required}");
        // A wide view takes what the narrow ones left, and another narrow one does not stand in for it.
        let (narrow, wide) = (board.toolset_with(View::new().servers(["one"])), board.toolset());
        assert_eq!(call(&wide, "two.hello", json!({})).await.text(), "hi");
        wide.close().await;
        tokio::time::sleep(secs(10)).await;
        assert!(board.status().ready, "{:?}", board.status().servers);
        drop(narrow);
        board.shutdown().await;
    }
}

fn state(board: &Pegboard) -> State {
    board.status().servers[0].state
}

fn silent() -> FakeServer {
    FakeServer::new("fx").fault(Fault::SilentHandshake)
}

/// Session-scoped settings under which only a call or a view tries the server again.
fn without_retries(start: Start) -> ServerConfig {
    of_views(|settings| {
        settings.start = start;
        settings.limits.connect_timeout = secs(5);
        settings.policy.restart.enabled = false;
        settings.policy.health.interval = None;
    })
}

#[track_caller]
fn assert_failed(board: &Pegboard, step: &str) {
    let status = board.status();
    assert!(!status.healthy, "{step}: {status:?}");
    let warned = status
        .warnings
        .iter()
        .filter(|warning| warning.category == "mcp_health");
    assert_eq!(warned.count(), 1, "{step}: {status:?}");
}

#[track_caller]
fn assert_well(board: &Pegboard, step: &str) {
    let status = board.status();
    assert!(status.healthy && status.warnings.is_empty(), "{step}: {status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_server_stays_failed_until_a_view_has_it_ready() {
    for start in [Start::Eager, Start::Lazy] {
        let (board, handle) = in_memory_with(&silent(), without_retries(start));
        if start == Start::Eager {
            board.settle(PATIENCE).await;
            assert_failed(&board, "after the start of the board");
        }
        let first = board.toolset();
        if start == Start::Eager {
            assert_failed(&board, "a view was opened");
        }
        first.list(PATIENCE).await;
        assert_failed(&board, "the view cannot reach it");
        first.close().await;
        assert_failed(&board, "the view was closed");
        let (second, third) = (board.toolset(), board.toolset());
        let failed = board.status().servers;
        assert!(failed.iter().all(|row| row.last_error.is_some()), "{failed:?}");
        second.close().await;
        handle.change(|script| *script = good().script().clone());
        // A call may start it again only some time after a failure.
        tokio::time::sleep(secs(10)).await;
        assert_eq!(call(&third, "fx.hello", json!({})).await.text(), "hi");
        assert_well(&board, "a view has it");
        third.close().await;
        assert_well(&board, "that view was closed");
    }
}

/// A view with roots of its own cannot take over the server that was started for the next view.
#[tokio::test(start_paused = true)]
async fn a_server_that_failed_at_the_start_is_well_once_a_view_has_its_own() {
    let (board, handle) = in_memory_with(&silent(), without_retries(Start::Eager));
    board.settle(PATIENCE).await;
    assert_failed(&board, "after the start of the board");
    handle.change(|script| *script = good().script().clone());
    let tools = board.toolset_with(View::new().roots(Vec::new()));
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_well(&board, "the view has it");
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_the_last_listing_are_counted_while_a_server_is_down() {
    for scope in [Scope::Session, Scope::Shared] {
        let (board, handle) = in_memory_with(
            &good(),
            set_to(|settings| {
                *settings = without_retries(Start::Lazy);
                settings.policy.scope = scope;
            }),
        );
        let row = || board.status().servers.remove(0);
        assert_eq!((row().tools, row().tool_cache), (0, ToolCacheState::Empty));
        let tools = board.toolset();
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        assert_eq!((row().tools, row().tool_cache), (1, ToolCacheState::Ready));
        handle.change(|script| *script = silent().script().clone());
        handle.kill();
        tokio::time::sleep(secs(1)).await;
        tools.list(PATIENCE).await;
        assert_eq!((row().state, row().tools), (State::Down, 1), "{scope:?}");
        assert_eq!(row().tool_cache, ToolCacheState::Stale);
        tools.close().await;
        assert_eq!(row().tools, 1, "{scope:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_started_for_the_first_time_populates_its_tool_cache() {
    let (board, _handle) = in_memory_with(&silent(), without_retries(Start::Eager));
    tokio::time::sleep(secs(1)).await;
    let row = board.status().servers.remove(0);
    assert_eq!(
        (row.state, row.tool_cache),
        (State::Connecting, ToolCacheState::Populating)
    );
}

#[tokio::test(start_paused = true)]
async fn a_view_that_only_lists_starts_no_server_that_is_known_and_marks_those_that_are_down() {
    let (board, handle) = in_memory_with(&good(), without_retries(Start::Lazy));
    let lists = board.toolset_with(View::new().catalog_only());
    let listed = async || {
        let listing = lists.list(PATIENCE).await;
        let tools: Vec<_> = listing
            .tools
            .iter()
            .map(|tool| (tool.name.clone(), tool.available))
            .collect();
        (tools, listing.unavailable.len())
    };
    let calls = board.toolset();
    assert_eq!(call(&calls, "fx.hello", json!({})).await.text(), "hi");
    let hello = |available| vec![("fx__hello".to_owned(), available)];
    assert_eq!(listed().await, (hello(true), 0));
    let passing = board.toolset();
    assert_eq!(call(&passing, "fx.hello", json!({})).await.text(), "hi");
    passing.close().await;
    assert_eq!(listed().await, (hello(true), 0), "a view has come and gone");
    let starts = handle.starts();
    handle.change(|script| *script = silent().script().clone());
    handle.kill();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(listed().await.0, hello(false), "the server of the view has ended");
    calls.close().await;
    assert_eq!(listed().await, (hello(false), 1), "its view was closed");
    assert_eq!(handle.starts(), starts, "no listing has started it");
    let row = board.status().servers.remove(0);
    assert_eq!((row.view, row.state), (None, State::Down));

    handle.change(|script| *script = good().tool(Tool::new("more")).script().clone());
    let calls = board.toolset();
    assert_eq!(call(&calls, "fx.hello", json!({})).await.text(), "hi");
    calls.close().await;
    let both = vec![("fx__hello".to_owned(), true), ("fx__more".to_owned(), true)];
    assert_eq!(listed().await, (both, 0), "what another view has learned");
    let refused = call(&lists, "fx.hello", json!({})).await;
    assert_eq!(refused.outcome.kind(), Kind::NotPermitted, "{}", refused.text());
    assert_well(&board, "at the end");
}

#[tokio::test(start_paused = true)]
async fn a_view_that_only_lists_starts_a_server_of_which_nothing_is_known() {
    let (board, handle) = in_memory_with(&good(), without_retries(Start::Lazy));
    let lists = board.toolset_with(View::new().catalog_only());
    let before = handle.starts();
    for _ in 0..3 {
        assert_eq!(lists.list(PATIENCE).await.tools.len(), 1);
        // Longer than a server waits for a view.
        tokio::time::sleep(secs(120)).await;
    }
    assert_eq!(handle.starts(), before + 1);
    assert_well(&board, "at the end");
}
