//! More tools than a model should be shown.

use pegboard::{Arguments, Kind, Provider, ToolCall, View, config::Reading};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use crate::support::*;

/// A server with 500 tools, whose definitions take about 40,000 tokens.
fn many() -> FakeServer {
    let kinds = ["invoice", "customer", "refund", "shipment", "warehouse"];
    let tools = (0..500).map(|n| {
        let kind = kinds[n % kinds.len()];
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "string", "description": "Which one, by its number. ".repeat(8)},
        }});
        Tool::new(format!("get_{kind}_{n}"))
            .description(&format!("Returns {kind} number {n}."))
            .schema(schema)
            .answers_text(format!("{kind} {n}"))
    });
    FakeServer::new("fx").tools(tools)
}

/// The definitions fit the budget, and the right tool is found, described and called.
#[tokio::test(start_paused = true)]
async fn five_hundred_tools_fit_a_budget_through_search() {
    let (board, _handle) = in_memory(&many());
    let everything: usize = board
        .toolset()
        .list(PATIENCE)
        .await
        .tools
        .iter()
        .map(|tool| tool.tokens())
        .sum();
    assert!(everything > 20_000, "{everything}");
    for provider in Provider::ALL {
        let tools = board.toolset_with(View::new().tool_budget(10_000).provider(provider));
        let listing = tools.list(PATIENCE).await;
        let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            names,
            ["pegboard__find_tools", "pegboard__describe_tool", "pegboard__call_tool"]
        );
        assert!(serde_json::to_string(&listing.definitions()).unwrap().len() / 4 < 10_000);
    }
    let tools = board.toolset_with(View::new().tool_budget(10_000));
    tools.list(PATIENCE).await;
    let found = call(
        &tools,
        "pegboard__find_tools",
        json!({"query": "look at refund 7", "limit": 3}),
    )
    .await;
    assert_eq!(found.text().lines().count(), 3);
    assert_contains(&found.text(), &["fx__get_refund_7: Returns refund number 7."]);
    let described = call(&tools, "pegboard__describe_tool", json!({"name": "fx__get_refund_7"})).await;
    let described: Value = serde_json::from_str(&described.text()).unwrap();
    assert_eq!(described["arguments"]["properties"]["id"]["type"], "string");
    let arguments = json!({"name": "fx__get_refund_7", "arguments": {"id": "7"}});
    let called = call(&tools, "pegboard__call_tool", arguments).await;
    assert_eq!(
        (called.name.as_str(), called.text().as_str()),
        ("fx.get_refund_7", "refund 7")
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_large_enough_hides_nothing_and_some_tools_are_always_shown() {
    let (board, _handle) = in_memory(&many());
    let tools = board.toolset_with(View::new().tool_budget(1_000_000));
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 500);
    let reply = call(&tools, "fx.get_refund_7", json!({})).await;
    assert_eq!(reply.text(), "refund 7");
    let config = set_to(|server| server.policy.always_load = vec!["get_*_1?".to_owned()]);
    let (board, _handle) = in_memory_with(&many(), config);
    let tools = board.toolset_with(View::new().tool_budget(10_000));
    let listing = tools.list(PATIENCE).await;
    assert_eq!(listing.tools.len(), 3 + 10);
    assert_eq!(listing.tools[3].name, "fx__get_customer_11");
    assert!(listing.warnings.is_empty(), "{:?}", listing.warnings);
    // A tool that is not listed can be called all the same.
    assert_eq!(call(&tools, "fx.get_refund_7", json!({})).await.text(), "refund 7");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_wrongly_is_explained() {
    let (board, handle) = in_memory(&many());
    let tools = board.toolset_with(View::new().tool_budget(1));
    tools.list(PATIENCE).await;
    assert_outcome(
        &call(&tools, "pegboard__find_tools", json!({})).await,
        Kind::InvalidArguments,
        false,
    );
    let nothing = call(&tools, "pegboard__find_tools", json!({"query": "xylophone"})).await;
    assert_contains(&nothing.text(), &["No tool fits"]);
    let unknown = call(&tools, "pegboard__describe_tool", json!({"name": "fx__get_refnd_7"})).await;
    assert_outcome(&unknown, Kind::UnknownTool, false);
    assert_contains(&unknown.text(), &["fx.get_refund_7"]);
    let wrong = call(
        &tools,
        "pegboard__call_tool",
        json!({"name": "fx__get_refund_7", "arguments": [1]}),
    )
    .await;
    assert_outcome(&wrong, Kind::InvalidArguments, false);
    // Some models write the arguments as a string.
    let text = json!({"name": "fx__get_refund_7", "arguments": "{\"id\": \"7\"}"});
    let arguments = Arguments::try_from(text).unwrap();
    let reply = tools
        .call(ToolCall::new("pegboard__call_tool").id("a").arguments(arguments))
        .await;
    assert_eq!((reply.id.as_str(), reply.text().as_str()), ("a", "refund 7"));
    assert_eq!(handle.count("tools/call"), 1);
}

/// The token cost of each server.
#[tokio::test(start_paused = true)]
async fn a_view_tells_what_each_server_costs() {
    let (board, _handle) = in_memory(&many());
    let tools = board.toolset();
    let listed = tools.list(PATIENCE).await.tools;
    let cost = tools.cost();
    assert_eq!((cost.len(), cost[0].tools), (1, 500));
    assert_eq!(cost[0].tokens, listed.iter().map(|tool| tool.tokens()).sum::<usize>());
}

/// Arguments that are not JSON are parsed for these tools too, and typos in their names are corrected.
#[tokio::test(start_paused = true)]
async fn the_three_tools_take_text_and_repaired_names() {
    let (board, handle) = in_memory(&many());
    let tools = board.toolset_with(View::new().tool_budget(10_000));
    tools.list(PATIENCE).await;
    for (name, text, expected, is_repaired) in [
        ("pegboard__find_tools", "query: refund 7", "fx__get_refund_7", false),
        (
            "functions.pegboard__find_tools",
            "query: refund 7",
            "fx__get_refund_7",
            true,
        ),
        (
            "default_api:Find-Tools",
            r#"{"query": "refund 7"}"#,
            "fx__get_refund_7",
            true,
        ),
        (
            "describe_tool",
            "name: fx__get_refund_7",
            "Returns refund number 7.",
            false,
        ),
        (
            "PEGBOARD.describe-tool",
            "name=fx__get_refund_7",
            "Returns refund number 7.",
            true,
        ),
        ("pegboard.call_tool", "name: fx__get_refund_7", "refund 7", false),
        (
            "call_tool()",
            "name: fx__get_refund_7\narguments:\n  id: '7'\n",
            "refund 7",
            true,
        ),
        (
            "call_tool",
            r#"{"name": "fx__get_refund_7", "arguments": "id: 7"}"#,
            "refund 7",
            false,
        ),
    ] {
        let call = ToolCall::new(name).text(text).reading(Reading::Cascade);
        let reply = tools.call(call).await;
        assert_contains(&reply.text(), &[expected]);
        assert_eq!(reply.repaired.is_some(), is_repaired, "{name}: {:?}", reply.repaired);
    }
    let calls = handle
        .requests()
        .into_iter()
        .filter(|received| received.method == "tools/call");
    let sent: Vec<Value> = calls.map(|received| received.params["arguments"].clone()).collect();
    assert_eq!(sent, [json!({}), json!({"id": "7"}), json!({"id": "7"})]);
}

/// By default, malformed arguments are accepted for searching and rejected for calling.
#[tokio::test(start_paused = true)]
async fn broken_json_finds_tools_and_calls_none() {
    let (board, handle) = in_memory(&many());
    let tools = board.toolset_with(View::new().tool_budget(10_000));
    tools.list(PATIENCE).await;
    let found = tools
        .call(ToolCall::new("find_tools").text("{'query': 'refund 7',}"))
        .await;
    assert_contains(&found.text(), &["fx__get_refund_7"]);
    assert_contains(&found.warnings.join(" "), &["mended"]);
    let refused = tools
        .call(ToolCall::new("call_tool").text("{'name': 'fx__get_refund_7',}"))
        .await;
    assert_outcome(&refused, Kind::InvalidArguments, false);
    assert_eq!(handle.count("tools/call"), 0);
}

/// A typo that matches a server's tool resolves to that tool.
#[tokio::test(start_paused = true)]
async fn a_servers_tool_of_the_same_name_comes_before_a_repair() {
    let fake = many().tool(Tool::new("find-tools").answers_text("of the server"));
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset_with(View::new().tool_budget(10_000));
    tools.list(PATIENCE).await;
    for name in ["find-tools", "functions.find-tools", "Find_Tools"] {
        assert_eq!(
            call(&tools, name, json!({"query": "x"})).await.text(),
            "of the server",
            "{name}"
        );
    }
    let ours = call(&tools, "functions.pegboard__find_tools", json!({"query": "refund 7"})).await;
    assert_contains(&ours.text(), &["fx__get_refund_7"]);
}

/// A model gets its answer under the name and the id that it used, however its call was resolved.
#[tokio::test(start_paused = true)]
async fn every_provider_finds_describes_and_calls_and_is_answered_as_it_asked() {
    let (board, handle) = in_memory(&many());
    for provider in Provider::ALL {
        let tools = board.toolset_with(View::new().tool_budget(10_000).provider(provider));
        tools.list(PATIENCE).await;
        let before = handle.count("tools/call");
        for (tool, arguments, expected) in [
            ("find_tools", json!({"query": "refund 7"}), "fx__get_refund_7"),
            (
                "describe_tool",
                json!({"name": "fx__get_refund_7"}),
                "Returns refund number 7.",
            ),
            (
                "call_tool",
                json!({"name": "fx__get_refund_7", "arguments": {"id": "7"}}),
                "refund 7",
            ),
        ] {
            let name = format!("pegboard__{tool}");
            let calls = provider.tool_calls(&asking(provider, &name, &arguments));
            let [call] = <[ToolCall; 1]>::try_from(calls).unwrap();
            let reply = tools.call(call).await;
            assert_contains(&reply.text(), &[expected]);
            assert_eq!(
                (reply.id.as_str(), reply.asked.as_str()),
                ("call-1", name.as_str()),
                "{provider}"
            );
            let told = provider.tool_result(&reply).to_string();
            if provider != Provider::Mcp {
                assert_contains(&told, &["\"call-1\""]);
            }
            if matches!(provider, Provider::Gemini | Provider::GeminiJson) {
                assert_contains(&told, &[&name]);
            }
        }
        assert_eq!(handle.count("tools/call"), before + 1, "{provider}");
    }
}

/// A response in which a model calls one tool under the id `call-1`. Gemini writes an object without named properties as a string.
fn asking(provider: Provider, name: &str, arguments: &Value) -> Value {
    match provider {
        Provider::OpenAi | Provider::OpenAiStrict => {
            json!([{"id": "call-1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}])
        }
        Provider::OpenAiResponses => {
            json!([{"type": "function_call", "call_id": "call-1", "name": name, "arguments": arguments.to_string()}])
        }
        Provider::Anthropic => json!([{"type": "tool_use", "id": "call-1", "name": name, "input": arguments}]),
        Provider::Gemini | Provider::GeminiJson => {
            let mut arguments = arguments.clone();
            if provider == Provider::Gemini && arguments.get("arguments").is_some() {
                arguments["arguments"] = arguments["arguments"].to_string().into();
            }
            json!([{"functionCall": {"id": "call-1", "name": name, "args": arguments}}])
        }
        Provider::Bedrock => json!([{"toolUse": {"toolUseId": "call-1", "name": name, "input": arguments}}]),
        Provider::Mcp => {
            json!({"jsonrpc": "2.0", "id": "call-1", "method": "tools/call", "params": {"name": name, "arguments": arguments}})
        }
    }
}

/// A tool that the operator always lists is not dropped silently.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_always_listed_and_has_no_room_is_named_in_a_warning() {
    let config = set_to(|server| server.policy.always_load = vec!["get_*_1?".to_owned()]);
    let (board, _handle) = in_memory_with(&many(), config);
    // A tenth of a context window of 10,000 tokens.
    let tools = board.toolset_with(View::new().tool_budget_percent(10, 10_000));
    let listing = tools.list(PATIENCE).await;
    let shown = listing.tools.len() - 3;
    assert!((1..10).contains(&shown), "{shown}");
    assert_eq!(listing.warnings.len(), 1);
    let (named, more) = (5.min(10 - shown), (10 - shown).saturating_sub(5));
    assert_eq!(listing.warnings[0].matches("`fx__get_").count(), named);
    assert_eq!(listing.warnings[0].ends_with(&format!("and {more} more")), more > 0);
    assert_contains(&listing.warnings[0], &["1000 tokens"]);
}

/// A model sees the schema from which its arguments are converted back.
#[tokio::test(start_paused = true)]
async fn a_tool_is_described_as_the_provider_takes_it() {
    let schema = json!({"type": "object", "properties": {"a b": {"type": "string"}, "level": {"enum": [1, 2]}}});
    let fake = many().tool(Tool::new("odd").description("Odd.").schema(schema).echoes());
    let (board, handle) = in_memory(&fake);
    for provider in Provider::ALL {
        let tools = board.toolset_with(View::new().tool_budget(10_000).provider(provider));
        tools.list(PATIENCE).await;
        let described = call(&tools, "pegboard__describe_tool", json!({"name": "fx__odd"})).await;
        let described: Value = serde_json::from_str(&described.text()).unwrap();
        let mut shown = tools.find("odd", 1);
        let shown = shown.remove(0).tool;
        let expected = match &shown.definition {
            Some(definition) => definition.schema.clone(),
            None => shown.tool.input_schema.value(),
        };
        assert_eq!(described["arguments"], expected, "{provider}");
        // The first argument under the name that the model was shown.
        let properties = expected["properties"].as_object().unwrap();
        let first = properties.keys().find(|name| name.starts_with('a')).unwrap();
        let arguments = json!({"name": "fx__odd", "arguments": {first: "x"}});
        let reply = call(&tools, "pegboard__call_tool", arguments).await;
        assert!(!reply.is_error(), "{provider}: {}", reply.text());
        let sent = handle.requests().pop().unwrap().params["arguments"].clone();
        assert_eq!(sent["a b"], "x", "{provider}: {sent}");
    }
}
