//! Calls that are dropped at any await point are completed as cancelled, exactly once, and counted.

use std::collections::BTreeMap;

use futures_util::{FutureExt, future::BoxFuture};
use pegboard::{
    Event, Events, Kind, Pegboard, ToolCall, Toolset, View,
    config::{Scope, Start},
};
use pegboard_testkit::Era;
use serde_json::json;

use crate::{drops::fixtures::*, support::*};

/// The events so far: whether each call is open, and the outcome kinds of the others.
#[derive(Default)]
struct Seen {
    open: BTreeMap<String, bool>,
    kinds: BTreeMap<Kind, u64>,
}

impl Seen {
    fn look(&mut self, events: &mut Events, what: &str) {
        while let Some(event) = events.next().now_or_never().flatten() {
            match event {
                Event::CallCreated { id, .. } => {
                    assert_eq!(self.open.insert(id, true), None, "{what}: created twice");
                }
                Event::CallCompleted { id, kind, .. } => {
                    assert_eq!(
                        self.open.insert(id, false),
                        Some(true),
                        "{what}: completed without being open"
                    );
                    *self.kinds.entry(kind).or_default() += 1;
                }
                Event::Missed { .. } => panic!("{what}: events were lost"),
                _ => {}
            }
        }
        assert!(
            self.open.values().all(|is_open| !is_open),
            "{what}: a call is not completed"
        );
        self.open.clear();
    }

    /// Asserts that the board's metrics have the same counts.
    fn agrees(&self, board: &Pegboard, what: &str) {
        let metrics = board.metrics();
        let mut counted: BTreeMap<Kind, u64> = BTreeMap::new();
        for calls in [&metrics.total.calls, &metrics.unrouted, &metrics.own_tools] {
            for (kind, count) in &calls.by_kind {
                *counted.entry(*kind).or_default() += count;
            }
        }
        assert_eq!(self.kinds, counted, "{what}");
        assert_eq!(metrics.total.in_flight, 0, "{what}");
    }
}

/// Starts something that makes calls.
type Begin = fn(Toolset) -> BoxFuture<'static, ()>;

async fn on(wire: Wire, era: Era, scope: Scope, start: Start) {
    let fixture = Fixture::new(wire, fake(era), |settings| {
        settings.policy.scope = scope;
        settings.start = start;
    })
    .await;
    let board = &fixture.board;
    let (mut events, mut seen) = (board.events(), Seen::default());
    let view = || View::new().tool_budget(1).resource_tools().always_list_read_output();
    let calls: [(&str, Begin); 9] = [
        ("a call", |tools| {
            Box::pin(async move { drop(tools.call(ToolCall::new("fx.t")).await) })
        }),
        ("a call that asks", |tools| {
            Box::pin(async move { drop(tools.call(ToolCall::new("fx.asks")).await) })
        }),
        ("a key", |tools| {
            Box::pin(async move { drop(tools.call(ToolCall::new("fx.slow").key("k")).await) })
        }),
        ("a task", |tools| {
            Box::pin(async move {
                if let Ok(mut task) = tools.start(ToolCall::new("fx.task")).await {
                    task.result(PATIENCE).await;
                }
            })
        }),
        ("a batch", |tools| {
            Box::pin(async move { drop(tools.call_all(["fx.t", "fx.nope", "fx.slow"]).await) })
        }),
        ("a stream", |tools| {
            Box::pin(async move {
                let mut stream = tools.stream(ToolCall::new("fx.slow"));
                while stream.next().await.is_some() {}
            })
        }),
        ("a call that is passed on", |tools| {
            let call = ToolCall::new("call_tool").arguments(json!({"name": "fx.slow"}));
            Box::pin(async move { drop(tools.call(call).await) })
        }),
        ("reading a resource", |tools| {
            let call = ToolCall::new("read_resource").arguments(json!({"uri": "a:a"}));
            Box::pin(async move { drop(tools.call(call).await) })
        }),
        ("an unknown tool", |tools| {
            Box::pin(async move { drop(tools.call(ToolCall::new("fx.nope")).await) })
        }),
    ];
    let mut cancelled = 0;
    for (what, begin) in calls {
        // A new view each time, so that per-view servers are started in each of them.
        for polls in 0.. {
            assert!(polls < MANY, "{what} did not end");
            let tools = board.toolset_with(view());
            let ended = ends_within(polls, polls % 2 == 0, begin(tools.clone())).await;
            let what = format!("{what} after {polls} polls over {wire:?} in {era:?}, {scope:?}");
            seen.look(&mut events, &what);
            seen.agrees(board, &what);
            tools.close().await;
            if ended {
                break;
            }
        }
        cancelled = seen.kinds.get(&Kind::Cancelled).copied().unwrap_or_default();
    }
    assert!(cancelled > 10, "hardly any call was dropped while it ran: {cancelled}");
    board.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_anywhere_is_completed_once_on_shared_servers() {
    for era in [Era::Legacy, Era::Modern] {
        on(Wire::Memory, era, Scope::Shared, Start::Eager).await;
    }
    on(Wire::Stdio, Era::Legacy, Scope::Shared, Start::Eager).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_anywhere_is_completed_once_on_servers_of_one_view() {
    for era in [Era::Legacy, Era::Modern] {
        on(Wire::Memory, era, Scope::Session, Start::Lazy).await;
    }
}
