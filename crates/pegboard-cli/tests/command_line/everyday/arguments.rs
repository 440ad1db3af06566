//! The ways to write arguments.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::home::{Home, Ran};

fn fake() -> FakeServer {
    let schema = json!({"type": "object", "required": ["title"], "properties": {
        "title": {"type": "string"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object"},
    }});
    FakeServer::new("fx").tool(Tool::new("issue").schema(schema).echoes())
}

#[test]
fn the_same_call_may_be_written_in_many_ways() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.write("title.txt", "x\n");
    home.write("filter.json", r#"{"n": [1, 2]}"#);
    for (words, expected) in [
        (&["fx.issue", "x"][..], r#"{"title":"x"}"#),
        (&["fx.issue", "title:y", "limit=1"], r#"{"limit":1,"title":"y"}"#),
        (&["fx", "issue", "title=x", "limit:-3"], r#"{"limit":-3,"title":"x"}"#),
        (&["fx.issue", "title=@title.txt"], r#"{"title":"x\n"}"#),
        (&["fx.issue", "title=@@title.txt"], r#"{"title":"@title.txt"}"#),
        (
            &["fx.issue", "https://a.example/?q=1"],
            r#"{"title":"https://a.example/?q=1"}"#,
        ),
        (
            &["fx.issue", "x", "filter:=@filter.json"],
            r#"{"filter":{"n":[1,2]},"title":"x"}"#,
        ),
        (
            &["fx.issue", "x", "filter.on:=true", "filter.n=7"],
            r#"{"filter":{"n":7,"on":true},"title":"x"}"#,
        ),
        (&["fx.issue(title: 5, limit: 5)"], r#"{"limit":5,"title":"5"}"#),
        (
            &["fx.issue('a, b', tags: [c, \"d\"])"],
            r#"{"tags":["c","d"],"title":"a, b"}"#,
        ),
        (&["fx", "issue(x)", "limit=2"], r#"{"limit":2,"title":"x"}"#),
        (&["fx", "issue", "--json", r#"{"title": "x"}"#], r#"{"title":"x"}"#),
    ] {
        let ran = home.run(&[&["call", &server], words].concat());
        assert_eq!(ran.ends_with(0).out, format!("{expected}\n"), "{words:?}");
    }
}

#[test]
fn an_argument_may_come_from_stdin() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = Ran::fed(home.pegboard(&["call", "fx.issue", "title=@-", &server]), "typed");
    assert_eq!(ran.ends_with(0).out, "{\"title\":\"typed\"}\n");
}

#[test]
fn arguments_that_cannot_be_read_are_not_sent() {
    let home = Home::new();
    let server = home.server("fx", fake());
    for (words, message) in [
        (&["fx.issue", "title=@none.txt"][..], "none.txt cannot be read"),
        (&["fx.issue", "filter:={"], "`filter` is no JSON"),
        (
            &["fx.issue", "a", "b", "c", "d", "e"],
            "5 values without a name are more than the tool takes",
        ),
        (&["fx.issue(title: 'x)"], "a quoted text has no end"),
        (&["fx.issue(title: \"x\", limit: 3"], "the bracket `(` has no end"),
        (&["fx", "issue(title: x"], "the bracket `(` has no end"),
        (&["fx.issue(title: x) more"], "`more` follows the closing bracket `)`"),
        (
            &["fx.issue", "x", "limit:=123456789012345678901234567890"],
            "`limit`: the integer 123456789012345678901234567890 has more than 64 bits",
        ),
        (
            &["fx.issue", "x", "limit=123456789012345678901234567890", "filter:={}"],
            "`--json` sends it as it is",
        ),
        (
            &["fx.issue(x, filter: {n: 123456789012345678901234567890})"],
            "has more than 64 bits and would be rounded",
        ),
        (&["fx.issue", "title=x", "--json", "{}"], "cannot be used with `--json`"),
    ] {
        home.run(&[&["call", &server], words].concat())
            .ends_with(2)
            .says(message);
    }
    assert_eq!(home.log("fx").count("tools/call"), 0);
}

#[test]
fn a_long_expression_is_not_quoted_whole() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["call", &server, &format!("fx.issue({}", "x".repeat(100_000))]);
    ran.ends_with(2).says("the bracket `(` has no end");
    assert!(ran.err.len() < 1000, "{} bytes", ran.err.len());
}

#[test]
fn metadata_is_sent_with_the_request() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.run(&["call", "fx.issue", "x", "--meta", "tenant=a", &server])
        .ends_with(0);
    let log = home.log("fx");
    let request = log
        .requests
        .iter()
        .find(|request| request.method == "tools/call")
        .unwrap();
    assert_eq!(request.params["_meta"]["tenant"], "a");
}
