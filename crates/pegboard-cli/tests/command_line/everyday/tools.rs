//! `pegboard tools NAME`: one tool in full.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::home::{Home, Ran};

fn fake() -> FakeServer {
    let schema = json!({"type": "object", "required": ["title", "filter"], "properties": {
        "title": {"type": "string", "description": "What it is about, in a few words that everybody understands without a further question.", "maxLength": 80},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "filter": {"type": "object", "required": ["state"], "description": "Which ones", "properties": {
            "state": {"enum": ["open", "shut"]},
            "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}},
    }});
    FakeServer::new("fx")
        .tool(
            Tool::new("issue")
                .description("Finds issues.\n\nThe newest first.")
                .schema(schema)
                .echoes(),
        )
        .tool(Tool::new("issue_count").answers_text("5"))
}

#[test]
fn a_whole_name_explains_the_tool() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["tools", "fx.issue", &server]);
    insta::assert_snapshot!(ran.ends_with(0).out);
    home.run(&["tools", "iss", &server])
        .ends_with(0)
        .prints("fx.issue_count");
}

/// The example in the explanation is a command that works.
#[test]
fn the_example_is_a_call_that_the_tool_accepts() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let demo = [
        "demo.calculate",
        "demo.draw",
        "demo.echo",
        "demo.now",
        "demo.search_text",
    ];
    for tool in ["fx.issue", "fx.issue_count"].into_iter().chain(demo) {
        let server = if tool.starts_with("fx") {
            server.as_str()
        } else {
            "--no-daemon"
        };
        let explained = home.run(&["tools", tool, server]).ends_with(0).out.clone();
        let example = explained
            .lines()
            .last()
            .unwrap()
            .trim()
            .strip_prefix("pegboard ")
            .unwrap();
        let program = home.pegboard(&[]);
        let line = format!("{} {example} '{server}'", program.get_program().display());
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &line])
            .env_clear()
            .env("CI", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path("."));
        Ran::of(shell).ends_with(0);
    }
}

#[test]
fn only_the_server_of_the_tool_is_started() {
    let home = Home::new();
    let (fx, other) = (home.server("fx", fake()), home.server("other", fake()));
    home.run(&["tools", "fx.issue", &fx, &other])
        .ends_with(0)
        .prints("Finds issues.");
    assert!(home.log("other").spawned.is_empty());
}

#[test]
fn signatures_and_schemas_are_shown_for_lists() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.run(&["tools", "--signatures", &server])
        .ends_with(0)
        .prints("  fx.issue(filter: object, title: string, limit?: integer)\n");
    home.run(&["tools", "fx.issue", "--schema", &server])
        .ends_with(0)
        .prints("    input {\n")
        .prints("\"maxLength\": 80");
}
