//! Hooks, budgets, `_meta` functions, approvers and summarisers know the call, its view and its principal.

use std::{pin::Pin, sync::Arc};

use pegboard::{
    Approver, Caller, Failure, Hook, Reply, ToolCall, View,
    approval::{Decision, Question},
    config::Approval,
    hook::{Budget, Called},
    summary::{Summariser, Summary, SummaryRequest},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Tool};
use serde_json::Map;

use crate::{hosts::fixtures::shown, support::*};

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Records who calls.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, what: &str, caller: &Caller<'_>) {
        self.0.lock().push(format!("{what}: {}", shown(caller)));
    }
}

impl Hook for Notes {
    fn before<'a>(&'a self, called: Called<'a>, call: &'a mut ToolCall) -> Boxed<'a, Result<(), Failure>> {
        self.add("before", &called.caller);
        call.meta.insert("trace".to_owned(), "changed".into());
        Box::pin(std::future::ready(Ok(())))
    }

    fn after<'a>(&'a self, called: Called<'a>, _reply: &'a mut Reply) -> Boxed<'a, ()> {
        self.add("after", &called.caller);
        Box::pin(std::future::ready(()))
    }
}

impl Budget for Notes {
    fn allows(&self, called: Called<'_>) -> Result<(), String> {
        self.add("budget", &called.caller);
        Ok(())
    }

    fn spend(&self, called: Called<'_>, _tokens: usize) {
        self.add("spent", &called.caller);
    }
}

impl Approver for Notes {
    fn decide<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Decision> {
        self.add("approver", &question.caller);
        Box::pin(std::future::ready(Decision::Once))
    }
}

impl Summariser for Notes {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        self.add("summariser", &request.caller);
        Box::pin(std::future::ready(Ok("in short".to_owned())))
    }
}

#[tokio::test(start_paused = true)]
async fn every_callback_of_a_view_sees_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeServer::new("fx").tool(Tool::new("log").answers_text("word ".repeat(10_000)));
    let settings = set_to(|server| {
        server.policy.approval = Approval::Always;
        server.policy.summarise = Some(pegboard::config::Summarise::default());
    });
    let (board, _handle) = in_memory_with(&fake, settings);
    let notes = Notes::default();
    let of_meta = notes.clone();
    let mut limits = pegboard::toolset::SpillLimits::default();
    limits.folder = Some(folder.path().to_owned());
    let view = View::new()
        .name("chat")
        .principal("alice")
        .spill(limits)
        .hook(notes.clone())
        .budget(notes.clone())
        .approver(notes.clone())
        .summariser(notes.clone())
        .meta(move |called| {
            of_meta.add("meta", &called.caller);
            Map::new()
        });
    let call = ToolCall::new("fx.log").id("c1").meta("trace", "t");
    let reply = board.toolset_with(view).call(call).await;
    assert!(!reply.is_error(), "{}", reply.text());
    assert_contains(&reply.text(), &["in short"]);
    assert_eq!(
        *notes.0.lock(),
        [
            "before: c1 chat alice t",
            "budget: c1 chat alice changed",
            "approver: c1 chat alice changed",
            "meta: c1 chat alice changed",
            "summariser: c1 chat alice changed",
            "after: c1 chat alice changed",
            "spent: c1 chat alice changed",
        ]
    );
}
