//! State changes of servers are events.

use pegboard::{
    Event, Events, Pegboard, State, ToolCall, View,
    config::{Scope, Start},
};
use pegboard_testkit::{FakeServer, Fault, MemoryHandle, Tool, When};
use serde_json::json;

use crate::{support::*, watching::fixtures::*};

fn good() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("t").answers_text("done"))
}

/// The changes so far, as `from > state`, after everything that is due has happened.
async fn changes(events: &mut Events) -> Vec<String> {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let told = pending_events(events).into_iter().filter_map(|event| match event {
        Event::ServerChanged { view, from, state, .. } => {
            let view = view.map(|view| format!("{view}: ")).unwrap_or_default();
            Some(format!("{view}{} > {}", from.as_str(), state.as_str()))
        }
        Event::CatalogChanged {
            added,
            removed,
            changed,
            ..
        } => Some(format!("+{added} -{removed} ~{changed}")),
        Event::ProbeFailed { reason, .. } => Some(reason),
        _ => None,
    });
    told.collect()
}

fn lazy(change: impl FnOnce(&mut pegboard::ServerConfig)) -> (Pegboard, MemoryHandle) {
    let settings = set_to(|settings| {
        settings.start = Start::Lazy;
        change(settings);
    });
    in_memory_with(&good(), settings)
}

#[tokio::test(start_paused = true)]
async fn a_servers_life_is_told_from_its_start_to_its_end() {
    let (board, handle) = lazy(|_| ());
    let (mut events, tools, fx) = (board.events(), board.toolset(), name("fx"));
    call(&tools, "fx.t", json!({})).await;
    assert_eq!(changes(&mut events).await, ["idle > connecting", "connecting > ready"]);
    handle.kill();
    tokio::time::sleep(secs(10)).await;
    assert_eq!(changes(&mut events).await, ["ready > connecting", "connecting > ready"]);
    board.disable(&fx).await;
    assert_eq!(changes(&mut events).await, ["ready > disabled"]);
    board.enable(&fx).await;
    assert_eq!(
        changes(&mut events).await,
        ["disabled > idle", "idle > connecting", "connecting > ready"]
    );
    board.shutdown().await;
    assert_eq!(changes(&mut events).await, ["ready > closed"]);
    drop((board, tools));
    assert_eq!(events.next().await, None, "the events end with the board");
}

/// What minion calls `reconnecting`.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_started_again_is_connecting_with_restarts() {
    let (board, handle) = lazy(|_| ());
    let tools = board.toolset();
    call(&tools, "fx.t", json!({})).await;
    let row = || board.status().servers[0].clone();
    assert_eq!((row().state, row().restarts), (State::Ready, 0));
    let slow = good().fault(Fault::SlowStart { ms: 20_000 });
    handle.change(|script| *script = slow.script().clone());
    handle.kill();
    tokio::time::sleep(secs(5)).await;
    assert_eq!((row().state, row().restarts), (State::Connecting, 1));
    tokio::time::sleep(secs(30)).await;
    assert_eq!((row().state, row().restarts), (State::Ready, 1));
}

#[tokio::test(start_paused = true)]
async fn a_ready_server_tells_how_long_its_start_took() {
    let (board, _handle) = lazy(|_| ());
    let mut events = board.events();
    call(&board.toolset(), "fx.t", json!({})).await;
    let ready = pending_events(&mut events).into_iter().find_map(|event| match event {
        Event::ServerChanged {
            state: State::Ready,
            ready_after_ms,
            ..
        } => Some(ready_after_ms),
        _ => None,
    });
    assert!(ready.flatten().is_some(), "{ready:?}");
    let status = &board.status().servers[0];
    assert_eq!(status.ready_after_ms, ready.flatten());
    let metrics = &board.metrics().servers[&name("fx")];
    assert_eq!(metrics.last_ready_after_ms, ready.flatten());
    assert_eq!(metrics.ready_after.count, 1);
}

