//! Arguments and structured results on a whole board: parsed, validated, coerced, and reported.

use std::pin::Pin;

use pegboard::{
    Failure, Hook, Kind, Pegboard, Reply, ToolCall, Toolset, View,
    config::{Check, OutputCheck, Policy, Reading},
    hook::Called,
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use crate::support::*;

/// A tool that echoes its arguments.
fn issues() -> FakeServer {
    let schema = json!({"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
        "title": {"type": "string"},
        "labels": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer"},
    }});
    FakeServer::new("fx").tool(Tool::new("create").schema(schema).echoes())
}

fn with_policy(fake: &FakeServer, change: impl FnOnce(&mut Policy)) -> (Pegboard, Toolset) {
    let mut config = process(fake);
    change(&mut config.policy);
    let board = board(config);
    let tools = board.toolset();
    (board, tools)
}

async fn write(tools: &Toolset, text: &str) -> Reply {
    tools.call(ToolCall::new("fx.create").text(text)).await
}

fn echoed(reply: &Reply) -> Value {
    assert!(!reply.is_error(), "{}", reply.text());
    serde_json::from_str(&reply.text()).expect("the arguments")
}

#[tokio::test]
async fn a_text_is_read_as_the_server_is_configured_or_the_call_says() {
    let (board, tools) = with_policy(&issues(), |policy| policy.call_arguments.read = Reading::Cascade);
    let reply = write(&tools, "title: x, limit: 5").await;
    assert_eq!(echoed(&reply), json!({"title": "x", "limit": 5}));
    let guided = ToolCall::new("fx.create")
        .text("labels: a,b, title: 5")
        .reading(Reading::Guided);
    assert_eq!(
        echoed(&tools.call(guided).await),
        json!({"title": "5", "labels": ["a", "b"]})
    );
    board.shutdown().await;
    let (board, tools) = with_policy(&issues(), |_| ());
    let reply = write(&tools, "title: x").await;
    assert_outcome(&reply, Kind::InvalidArguments, false);
    assert_contains(
        &reply.text(),
        &["fx.create was not called", "not JSON", "line 1, column 2"],
    );
    assert_eq!(
        echoed(&write(&tools, "{\"title\": \"x\"}").await),
        json!({"title": "x"})
    );
    board.shutdown().await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let (board, tools) = with_policy(&issues().log(&log), |_| ());
    let reply = call(&tools, "fx.create", json!({"titel": "hush-hush", "limit": "many"})).await;
    assert_outcome(&reply, Kind::InvalidArguments, false);
    assert_eq!(reply.attempts, 0);
    let text = reply.text();
    assert_contains(
        &text,
        &[
            "`titel` is unknown, did you mean `title`?",
            "`title` is missing",
            "`limit` must be an integer, and a string was given",
        ],
    );
    assert!(!text.contains("hush-hush"), "{text}");
    assert_eq!(
        reply.outcome.hint(),
        Some("fx.create takes title: string (required), labels: list of string, limit: integer")
    );
    board.shutdown().await;
    let log = pegboard_testkit::read_log(&log).expect("a log");
    assert_eq!(log.count("tools/call"), 0);
}

#[tokio::test]
async fn a_changed_type_is_told_and_what_fits_is_not_touched() {
    let (board, tools) = with_policy(&issues(), |_| ());
    let reply = call(&tools, "fx.create", json!({"title": 5, "labels": "a", "limit": "3"})).await;
    assert_eq!(echoed(&reply), json!({"title": "5", "labels": ["a"], "limit": 3}));
    let expected = ["limit", "title", "labels"].map(|name| format!("argument `{name}`: "));
    assert_eq!(reply.warnings.len(), 3);
    for words in &expected {
        assert!(
            reply.warnings.iter().any(|warning| warning.starts_with(words)),
            "{:?}",
            reply.warnings
        );
    }
    let reply = call(&tools, "fx.create", json!({"title": "5"})).await;
    assert_eq!(echoed(&reply), json!({"title": "5"}));
    assert!(reply.warnings.is_empty());
    board.shutdown().await;
}

