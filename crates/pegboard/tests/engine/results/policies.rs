//! The config's result policies, from the file to the reply.

use pegboard::{
    Config, Env, Format, Kind, Outcome, ServerConfig, ToolCall, View,
    config::{Results, Structured, TooLong},
    summary::{Summariser, Summary, SummaryRequest},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{results::fixtures::*, support::*};

/// The settings of the one server of a file.
fn from_file(settings: &str) -> ServerConfig {
    let text = format!("[servers.fx]\ncommand = 'in-process'\n{settings}");
    let loaded = Config::from_text(&text, Format::Toml, &Env::process());
    assert_eq!(loaded.problems, []);
    loaded.config.servers.into_values().next().expect("a server")
}

#[tokio::test]
async fn a_limit_in_the_file_holds_for_its_server_and_another_for_one_tool() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("log").answers_text(lines(1000)))
        .tool(Tool::new("page").answers_text(lines(1000)))
        .tool(Tool::new("fails").fails_with(lines(1000)))
        .tool(Tool::new("refuses").refuses(-32000, lines(1000)));
    let settings =
        from_file("max_result = '1KiB'\nresult.mode = 'head'\n[servers.fx.tools.page]\nmax_result = '1MiB'\n");
    let board = of_fakes([("fx", fake, settings)]);
    let tools = board.toolset();
    for tool in ["fx.log", "fx.fails", "fx.refuses"] {
        let reply = call(&tools, tool, json!({})).await;
        assert!(
            reply.text().len() <= 1024 && reply.truncated && reply.handle.is_none(),
            "{tool}: {}",
            reply.text()
        );
        assert_contains(&reply.text(), &["line 1\n", "bytes are shown"]);
    }
    let page = call(&tools, "fx.page", json!({})).await;
    assert_eq!((page.text(), page.truncated), (lines(1000), false));
}

#[tokio::test]
async fn a_tool_may_ask_for_more_room_unless_the_operator_said_how_much() {
    let large = Tool::new("large").with("_meta", json!({"anthropic/maxResultSizeChars": 200_000}));
    let fake = FakeServer::new("fx").tool(large.answers_text("x".repeat(100_000)));
    let board = of_fakes([
        ("fx", fake.clone(), plain()),
        ("strict", fake, from_file("max_result = '48KiB'")),
    ]);
    let tools = board.toolset();
    assert!(!call(&tools, "fx.large", json!({})).await.truncated);
    assert!(call(&tools, "strict.large", json!({})).await.truncated);
}

#[tokio::test]
async fn a_result_that_is_too_long_can_be_an_error() {
    let fake = FakeServer::new("fx").tool(Tool::new("log").answers_text(lines(1000)));
    let board = of_fakes([("fx", fake, from_file("result = { max_bytes = 1000, mode = 'error' }"))]);
    assert_outcome(
        &call(&board.toolset(), "fx.log", json!({})).await,
        Kind::LimitExceeded,
        true,
    );
}

#[tokio::test]
async fn programs_can_set_the_policy_too() {
    let fake = FakeServer::new("fx").tool(Tool::new("weather").answers_structured(json!({"t": 21})));
    let mut config = plain();
    let mut results = Results::default();
    (results.structured, results.fence, results.mode) = (Structured::StructuredOnly, true, TooLong::Head);
    config.policy.result = results;
    let board = of_fakes([("fx", fake, config)]);
    let reply = call(&board.toolset(), "fx.weather", json!({})).await;
    assert_contains(&reply.text(), &["<untrusted-", "from=\"fx.weather\"", "{\"t\":21}"]);
    let plain = call(
        &board.toolset_with(View::new().whole_results()),
        "fx.weather",
        json!({}),
    )
    .await;
    assert_eq!(plain.text(), "{\"t\":21}", "fences are for models");
}

struct Counts;

impl Summariser for Counts {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        let context = request.context.clone().unwrap_or_default();
        Box::pin(async move { Ok(format!("{} lines; {context}", request.text.lines().count())) })
    }
}

#[tokio::test]
async fn a_long_result_is_summarised_with_the_conversation_in_mind() {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = FakeServer::new("fx").tool(Tool::new("log").answers_text(lines(4000)));
    let board = of_fakes([("fx", fake, from_file("summarise = true"))]);
    let tools = board.toolset_with(view(folder.path()).summariser(Counts));
    let reply = tools.call(ToolCall::new("fx.log").context("user: how many?")).await;
    assert!(
        reply.text().ends_with("\n\n4000 lines; user: how many?"),
        "{}",
        reply.text()
    );
    assert_contains(
        &reply.text(),
        &[
            "[NOTE: this is a summary of the output of fx.log",
            reply.handle.as_ref().expect("a handle"),
        ],
    );
    let Outcome::Done(answer) = reply.outcome else {
        panic!("{reply:?}")
    };
    assert_eq!(answer.content.len(), 1);
}