#[tokio::test]
async fn a_start_that_fails_is_told_each_time_with_its_reason_and_no_secret() {
    let broken = FakeServer::new("fx").fault(Fault::ExitsAtStart {
        code: 3,
        stderr: "the token is hunter2hunter2".into(),
    });
    let board = board({
        let mut config = process(&broken);
        config.start = Start::Lazy;
        config
    });
    board.hide([pegboard::Secret::new("hunter2hunter2")]);
    let mut events = board.events();
    board.toolset().call(ToolCall::new("fx.t")).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut reasons = Vec::new();
    while reasons.len() < 2 {
        let event = tokio::time::timeout_at(deadline, events.next()).await.unwrap();
        if let Some(Event::ServerChanged {
            state: State::Down,
            reason,
            ..
        }) = event
        {
            reasons.push(reason.unwrap());
        }
    }
    for reason in &reasons {
        assert!(reason.contains("the token is [MASKED_SECRET]"), "{reason}");
    }
    assert!(board.metrics().servers[&name("fx")].failed_starts >= 2);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_again_and_again_is_told_to_loop() {
    let (board, handle) = lazy(|_| ());
    let (mut events, tools) = (board.events(), board.toolset());
    let mut told = Vec::new();
    for _ in 0..12 {
        call(&tools, "fx.t", json!({})).await;
        handle.kill();
        tokio::time::sleep(secs(1)).await;
        told.extend(changes(&mut events).await);
        if told.iter().any(|change| change.ends_with("> crash_looping")) {
            let restarts = board.metrics().servers[&name("fx")].restarts;
            assert_eq!(restarts, u64::from(board.status().servers[0].restarts));
            return;
        }
    }
    panic!("{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_and_a_catalogue_that_changes_are_told() {
    let (board, handle) = lazy(|settings| {
        settings.policy.health.interval = Some(secs(60));
        settings.policy.health.timeout = secs(5);
    });
    let (mut events, tools, fx) = (board.events(), board.toolset(), name("fx"));
    call(&tools, "fx.t", json!({})).await;
    changes(&mut events).await;
    handle.change(|script| *script = good().tool(Tool::new("new")).script().clone());
    board.refresh(&fx);
    assert_eq!(changes(&mut events).await, ["+1 -0 ~0"]);
    handle.change(|script| {
        *script = good()
            .fault_on(When::method("ping"), Fault::NeverAnswers)
            .fault_on(When::method("tools/list"), Fault::NeverAnswers)
            .script()
            .clone()
    });
    tokio::time::sleep(secs(70)).await;
    let told = changes(&mut events).await;
    assert_eq!(
        told.first().map(String::as_str),
        Some("it did not answer a probe within 5 s"),
        "{told:?}"
    );
    assert_eq!(board.metrics().servers[&fx].failed_probes, 1);
}

#[tokio::test(start_paused = true)]
async fn servers_of_one_view_are_told_with_its_name_and_counted_under_theirs() {
    let (board, _handle) = lazy(|settings| settings.policy.scope = Scope::Session);
    let mut events = board.events();
    for n in 1..=3 {
        let tools = match n {
            1 => board.toolset_with(View::new().name("agent")),
            _ => board.toolset(),
        };
        call(&tools, "fx.t", json!({})).await;
        assert_eq!(board.metrics().views_open, 1);
        drop(tools);
    }
    let told = changes(&mut events).await;
    for view in ["agent", "view-2", "view-3"] {
        let of_view: Vec<_> = told
            .iter()
            .filter_map(|change| change.strip_prefix(&format!("{view}: ")))
            .collect();
        assert_eq!(
            of_view,
            ["idle > connecting", "connecting > ready", "ready > closed"],
            "{told:?}"
        );
    }
    let metrics = board.metrics();
    assert_eq!(metrics.views_open, 0);
    assert_eq!(metrics.servers.len(), 1);
    let fx = &metrics.servers[&name("fx")];
    assert_eq!((fx.calls.total, fx.ready_after.count), (3, 3));
    assert_eq!(board.status().servers[0].calls.total, 3);
}

#[tokio::test]
async fn two_names_of_one_connection_are_both_told_and_a_pool_is_told_as_one_server() {
    let fake = good();
    let board = boards([("one", process(&fake)), ("two", process(&fake))]);
    let mut events = board.events();
    board.settle(PATIENCE).await;
    let mut ready = Vec::new();
    for event in pending_events(&mut events) {
        if let Event::ServerChanged {
            server,
            state: State::Ready,
            ..
        } = event
        {
            ready.push(server.to_string());
        }
    }
    ready.sort();
    assert_eq!(ready, ["one", "two"]);
    board.shutdown().await;

    let (board, handle) = lazy(|settings| {
        settings.policy.scope = Scope::Pool(3);
        settings.limits.max_in_flight = 1;
    });
    handle.change(|script| *script = good().tool(Tool::new("slow").after(secs(1))).script().clone());
    let (mut events, tools) = (board.events(), board.toolset());
    tools.call_all(["fx.slow"; 3]).await;
    assert_eq!(changes(&mut events).await, ["idle > connecting", "connecting > ready"]);
    assert_eq!(board.metrics().servers[&name("fx")].ready_after.count, 3);
}
