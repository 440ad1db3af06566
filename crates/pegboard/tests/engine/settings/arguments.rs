//! How arguments are read and checked, structured results checked, and results cached.

use pegboard::{Kind, ToolCall};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

fn create() -> FakeServer {
    let schema = json!({"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
        "title": {"type": "string"}, "limit": {"type": "integer"},
    }});
    FakeServer::new("fx").tool(Tool::new("create").schema(schema).echoes())
}

#[tokio::test(start_paused = true)]
async fn a_text_is_read_as_the_config_says() {
    for (settings, text, expected) in [
        ("", "title: x", Kind::InvalidArguments),
        ("call_arguments = { read = 'cascade' }", "title: x", Kind::Ok),
        (
            "call_arguments = { read = 'repair' }",
            "title: x",
            Kind::InvalidArguments,
        ),
        ("call_arguments = { read = 'repair' }", "{'title': 'x',}", Kind::Ok),
    ] {
        let stage = Stage::new(settings, &create());
        let reply = stage.tools.call(ToolCall::new("fx.create").text(text)).await;
        assert_eq!(reply.outcome.kind(), expected, "{settings}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_are_checked_as_the_config_says() {
    let [missing, number, unknown] = [json!({}), json!({"title": 5}), json!({"title": "x", "more": 1})];
    for (settings, expected) in [
        ("", [false, true, false]),
        ("call_arguments = 'off'", [true, true, true]),
        ("call_arguments = { check = 'off' }", [true, true, true]),
        ("call_arguments = { check = 'strict' }", [false, false, false]),
        ("call_arguments = { check = 'required' }", [false, true, true]),
    ] {
        let stage = Stage::new(settings, &create());
        for (arguments, is_sent) in [&missing, &number, &unknown].into_iter().zip(expected) {
            let reply = stage.call_with("create", arguments.clone()).await;
            assert_eq!(!reply.is_error(), is_sent, "{settings}: {arguments}: {}", reply.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_structured_result_is_checked_as_the_config_says() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tool = Tool::new("t")
        .output_schema(schema)
        .answers_structured(json!({"n": "x"}));
    for (settings, is_error, warnings) in [
        ("", false, 1),
        ("output_check = 'warn'", false, 1),
        ("output_check = 'off'", false, 0),
        ("output_check = 'error'", true, 0),
    ] {
        let reply = Stage::new(settings, &FakeServer::new("fx").tool(tool.clone()))
            .call("t")
            .await;
        assert_eq!(reply.is_error(), is_error, "{settings}: {}", reply.text());
        assert_eq!(reply.warnings.len(), warnings, "{settings}: {:?}", reply.warnings);
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_cached_for_the_time_of_the_config() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").read_only())
        .tool(Tool::new("other"));
    for (settings, [read, other]) in [
        ("", [false, false]),
        ("cache = '60s'", [false, false]),
        ("trust = true\ncache = '60s'", [true, false]),
        ("trust = true\ncache = '20s'", [false, false]),
        ("tools_cache = { other = '60s' }", [false, true]),
        (
            "trust = true\ncache = '60s'\ntools_cache = { read = 'off' }",
            [false, false],
        ),
    ] {
        let stage = Stage::new(settings, &fake);
        for (tool, is_cached) in [("read", read), ("other", other)] {
            assert!(!stage.call(tool).await.cached, "{settings}: {tool}");
            tokio::time::sleep(secs(30)).await;
            assert_eq!(stage.call(tool).await.cached, is_cached, "{settings}: {tool}");
        }
    }
}
