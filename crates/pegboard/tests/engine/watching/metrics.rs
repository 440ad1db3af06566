//! Metrics are read with one call, agree with what happened, and never decrease.

use std::collections::BTreeSet;

use pegboard::{Kind, config::Scope};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{support::*, watching::fixtures::*};

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t").answers_text("done"))
        .tool(Tool::new("fails").fails_with("no"))
        .tool(Tool::new("slow").after(secs(2)))
        .tool(Tool::new("secret").answers_text("Bearer hunter2hunter2hunter2"))
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_kind_and_duration_and_status_has_the_same_figures() {
    let (board, _handle) = in_memory(&fake());
    board.hide([pegboard::Secret::new("hunter2hunter2hunter2")]);
    let tools = board.toolset();
    for tool in ["fx.t", "fx.t", "fx.fails", "fx.slow", "fx.secret"] {
        call(&tools, tool, json!({})).await;
    }
    let fx = board.metrics().servers[&name("fx")].clone();
    assert_eq!((fx.calls.total, fx.calls.failed, fx.attempts, fx.retries), (5, 1, 5, 0));
    assert_eq!(
        (fx.calls.by_kind[&Kind::Ok], fx.calls.by_kind[&Kind::ToolError]),
        (4, 1)
    );
    assert_eq!(fx.calls.latency.count, 5);
    assert_eq!(
        fx.calls.latency.quantile_ms(1.0),
        Some(2097.152),
        "the slow call took two seconds"
    );
    assert!(fx.bytes_received > 0 && fx.masked == 1, "{fx:?}");
    let status = &board.status().servers[0].calls;
    assert_eq!((status.total, status.failed), (5, 1));
    assert_eq!(Some(status.avg_ms), fx.calls.latency.mean_ms());
    let json = json!(board.metrics());
    assert_eq!(
        json["servers"]["fx"]["calls"]["by_kind"],
        json!({"ok": 4, "tool_error": 1})
    );
    assert_eq!(json["views_open"], 1);
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_turn_and_calls_under_way_are_seen() {
    let (board, _handle) = in_memory_with(&fake(), set_to(|settings| settings.limits.max_in_flight = 1));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let running = tools.call_all(["fx.slow", "fx.slow"]);
    let looking = async {
        tokio::time::sleep(secs(1)).await;
        board.metrics().servers[&name("fx")].in_flight
    };
    let (_, in_flight) = tokio::join!(running, looking);
    assert_eq!(in_flight, 2);
    let fx = &board.metrics().servers[&name("fx")];
    assert_eq!((fx.in_flight, fx.queue_wait.count), (0, 1));
    assert!(fx.queue_wait.sum_ms >= 2000.0, "{:?}", fx.queue_wait.sum_ms);
}

#[tokio::test]
async fn a_server_that_is_removed_keeps_its_counts_and_goes_on_when_it_comes_back() {
    let board = boards([("fx", process(&fake()))]);
    call(&board.toolset(), "fx.t", json!({})).await;
    let before = counted(&board);
    board.disconnect(&name("fx")).await;
    assert_eq!(counted(&board), before);
    board.connect(name("fx"), process(&fake())).await.unwrap();
    call(&board.toolset(), "fx.t", json!({})).await;
    assert_eq!(board.metrics().servers[&name("fx")].calls.total, 2);
    assert_eq!(board.status().servers[0].calls.total, 2);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_views_in_a_row_leave_one_entry() {
    let (board, _handle) = in_memory_with(&fake(), set_to(|settings| settings.policy.scope = Scope::Session));
    for _ in 0..1000 {
        let tools = board.toolset();
        call(&tools, "fx.t", json!({})).await;
        tools.close().await;
    }
    let metrics = board.metrics();
    assert_eq!((metrics.servers.len(), metrics.views_open), (1, 0));
    assert_eq!(metrics.total.calls.total, 1000);
}

#[tokio::test(start_paused = true)]
async fn events_that_a_slow_listener_missed_are_counted() {
    let (board, _handle) = in_memory(&fake());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let mut events = board.events();
    for _ in 0..600 {
        call(&tools, "fx.t", json!({})).await;
    }
    assert_eq!(
        board.metrics().events_lost,
        0,
        "it is not known before the listener asks"
    );
    events.next().await;
    assert_eq!(board.metrics().events_lost, 176);
}

#[tokio::test(start_paused = true)]
async fn a_program_adds_the_metrics_of_its_board_to_its_own_page() {
    let (board, _handle) = in_memory(&fake());
    let tools = board.toolset();
    call(&tools, "fx.t", json!({})).await;
    let page = board.metrics().to_prometheus() + &board.status().to_prometheus();
    for line in [
        "pegboard_calls_total{server=\"fx\",kind=\"ok\"} 1",
        "pegboard_server_start_seconds_count{server=\"fx\"} 1",
        "pegboard_views_open 1",
        "pegboard_server_ready{server=\"fx\"} 1",
        "pegboard_servers{state=\"ready\"} 1",
        "pegboard_server_troubled{server=\"fx\"} 0",
        "pegboard_calls_queued{server=\"fx\"} 0",
        "pegboard_audit_ok 1",
    ] {
        assert!(page.lines().any(|written| written == line), "{line}: {page}");
    }
    let mut families = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("# TYPE ")) {
        assert!(
            families.insert(line),
            "Prometheus refuses a page that has a metric twice: {line}"
        );
    }
}
