//! The result cache and idempotency keys.

use std::time::Duration;

use pegboard::{Arguments, Config, Env, Format, Kind, ServerConfig, ToolCall, config::RetryClass};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn offers() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("noon"))
        .tool(Tool::new("write").destructive().answers_text("written"))
        .tool(Tool::new("silent").answers_text("?"))
        .tool(Tool::new("broken").read_only().fails_with("no"))
}

/// A trusted server, whose hints count, with a cache.
fn caching(server: &mut ServerConfig) {
    server.policy.cache = Some(secs(60));
    server.policy.trust = true;
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_read_only_tool_is_kept_for_its_time_and_no_write_ever_is() {
    let config = set_to(caching);
    let (board, handle) = in_memory_with(&offers(), config);
    let tools = board.toolset();
    let asked = |count| assert_eq!(handle.count("tools/call"), count);
    assert!(!call(&tools, "fx.read", json!({"a": 1, "b": 2})).await.cached);
    let again = tools
        .call(ToolCall::new("fx.read").arguments(Arguments::parse(r#"{ "b": 2, "a": 1 }"#).unwrap()))
        .await;
    assert!(again.cached && again.text() == "noon");
    asked(1);
    call(&tools, "fx.read", json!({"a": 2, "b": 2})).await;
    asked(2);
    tokio::time::advance(Duration::from_secs(61)).await;
    call(&tools, "fx.read", json!({"a": 1, "b": 2})).await;
    asked(3);
    for tool in ["fx.write", "fx.silent", "fx.broken"] {
        for _ in 0..2 {
            assert!(!call(&tools, tool, json!({})).await.cached, "{tool}");
        }
    }
    asked(9);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_unless_it_is_asked_for_and_views_do_not_share() {
    let (board, handle) = in_memory(&offers());
    let tools = board.toolset();
    for _ in 0..2 {
        assert!(!call(&tools, "fx.read", json!({})).await.cached);
    }
    assert_eq!(handle.count("tools/call"), 2);
    let (board, handle) = in_memory_with(&offers(), set_to(caching));
    for _ in 0..2 {
        assert!(!call(&board.toolset(), "fx.read", json!({})).await.cached);
    }
    assert_eq!(handle.count("tools/call"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_named_tool_may_be_kept_though_it_says_nothing_about_itself() {
    let config = set_to(|server| {
        server.policy.tools_cache.insert("s*".to_owned(), Some(secs(60)));
        server.policy.tools_cache.insert("write".to_owned(), Some(secs(60)));
    });
    let (board, _handle) = in_memory_with(&offers(), config);
    let tools = board.toolset();
    for tool in ["fx.silent", "fx.write"] {
        call(&tools, tool, json!({})).await;
    }
    assert!(call(&tools, "fx.silent", json!({})).await.cached);
    assert!(!call(&tools, "fx.write", json!({})).await.cached);
}

#[test]
fn the_config_says_how_long_answers_are_kept() {
    let text = "[servers.fx]\ncommand = 'x'\ncache = '30s'\ntools_cache = { now = 'off', list = 1500, all = true }\n";
    let loaded = Config::from_text(text, Format::Toml, &Env::process());
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let policy = &loaded.config.servers[&name("fx")].policy;
    assert_eq!(policy.cache, Some(secs(30)));
    let kept: Vec<_> = policy
        .tools_cache
        .iter()
        .map(|(tool, time)| (tool.as_str(), *time))
        .collect();
    assert_eq!(
        kept,
        [
            ("all", Some(secs(300))),
            ("list", Some(Duration::from_millis(1500))),
            ("now", None)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn calls_with_one_key_are_carried_out_once() {
    let fake = FakeServer::new("fx").tool(Tool::new("pay").answers_text("paid").after(secs(1)));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let pay = |id: &str| tools.call(ToolCall::new("fx.pay").id(id).key("order 7"));
    let (first, second) = tokio::join!(pay("a"), pay("b"));
    let third = pay("c").await;
    for (reply, id) in [(first, "a"), (second, "b"), (third, "c")] {
        assert_eq!((reply.id.as_str(), reply.text().as_str()), (id, "paid"));
    }
    assert_eq!(handle.count("tools/call"), 1);
    tools.call(ToolCall::new("fx.pay").key("order 8")).await;
    assert_eq!(handle.count("tools/call"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_told_to_the_server_and_belongs_to_its_arguments() {
    let fake = FakeServer::new("fx").tool(Tool::new("pay").answers_text("paid"));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let pay = |amount: u32| {
        let arguments = Arguments::try_from(json!({ "amount": amount })).unwrap();
        tools.call(ToolCall::new("fx.pay").key("order 7").arguments(arguments))
    };
    assert_eq!(pay(5).await.text(), "paid");
    let other = pay(6).await;
    assert_outcome(&other, Kind::InvalidArguments, false);
    assert_contains(
        &other.text(),
        &["the key `order 7` belongs to an earlier call of `fx.pay`"],
    );
    assert_eq!(handle.count("tools/call"), 1);
    tokio::time::advance(secs(600)).await;
    assert_eq!(pay(6).await.text(), "paid");
    let calls = handle.requests();
    let keys: Vec<_> = calls
        .iter()
        .filter(|message| message.method == "tools/call")
        .map(|message| &message.params["_meta"]["dev.pegboard/idempotencyKey"])
        .collect();
    assert_eq!(keys, ["order 7", "order 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_becomes_the_argument_that_the_config_names_unless_that_is_given() {
    let schema = json!({"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]});
    let fake = FakeServer::new("fx").tool(Tool::new("pay").schema(schema).echoes());
    let config = set_to(|server| {
        let keyed = RetryClass::Key("token".to_owned());
        server.policy.tool_retry.insert("pay".to_owned(), keyed);
    });
    let (board, handle) = in_memory_with(&fake, config);
    let tools = board.toolset();
    for (key, given) in [("a", json!({})), ("b", json!({"token": "mine"}))] {
        let arguments = Arguments::try_from(given).unwrap();
        let reply = tools.call(ToolCall::new("fx.pay").key(key).arguments(arguments)).await;
        assert!(!reply.is_error(), "{}", reply.text());
    }
    let calls = handle.requests();
    let tokens: Vec<_> = calls
        .iter()
        .filter(|message| message.method == "tools/call")
        .map(|message| &message.params["arguments"]["token"])
        .collect();
    assert_eq!(tokens, ["a", "mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_call_was_given_up_is_not_used_again() {
    let fake = FakeServer::new("fx").tool(Tool::new("pay").after(secs(100)));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let pay = || tools.call(ToolCall::new("fx.pay").key("order 7"));
    assert!(tokio::time::timeout(secs(1), pay()).await.is_err());
    let reply = pay().await;
    assert_outcome(&reply, Kind::Cancelled, true);
    assert_eq!(handle.count("tools/call"), 1);
}