/// A hook that rejects one value must not be bypassed by another spelling of it.
#[tokio::test]
async fn hooks_see_the_arguments_that_were_read_from_a_text() {
    struct NoSecrets;
    impl Hook for NoSecrets {
        fn before<'a>(
            &'a self,
            _called: Called<'a>,
            call: &'a mut ToolCall,
        ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
            let is_bad = call.arguments.as_str().contains("secret") || call.text.is_some();
            let answer = if is_bad {
                Err(Failure::new(Kind::NotPermitted, "no"))
            } else {
                Ok(())
            };
            Box::pin(std::future::ready(answer))
        }
    }
    let board = board(process(&issues()));
    let tools = board.toolset_with(View::new().hook(NoSecrets));
    let say = |text: &str| ToolCall::new("fx.create").text(text).reading(Reading::Guided);
    assert_outcome(&tools.call(say("title: secret")).await, Kind::NotPermitted, false);
    assert_eq!(echoed(&tools.call(say("title: x")).await), json!({"title": "x"}));
    board.shutdown().await;
}

#[tokio::test]
async fn without_a_check_everything_is_sent() {
    let (board, tools) = with_policy(&issues(), |policy| policy.call_arguments.check = Check::Off);
    let odd = json!({"titel": 1, "limit": "x"});
    assert_eq!(echoed(&call(&tools, "fx.create", odd.clone()).await), odd);
    board.shutdown().await;
}

/// A line break would end one message and begin another, with an unapproved call in it.
#[tokio::test]
async fn arguments_on_several_lines_are_one_message() {
    let smuggled = r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"other"}}"#;
    let fake = FakeServer::new("fx")
        .tool(Tool::new("create").echoes())
        .tool(Tool::new("other"));
    let (board, tools) = with_policy(&fake, |_| ());
    let reply = write(&tools, &format!("{{\n\"a\":\n{smuggled}\r\n}}")).await;
    let inner: Value = serde_json::from_str(smuggled).expect("JSON");
    assert_eq!(echoed(&reply), json!({"a": inner}));
    board.shutdown().await;
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_told_and_stops_nothing() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "pattern": "(a)\\1"}}});
    let fake = FakeServer::new("fx").tool(Tool::new("create").schema(schema).echoes());
    let (board, tools) = with_policy(&fake, |_| ());
    // A schema is compiled at the first call of its tool, not for a listing.
    assert!(tools.list(PATIENCE).await.warnings.is_empty());
    let reply = call(&tools, "fx.create", json!({"a": "x"})).await;
    assert_eq!(echoed(&reply), json!({"a": "x"}));
    assert_contains(
        &reply.warnings[0],
        &["the arguments were not checked", "schema cannot be used"],
    );
    let warnings = tools.list(PATIENCE).await.warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_contains(
        &warnings[0],
        &[
            "fx: the arguments of tool `create` are not checked",
            "its schema cannot be used",
        ],
    );
    board.shutdown().await;
}

#[tokio::test]
async fn a_structured_answer_that_is_not_as_promised_is_told_or_fails_the_call() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let promised = |name: &str| Tool::new(name).output_schema(schema.clone());
    let fake = FakeServer::new("fx")
        .tool(promised("good").answers_structured(json!({"n": 1})))
        .tool(promised("bad").answers_structured(json!({"n": "hush-hush"})))
        .tool(promised("none").answers_text("x"))
        .tool(promised("fails").fails_with("no"))
        .tool(Tool::new("free").answers_structured(json!({"n": "x"})));
    for (check, bad, warnings) in [
        (OutputCheck::Off, Kind::Ok, 0),
        (OutputCheck::Warn, Kind::Ok, 1),
        (OutputCheck::Error, Kind::ToolError, 0),
    ] {
        let (board, tools) = with_policy(&fake, |policy| policy.output_check = check);
        for (tool, kind, warnings) in [
            ("good", Kind::Ok, 0),
            ("bad", bad, warnings),
            ("none", bad, warnings),
            ("fails", Kind::ToolError, 0),
            ("free", Kind::Ok, 0),
        ] {
            let reply = call(&tools, &format!("fx.{tool}"), json!({})).await;
            assert_outcome(&reply, kind, true);
            assert_eq!(reply.warnings.len(), warnings, "{tool}: {:?}", reply.warnings);
            let said = format!(
                "{:?} {}",
                reply.warnings,
                if kind == Kind::Ok { String::new() } else { reply.text() }
            );
            if tool == "bad" && check != OutputCheck::Off {
                assert_contains(
                    &said,
                    &[
                        "the structured answer of fx.bad does not fit",
                        "`n` must be an integer, and a string was given",
                    ],
                );
                assert!(!said.contains("hush-hush"), "{said}");
            }
        }
        board.shutdown().await;
    }
}
