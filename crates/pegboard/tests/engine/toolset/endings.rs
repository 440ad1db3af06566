//! Every outcome of a call is a reply that the model can read and a kind that the program can match.

use std::sync::Arc;

use pegboard::{
    Kind, Outcome, Provider, ToolCall, ToolExecutor, Toolset, View,
    approval::{Decision, Question},
    config::{Approval, BreakerPolicy, BreakerRule, ToolPolicy},
    diagnosis::Code,
};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::support::*;

/// An agent loop holds its tools as a trait object.
#[tokio::test(start_paused = true)]
async fn a_toolset_is_a_tool_executor_with_the_same_verbs() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("ok"));
    let (board, _handle) = in_memory(&fake);
    let tools: Arc<dyn ToolExecutor> = Arc::new(board.toolset());
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 1);
    assert_eq!(tools.call(ToolCall::new("fx.t")).await.text(), "ok");
    let nobody = tools.call(ToolCall::new("fx.nobody")).await;
    assert!(nobody.is_error() && !tools.is_closed());
    tools.close().await;
    assert!(tools.is_closed());
    assert_outcome(&tools.call(ToolCall::new("fx.t")).await, Kind::Unavailable, false);
    assert!(tools.list(PATIENCE).await.tools.is_empty());
    // The board and its other views go on.
    assert_eq!(call(&board.toolset(), "fx.t", json!({})).await.text(), "ok");
}

/// Every failure is an error reply with a text.
#[tokio::test(start_paused = true)]
async fn every_failure_is_a_reply_with_words() {
    let fault = |fault: Fault| {
        let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("never seen"));
        fake.fault_on(When::tool("t"), fault)
    };
    let refuses = FakeServer::new("fx").tool(Tool::new("t").refuses(-32602, "bad arguments"));
    let fails = FakeServer::new("fx").tool(Tool::new("t").fails_with("no such pod"));
    for (fake, kind, ran) in [
        (fails, Kind::ToolError, true),
        (refuses, Kind::ToolError, true),
        (fault(Fault::NeverAnswers), Kind::Timeout, true),
        (fault(Fault::DiesAfterExecuting { code: 1 }), Kind::Transport, true),
        (fault(Fault::ClosesOutput), Kind::Transport, true),
        (fault(Fault::UnknownResultType), Kind::Internal, true),
        (fault(Fault::Nested { depth: 500 }), Kind::Internal, true),
    ] {
        let (board, _handle) = in_memory(&fake);
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let reply = call(&tools, "fx.t", json!({})).await;
        assert_outcome(&reply, kind, ran);
        assert!(reply.is_error() && !reply.text().is_empty(), "{kind:?}");
        // A call without a proper answer may have run, and the model is told so in words. An error of the tool is its answer.
        let is_told = reply
            .text()
            .contains("It may have been carried out. Check the state before repeating it");
        assert_eq!(is_told, kind != Kind::ToolError, "{kind:?}: {}", reply.text());
    }
    let fake = FakeServer::new("fx").tool(Tool::new("t"));
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset();
    let unknown = call(&tools, "fx.nobody", json!({})).await;
    assert_outcome(&unknown, Kind::UnknownTool, false);
    assert!(!unknown.text().contains("may have"), "{}", unknown.text());
    board.disable(&name("fx")).await;
    assert_outcome(&call(&tools, "fx.t", json!({})).await, Kind::Unavailable, false);
    board.shutdown().await;
    let closed = call(&tools, "fx.t", json!({})).await;
    assert!(matches!(closed.outcome, Outcome::Refused(_)), "{closed:?}");
}

/// A model reads only the text: it says what to do next, and nothing that only an operator can do.
#[tokio::test(start_paused = true)]
async fn every_refusal_tells_the_model_what_it_can_do_next() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("t"))
        .tool(Tool::new("secret"))
        .tool(Tool::new("ask"))
        .tool(Tool::new("never"))
        .tool(Tool::new("hangs"))
        .fault_on(When::tool("hangs"), Fault::NeverAnswers);
    let mut settings = in_process_settings();
    settings.deny = vec!["secret".into()];
    for (tool, approval) in [("ask", Approval::Always), ("never", Approval::Never)] {
        let mut said = ToolPolicy::default();
        said.approval = Some(approval);
        settings.policy.tools.insert(tool.into(), said);
    }
    let mut rule = BreakerRule::default();
    rule.failures = 1;
    settings.policy.breaker = Some(BreakerPolicy::On(rule));
    let (board, _handle) = in_memory_with(&fake, settings);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let closed = board.toolset();
    closed.close().await;
    let no = |_: &Question<'_>| Decision::Refused("Not today.".into());
    let strict = board.toolset_with(View::new().approver(no));
    let all = "Available tools of server `fx`: ask, hangs, never, t.";
    let check = async |tools: &Toolset, tool: &str, code: Code, words: &str| {
        let reply = call(tools, tool, json!({})).await;
        let Outcome::Refused(failure) = &reply.outcome else {
            panic!("{tool}: {}", reply.text());
        };
        assert_eq!(reply.outcome.diagnosis().map(|found| found.code), Some(code), "{tool}");
        for models in ["Go on", "Call again", "Calling again", "Do not repeat"] {
            assert!(!failure.to_string().contains(models), "{tool}: {failure}");
        }
        let told = Provider::OpenAi.tool_result(&reply)["content"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_contains(&told, &[words]);
        for operators in ["`allow`", "approval_exempt", "enabled = true", "max_in_flight"] {
            assert!(!told.contains(operators), "{tool}: {told}");
        }
    };
    check(&tools, "fx.nobody", Code::UnknownTool, all).await;
    check(&tools, "nobody", Code::UnknownTool, "Available servers: fx.").await;
    check(&tools, "fx.secret", Code::HiddenByConfig, all).await;
    check(&tools, "fx.never", Code::CallForbidden, "Go on without it.").await;
    let words = "nobody can be asked. Go on without it.";
    check(&tools, "fx.ask", Code::ApprovalMissing, words).await;
    check(
        &strict,
        "fx.ask",
        Code::ApprovalRefused,
        "Not today. Do not repeat it. Go on without it, or ask the user.",
    )
    .await;
    check(&closed, "fx.t", Code::Closed, "Go on without tools.").await;
    call(&tools, "fx.hangs", json!({})).await;
    check(&tools, "fx.t", Code::Overloaded, "Call again in ").await;
    board.disable(&name("fx")).await;
    check(
        &tools,
        "fx.t",
        Code::Disabled,
        "it is switched off. Calling again does not help. Go on without it.",
    )
    .await;
    board.shutdown().await;
    check(&tools, "fx.t", Code::Closed, "Go on without tools.").await;
}
