//! What the stub promises to tests of agents.

use tokio::sync::mpsc;

use super::*;
use pegboard_config::Reading;

const PATIENCE: Duration = Duration::from_secs(1);

fn name(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

async fn text(stub: &StubTools, call: ToolCall) -> String {
    stub.call(call).await.text()
}

#[tokio::test]
async fn outcomes_come_in_order_and_the_last_one_repeats() {
    let stub = StubTools::new()
        .fails("db__query", "busy")
        .answers("db__query", "one")
        .answers("db__query", "two");
    for expected in ["busy", "one", "two", "two"] {
        assert_eq!(text(&stub, ToolCall::new("db__query")).await, expected);
    }
    assert_eq!(stub.calls().len(), 4);
}

#[tokio::test]
async fn every_spelling_of_a_name_finds_the_tool() {
    let stub = StubTools::new()
        .answers("time.get_now", "noon")
        .answers("mail.send", "sent");
    for spelling in [
        "time.get_now",
        "time__get_now",
        "mcp__time__get_now",
        "mcp_time_get_now",
        "get_now",
        "Time.Get-Now",
        "functions.time__get_now",
    ] {
        let reply = stub.call(ToolCall::new(spelling)).await;
        assert_eq!(reply.text(), "noon", "{spelling}");
        assert_eq!((reply.name.as_str(), reply.asked.as_str()), ("time.get_now", spelling));
        assert_eq!(reply.tool.as_deref(), Some("get_now"));
        assert_eq!(stub.calls().pop().unwrap().name, spelling);
    }
}

#[tokio::test]
async fn a_name_that_is_no_tools_is_refused_and_recorded() {
    let stub = StubTools::new().answers("time.now", "one");
    let reply = stub.call(ToolCall::new("time.nou").id("c1")).await;
    assert_eq!(reply.outcome.kind(), Kind::UnknownTool);
    assert!(
        reply.text().contains("The closest names are `time.now`"),
        "{}",
        reply.text()
    );
    assert_eq!((reply.id.as_str(), stub.calls()[0].name.as_str()), ("c1", "time.nou"));
}

#[tokio::test]
async fn arguments_are_checked_against_the_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let stub = StubTools::new().describes("fx.t", "", schema).answers("fx.t", "ok");
    let refused = stub.call(ToolCall::new("fx.t").arguments(json!({"n": []}))).await;
    assert_eq!(refused.outcome.kind(), Kind::InvalidArguments);
    assert!(refused.text().starts_with("fx.t was not called"), "{}", refused.text());
    assert!(stub.calls().is_empty());
    assert_eq!(
        text(&stub, ToolCall::new("fx.t").arguments(json!({"n": 1}))).await,
        "ok"
    );
}

#[tokio::test]
async fn a_models_text_is_recorded_as_the_arguments_it_means() {
    let stub = StubTools::new().answers("a", "one");
    let call = || ToolCall::new("a").text("team: payments");
    text(&stub, call().reading(Reading::Cascade)).await;
    assert_eq!(stub.calls()[0].arguments, json!({"team": "payments"}));
    let refused = stub.call(call()).await;
    assert_eq!(refused.outcome.kind(), Kind::InvalidArguments);
    assert_eq!(stub.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reply_takes_its_time_and_reports_progress() {
    let slow = StubReply::from("done")
        .after(Duration::from_secs(3))
        .progress(1.0, Some(2.0), "half")
        .progress(2.0, Some(2.0), "all");
    let stub = StubTools::new().plays("fx.t", slow);
    let (progress, mut reports) = mpsc::channel(8);
    let reply = stub.call(ToolCall::new("fx.t").progress(progress)).await;
    assert_eq!((reply.text().as_str(), reply.latency.as_secs()), ("done", 3));
    let messages = [reports.recv().await, reports.recv().await].map(|report| report.unwrap().message.unwrap());
    assert_eq!(messages, ["half", "all"]);
    let late = stub.call(ToolCall::new("fx.t").timeout(Duration::from_secs(2))).await;
    assert!(matches!(&late.outcome, Outcome::Lost(failure) if failure.kind == Kind::Timeout));
    assert!(late.outcome.may_have_executed());
}

#[tokio::test]
async fn a_server_that_is_absent_is_listed_as_such_and_its_calls_are_refused() {
    let stub = StubTools::new()
        .answers("fx.t", "never")
        .answers("ok.t", "ok")
        .absent(name("fx"), "connection refused");
    let listing = stub.list(PATIENCE).await;
    assert_eq!((listing.tools.len(), listing.unavailable.len()), (1, 1));
    assert!(listing.unavailable[0].error.contains("connection refused"));
    for call in ["fx.t", "fx__other"] {
        let reply = stub.call(ToolCall::new(call)).await;
        assert_eq!(reply.outcome.kind(), Kind::Unavailable, "{call}");
        assert!(
            reply.text().starts_with("server `fx` is down: connection refused"),
            "{}",
            reply.text()
        );
    }
    assert_eq!(text(&stub, ToolCall::new("ok.t")).await, "ok");
}

#[tokio::test]
async fn every_outcome_can_be_played() {
    for outcome in [
        Outcome::Refused(Failure::new(Kind::NotPermitted, "not now")),
        Outcome::Lost(Failure::new(Kind::Transport, "gone").after_sending()),
        Outcome::ToolFailed(Answer::from_text("no")),
    ] {
        let stub = StubTools::new().ends("fx.t", outcome.clone());
        assert_eq!(stub.call(ToolCall::new("fx.t")).await.outcome, outcome);
    }
}

#[tokio::test]
async fn tools_are_listed_for_the_provider_with_their_descriptions() {
    let schema = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    let stub = StubTools::new()
        .describes("now", "Tells the time.", schema)
        .answers("now", "noon");
    let mcp = stub.list(PATIENCE).await.definitions();
    assert_eq!(mcp[0]["inputSchema"]["properties"]["zone"]["type"], "string");
    let openai = stub.clone().provider(Provider::OpenAi).list(PATIENCE).await;
    assert_eq!(openai.definitions()[0]["function"]["description"], "Tells the time.");
}

#[tokio::test]
async fn a_closed_stub_takes_no_calls_and_neither_do_its_clones() {
    let stub = StubTools::new().answers("a", "one");
    stub.clone().close().await;
    assert!(stub.is_closed());
    assert_eq!(stub.call(ToolCall::new("a")).await.outcome.kind(), Kind::Unavailable);
    assert!(stub.list(PATIENCE).await.tools.is_empty());
}
