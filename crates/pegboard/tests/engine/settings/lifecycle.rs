//! When a server is used, started, shared and stopped, and what is requested from it.

use pegboard::{Kind, State};
use pegboard_testkit::{Ask, Era, FakeServer, Tool};
use serde_json::json;
use tokio::time::Instant;

use crate::{settings::fixtures::*, support::*};

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_enabled_is_not_started_or_called() {
    for (settings, starts) in [("enabled = true", 1), ("enabled = false", 0), ("disabled = true", 0)] {
        let stage = Stage::new(settings, &good());
        assert_eq!(stage.call("hello").await.is_error(), starts == 0, "{settings}");
        assert_eq!(stage.starts(), starts, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_board_is_ready_without_servers_that_are_not_required() {
    for required in [false, true] {
        let stage = Stage::new(&format!("required = {required}"), &silent());
        stage.board.settle(PATIENCE).await;
        assert_eq!(stage.board.status().ready, !required, "required = {required}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_starts_with_the_board_with_its_first_use_or_on_request() {
    for (start, with_board, with_call) in [("eager", 1, 1), ("lazy", 0, 1), ("explicit", 0, 0)] {
        let stage = Stage::new(&format!("start = '{start}'"), &good());
        tokio::time::sleep(secs(5)).await;
        assert_eq!(stage.starts(), with_board, "{start}");
        stage.call("hello").await;
        assert_eq!(stage.starts(), with_call, "{start}");
        stage.board.reconnect(&name("fx")).await;
        assert_eq!(stage.call("hello").await.text(), "hi", "{start}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_after_its_time() {
    for (settings, expected) in [
        ("idle_stop = '30m'", State::Idle),
        ("idle_stop = '2h'", State::Ready),
        ("start = 'lazy'", State::Idle),
        ("start = 'lazy'\nidle_stop = 'off'", State::Ready),
    ] {
        let stage = Stage::new(settings, &good());
        assert_eq!(stage.call("hello").await.text(), "hi");
        tokio::time::sleep(secs(3600)).await;
        assert_eq!(stage.board.status().servers[0].state, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_shared_or_started_for_each_session_or_in_a_pool() {
    for (settings, for_two_views, for_two_calls) in [
        ("scope = 'shared'", 1, 1),
        ("scope = 'session'", 2, 2),
        ("scope = 'pool(2)'", 1, 2),
        ("scope = { pool = 2 }", 1, 2),
        ("scope = { pool = 1 }", 1, 1),
    ] {
        let stage = Stage::new(settings, &good());
        let other = stage.board.toolset();
        for tools in [&stage.tools, &other] {
            assert_eq!(call(tools, "fx.hello", json!({})).await.text(), "hi");
        }
        assert_eq!(stage.starts(), for_two_views, "{settings}");
        stage.seconds_of(2, "slow").await;
        assert_eq!(stage.starts(), for_two_calls, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_spoken_to_in_the_era_of_the_config() {
    for (settings, [discovers, initializes]) in [
        ("era = 'modern'", [true, false]),
        ("era = 'legacy'", [false, true]),
        ("era = '2025-06-18'", [false, true]),
    ] {
        let stage = Stage::new(settings, &good().era(Era::Both));
        assert_eq!(stage.call("hello").await.text(), "hi", "{settings}");
        let asked = ["server/discover", "initialize"].map(|method| stage.handle.count(method) > 0);
        assert_eq!(asked, [discovers, initializes], "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_for_the_lists_of_its_capabilities_or_its_preset() {
    let everything = good().resource("note://a", "text").prompt("greet", "hello");
    for (settings, expected) in [
        ("", [1, 1, 1]),
        ("capabilities = ['tools']", [1, 0, 0]),
        ("capabilities = ['tools', 'prompts']", [1, 0, 1]),
        ("preset = 'tarsy'", [1, 0, 0]),
        ("preset = 'tarsy'\ncapabilities = ['resources']", [1, 1, 0]),
    ] {
        let stage = Stage::new(settings, &everything);
        stage.tools.list(PATIENCE).await;
        stage.tools.resources(PATIENCE).await;
        let asked = ["tools/list", "resources/list", "prompts/list"].map(|method| stage.handle.count(method));
        assert_eq!(asked, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_the_roots_gets_those_of_the_config() {
    let fake = FakeServer::new("fx")
        .era(Era::Legacy)
        .tool(Tool::new("where").asks(Ask::Roots));
    let stage = Stage::new("roots = ['file:///srv/one', 'file:///srv/two']", &fake);
    stage.call("where").await;
    let requests = stage.handle.requests();
    let response = requests.iter().find(|received| received.method == "$response").unwrap();
    let roots = json!([{"uri": "file:///srv/one"}, {"uri": "file:///srv/two"}]);
    assert_eq!(response.params["result"]["roots"], roots);
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_the_description() {
    let stage = Stage::new("description = 'Tickets of the support team'", &good());
    let shown = stage.board.status().servers[0].description.clone();
    assert_eq!(shown.as_deref(), Some("Tickets of the support team"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_start_is_given_up_after_the_connect_timeout() {
    for seconds in [3, 50] {
        let stage = Stage::new(&format!("connect_timeout = '{seconds}s'"), &silent());
        let began = Instant::now();
        assert_eq!(stage.call("hello").await.outcome.kind(), Kind::Unavailable);
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}
