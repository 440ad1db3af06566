//! Extensions of the embedding program: hooks, a token budget, `_meta` of requests.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard::{
    Arguments, Event, Failure, Hook, Kind, Outcome, Reply, ToolCall, View,
    hook::{Budget, Called},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A hook that records calls and replies.
struct RecordingHook(&'static str, Arc<Mutex<Vec<String>>>);

impl Hook for RecordingHook {
    fn before<'a>(&'a self, called: Called<'a>, _: &'a mut ToolCall) -> Boxed<'a, Result<(), Failure>> {
        self.1.lock().push(format!("{} sees {}", self.0, called.tool.name));
        Box::pin(std::future::ready(Ok(())))
    }

    fn after<'a>(&'a self, _: Called<'a>, reply: &'a mut Reply) -> Boxed<'a, ()> {
        self.1.lock().push(format!("{} gets {}", self.0, reply.text()));
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_see_a_call_in_order_and_its_reply_in_the_other() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("ok"));
    let (board, _handle) = in_memory(&fake);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let view = View::new()
        .hook(RecordingHook("first", seen.clone()))
        .hook(RecordingHook("second", seen.clone()));
    call(&board.toolset_with(view), "fx.t", json!({})).await;
    assert_eq!(
        *seen.lock(),
        ["first sees t", "second sees t", "second gets ok", "first gets ok"]
    );
}

/// A hook that changes calls and replies.
struct RewritingHook;

impl Hook for RewritingHook {
    fn before<'a>(&'a self, _: Called<'a>, call: &'a mut ToolCall) -> Boxed<'a, Result<(), Failure>> {
        call.arguments = Arguments::parse(r#"{"text":"changed"}"#).unwrap();
        Box::pin(std::future::ready(Ok(())))
    }

    fn after<'a>(&'a self, _: Called<'a>, reply: &'a mut Reply) -> Boxed<'a, ()> {
        reply.outcome = Outcome::Done(pegboard::Answer::from_text(format!("[{}]", reply.text())));
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_change_arguments_and_reply() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("ok"));
    let (board, handle) = in_memory(&fake);
    let reply = call(
        &board.toolset_with(View::new().hook(RewritingHook)),
        "fx.t",
        json!({"text": "as asked"}),
    )
    .await;
    assert_eq!(reply.text(), "[ok]");
    let sent = handle.requests();
    let sent = sent.iter().find(|message| message.method == "tools/call").unwrap();
    assert_eq!(sent.params["arguments"], json!({"text": "changed"}));
}

/// A hook that rejects everything, or never decides.
struct RejectingHook {
    decides: bool,
}

impl Hook for RejectingHook {
    fn before<'a>(&'a self, _: Called<'a>, _: &'a mut ToolCall) -> Boxed<'a, Result<(), Failure>> {
        Box::pin(async {
            if self.decides {
                return Err(Failure::new(Kind::NotPermitted, "not today"));
            }
            std::future::pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_refuses_or_hangs_keeps_the_call_from_the_server() {
    let fake = FakeServer::new("fx").tool(Tool::new("t"));
    let (board, handle) = in_memory(&fake);
    let reply = call(
        &board.toolset_with(View::new().hook(RejectingHook { decides: true })),
        "fx.t",
        json!({}),
    )
    .await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    let hanging = board.toolset_with(View::new().hook(RejectingHook { decides: false }));
    let reply = hanging.call(ToolCall::new("fx.t").timeout(secs(5))).await;
    assert_outcome(&reply, Kind::Timeout, false);
    assert_eq!(handle.count("tools/call"), 0);
}

/// A token budget.
#[derive(Clone)]
struct TokenBudget(Arc<AtomicUsize>);

impl Budget for TokenBudget {
    fn allows(&self, _: Called<'_>) -> Result<(), String> {
        match self.0.load(Ordering::Relaxed) {
            0 => Err("the model's context is full".to_owned()),
            _ => Ok(()),
        }
    }

    fn spend(&self, _: Called<'_>, tokens: usize) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(tokens))
        });
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_budget_refuses_calls_and_replies_are_charged() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("12345678"));
    let (board, handle) = in_memory(&fake);
    let purse = TokenBudget(Arc::new(AtomicUsize::new(3)));
    let tools = board.toolset_with(View::new().budget(purse.clone()));
    assert_eq!(call(&tools, "fx.t", json!({})).await.text(), "12345678");
    assert_eq!(purse.0.load(Ordering::Relaxed), 1);
    call(&tools, "fx.t", json!({})).await;
    let refused = call(&tools, "fx.t", json!({})).await;
    assert_outcome(&refused, Kind::LimitExceeded, false);
    assert_contains(&refused.text(), &["the model's context is full"]);
    assert_eq!(handle.count("tools/call"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_carries_trace_context_and_the_programs_facts_but_not_the_protocols_own_keys() {
    let fake = FakeServer::new("fx").tool(Tool::new("t"));
    let (board, handle) = in_memory(&fake);
    let view = View::new().meta(|called| {
        let facts = json!({"example.com/tenant": "a", "example.com/of": called.tool.name, "progressToken": "mine"});
        facts.as_object().unwrap().clone()
    });
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = ToolCall::new("fx.t")
        .traceparent(parent)
        .meta("example.com/tenant", "b");
    board.toolset_with(view).call(asked).await;
    let sent = handle.requests();
    let sent = sent.iter().find(|message| message.method == "tools/call").unwrap();
    let meta = &sent.params["_meta"];
    assert_eq!(meta["traceparent"], parent);
    assert_eq!(meta["example.com/tenant"], "b");
    assert_eq!(meta["example.com/of"], "t");
    assert_eq!(Some(&meta["progressToken"]), sent.id.as_ref());
}

/// A hook that panics at calls and replies of certain tools.
struct PanickingHook;

impl Hook for PanickingHook {
    fn before<'a>(&'a self, called: Called<'a>, _: &'a mut ToolCall) -> Boxed<'a, Result<(), Failure>> {
        assert_ne!(called.tool.name, "before", "on purpose, before there is a future");
        Box::pin(async move {
            assert_ne!(called.tool.name, "within", "on purpose, within the future");
            Ok(())
        })
    }

    fn after<'a>(&'a self, called: Called<'a>, _: &'a mut Reply) -> Boxed<'a, ()> {
        assert_ne!(called.tool.name, "after", "on purpose, at the reply");
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_costs_one_call_and_its_events_are_complete() {
    let tool = |name: &str| Tool::new(name).answers_text("ok");
    let fake = FakeServer::new("fx")
        .tool(tool("before"))
        .tool(tool("within"))
        .tool(tool("after"))
        .tool(tool("t"));
    let (board, handle) = in_memory(&fake);
    let mut events = board.events();
    let tools = board.toolset_with(View::new().hook(PanickingHook));
    for name in ["fx.before", "fx.within"] {
        let reply = call(&tools, name, json!({})).await;
        assert_outcome(&reply, Kind::Internal, false);
        assert!(
            reply.text().contains("a hook of the program panicked"),
            "{}",
            reply.text()
        );
        assert_eq!(call(&tools, "fx.t", json!({})).await.text(), "ok");
    }
    let reply = call(&tools, "fx.after", json!({})).await;
    assert_eq!((reply.text().as_str(), reply.warnings.len()), ("ok", 1));
    assert_eq!(handle.count("tools/call"), 3);
    let (mut begun, mut ended) = (0, 0);
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(1), events.next()).await {
        begun += usize::from(matches!(event, Event::CallCreated { .. }));
        ended += usize::from(matches!(event, Event::CallCompleted { .. }));
    }
    assert_eq!((begun, ended), (5, 5));
}
