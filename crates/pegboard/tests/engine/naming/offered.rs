//! Tools in the form of a provider, and a model's arguments on their way back.

use pegboard::{Arguments, Kind, Provider, ToolCall, View};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use crate::{naming::fixtures::*, support::*};

fn picky() -> FakeServer {
    let schema = json!({"type": "object", "required": ["$filter"], "properties": {
        "$filter": {"type": "string"}, "limit": {"type": "integer"}, "level": {"type": "integer", "enum": [1, 2]}, "labels": {"type": "object"}}});
    FakeServer::new("fx").tool(Tool::new("find").schema(schema).echoes())
}

/// From a provider's response to the tool's own arguments, and from the reply to the provider's message.
#[tokio::test]
async fn a_models_call_reaches_the_tool_in_the_tools_own_words() {
    let board = board_of(vec![(picky(), "")]);
    let tools = board.toolset_with(View::new().provider(Provider::Gemini));
    let listing = tools.list(PATIENCE).await;
    let declared = &listing.definitions()[0]["functionDeclarations"][0];
    let filter = declared["parameters"]["required"][0].as_str().unwrap();
    assert_ne!(filter, "$filter");

    let response = json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {
        "name": declared["name"], "args": {filter: "a", "level": "2", "labels": "{\"x\": \"y\"}"}}}]}}]});
    let call = Provider::Gemini.tool_calls(&response).remove(0);
    let reply = tools.call(call).await;
    let echoed: Value = serde_json::from_str(&reply.text()).unwrap();
    assert_eq!(echoed, json!({"$filter": "a", "level": 2, "labels": {"x": "y"}}));
    let message = Provider::Gemini.tool_messages(&[reply]).remove(0);
    assert_eq!(message["parts"][0]["functionResponse"]["name"], declared["name"]);
}

/// A null that only `strict` required is not passed on.
#[tokio::test]
async fn what_strict_makes_null_does_not_reach_the_tool() {
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let board = board_of(vec![(
        FakeServer::new("fx").tool(Tool::new("t").schema(schema).echoes()),
        "",
    )]);
    let tools = board.toolset_with(View::new().provider(Provider::OpenAiStrict));
    assert_eq!(tools.list(PATIENCE).await.definitions()[0]["function"]["strict"], true);
    let arguments = Arguments::parse(r#"{"a": "x", "b": null}"#).unwrap();
    let reply = tools.call(ToolCall::new("fx__t").arguments(arguments)).await;
    assert_eq!(serde_json::from_str::<Value>(&reply.text()).unwrap(), json!({"a": "x"}));
}

/// One of ten tools is broken; nine are offered, and a warning names the tenth.
#[tokio::test]
async fn a_tool_with_a_broken_schema_costs_only_itself() {
    let good = |at: usize| Tool::new(format!("good{at}"));
    let bad =
        Tool::new("bad").schema(json!({"type": "object", "properties": {"x": {"type": "string"}, "y": "no schema"}}));
    let board = board_of(vec![(FakeServer::new("fx").tools((0..9).map(good)).tool(bad), "")]);
    for provider in Provider::ALL.into_iter().filter(|provider| *provider != Provider::Mcp) {
        let listing = board.toolset_with(View::new().provider(provider)).list(PATIENCE).await;
        assert_eq!(listing.tools.len(), 9);
        assert_eq!(
            listing.quarantined,
            [format!(
                "tool `fx.bad` is not offered to {provider}: its input schema cannot be used at `y`: `no schema` is no schema"
            )]
        );
    }
    assert_eq!(board.toolset().list(PATIENCE).await.tools.len(), 10);
}

/// The bytes are identical in every run, in whatever order a server lists.
#[tokio::test]
async fn a_list_is_the_same_in_every_run() {
    let tools = |order: &[usize]| -> Vec<Tool> {
        let schema = |at: usize| {
            json!({"type": "object", "required": (0..at).rev().map(|at| format!("p{at}")).collect::<Vec<_>>(),
            "properties": (0..at).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>()})
        };
        order
            .iter()
            .map(|at| Tool::new(format!("t{at}")).schema(schema(*at)))
            .collect()
    };
    let mut seen: Option<String> = None;
    for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
        let board = board_of(vec![(FakeServer::new("fx").tools(tools(&order)), "")]);
        let mut all = String::new();
        for provider in Provider::ALL {
            let listing = board.toolset_with(View::new().provider(provider)).list(PATIENCE).await;
            all.push_str(&serde_json::to_string(&listing.definitions()).unwrap());
        }
        assert_eq!(*seen.get_or_insert_with(|| all.clone()), all);
    }
}

/// A token budget for schemas is kept, and what was removed is reported.
#[tokio::test]
async fn a_schema_keeps_to_the_budget_of_the_view() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string", "title": "X", "description": "d".repeat(900)}}});
    let board = board_of(vec![(FakeServer::new("fx").tool(Tool::new("t").schema(schema)), "")]);
    let view = View::new().provider(Provider::Anthropic).schema_budget(400);
    let listing = board.toolset_with(view).list(PATIENCE).await;
    let definition = listing.tools[0].definition.as_ref().unwrap();
    assert!(definition.schema.to_string().len() <= 400);
    assert_eq!(definition.lost, ["titles and examples", "long descriptions"]);
}

/// Malformed arguments of a model get an error reply.
#[tokio::test]
async fn a_models_broken_arguments_are_told_to_it() {
    let board = board_of(vec![(picky(), "")]);
    let tools = board.toolset_with(View::new().provider(Provider::OpenAi));
    let response = json!({"choices": [{"message": {"tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "fx__find", "arguments": "{\"$filter\": "}}]}}]});
    let call = Provider::OpenAi.tool_calls(&response).remove(0);
    let reply = tools.call(call).await;
    assert_outcome(&reply, Kind::InvalidArguments, false);
    let message = Provider::OpenAi.tool_result(&reply);
    assert_eq!(message["tool_call_id"], "c1");
    assert_contains(
        message["content"].as_str().unwrap(),
        &["fx__find was not called", "JSON"],
    );
}
