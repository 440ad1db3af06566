//! `pegboard call` with arguments of all kinds, and the messages about wrong ones.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use super::home::Home;

fn fake() -> FakeServer {
    let schema = json!({"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer", "minimum": 1},
        "flag": {"type": "boolean"},
        "filter": {"type": "object", "properties": {"state": {"enum": ["open", "shut"]}, "n": {"type": "integer"}}},
    }});
    FakeServer::new("fx").tool(Tool::new("issue").schema(schema).echoes())
}

#[test]
fn pairs_become_what_the_tool_declares() {
    let home = Home::new();
    let server = home.server("fx", fake());
    for (pairs, expected) in [
        (&["title=5", "limit=3"][..], r#"{"limit":3,"title":"5"}"#),
        (
            &["title=x", "tags=a,b", "flag=true"],
            r#"{"flag":true,"tags":["a","b"],"title":"x"}"#,
        ),
        (
            &["title=x", "tags=a", "tags=b,c"],
            r#"{"tags":["a","b","c"],"title":"x"}"#,
        ),
        (
            &["title=x", "filter.state=open", "filter.n=1"],
            r#"{"filter":{"n":1,"state":"open"},"title":"x"}"#,
        ),
        (
            &["title=a=b", "filter={\"n\": 2}"],
            r#"{"filter":{"n":2},"title":"a=b"}"#,
        ),
    ] {
        let ran = home.run(&[&["call", "fx.issue", &server], pairs].concat());
        assert_eq!(ran.ends_with(0).out, format!("{expected}\n"));
        assert_eq!(ran.err, "");
    }
}

#[test]
fn a_text_is_read_as_a_model_writes_it() {
    let home = Home::new();
    let server = home.server("fx", fake());
    for (text, expected, warning) in [
        ("{\"title\": \"x\"}", r#"{"title":"x"}"#, ""),
        ("tags: a,b,c, title: 5", r#"{"tags":["a","b","c"],"title":"5"}"#, ""),
        ("title: x\ntags:\n  - a\n  - b", r#"{"tags":["a","b"],"title":"x"}"#, ""),
        (
            "- a plain text",
            r#"{"title":"- a plain text"}"#,
            "warning: the text was taken as the argument `title`\n",
        ),
        (
            "{'title': 'x', 'flag': True,}",
            r#"{"flag":true,"title":"x"}"#,
            "warning: the arguments were mended: single quotes, a literal of Python, a trailing comma\n",
        ),
    ] {
        let ran = home.run(&["call", "fx.issue", "--text", text, &server]);
        assert_eq!(ran.ends_with(0).out, format!("{expected}\n"));
        assert_eq!(ran.err, warning);
    }
    home.run(&["call", "fx.issue", "a=1", "--text", "x", &server])
        .ends_with(2)
        .says("cannot be used with");
}

#[test]
fn json_on_several_lines_is_one_call() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.write("args.json", "{\n  \"title\": \"x\",\r\n  \"limit\": 3\n}\n");
    let ran = home.run(&["call", "fx.issue", "--json", "@args.json", &server]);
    assert_eq!(ran.ends_with(0).out, "{\"limit\":3,\"title\":\"x\"}\n");
}

#[test]
fn wrong_arguments_show_what_the_tool_takes() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let args = [
        "call",
        "fx.issue",
        "titel=x",
        "limit=many",
        "filter.state=ajar",
        &server,
    ];
    insta::assert_snapshot!(home.run(&args).ends_with(2).err, @r#"
    error: fx.issue was not called: the arguments do not fit:
      - `/filter/state` must be one of "open", "shut"
      - `limit` must be an integer, and a string was given
      - `titel` is unknown, did you mean `title`?
      - `title` is missing
    hint: fx.issue takes title: string (required), filter: object, flag: boolean, limit: integer, tags: list of string
    "#);
    let mut shown = home.run(&[&args[..], &["-o", "json"]].concat()).ends_with(2).json();
    shown["outcome"]["latency_ms"] = json!(0.0);
    let text = "fx.issue was not called: the arguments do not fit:\n- `/filter/state` must be one of \"open\", \"shut\"\n\
                - `limit` must be an integer, and a string was given\n- `titel` is unknown, did you mean `title`?\n\
                - `title` is missing";
    let expected = json!({
        "id": shown["id"], "name": "fx.issue", "server": "fx", "tool": "issue", "status": "refused", "is_error": true,
        "text": text, "content": [{"type": "text", "text": text}], "structured": null, "warnings": [], "untrusted": false,
        "outcome": {"kind": "invalid_arguments", "may_have_executed": false, "attempts": 0, "latency_ms": 0.0,
                    "queued_ms": 0.0, "masked": 0, "truncated": false, "original_bytes": 0, "handle": null, "cached": false,
                    "code": "arguments-invalid", "diagnosis": {"code": "arguments-invalid", "step": "permit",
                    "cause": {"kind": "rule"}, "place": {"server": "fx"}}},
        "hint": "fx.issue takes title: string (required), filter: object, flag: boolean, limit: integer, tags: list of string",
    });
    assert_eq!(shown, expected);
    assert_eq!(home.log("fx").count("tools/call"), 0);
}

#[test]
fn an_unknown_tool_shows_what_is_near_or_where_to_look() {
    let home = Home::new();
    let server = home.server("fx", fake());
    insta::assert_snapshot!(home.run(&["call", "fx.isue", "a=1", &server]).ends_with(2).err, @r"
    error: there is no tool `fx.isue`
    hint: did you mean `fx.issue`? `pegboard tools fx` lists its tools
    ");
    insta::assert_snapshot!(home.run(&["call", "zebra", "--text", "x", &server]).ends_with(2).err, @r"
    error: there is no tool `zebra`
    hint: `pegboard tools` lists what there is
    ");
}

#[test]
fn an_argument_that_the_tool_does_not_declare_is_sent_with_a_warning() {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let server = home.server(
        "fx",
        FakeServer::new("fx").tool(Tool::new("echo").schema(schema).echoes()),
    );
    let warning = "the tool declares no argument `citty`; did you mean `city`?";
    let given: [&[&str]; 2] = [&["citty=Oslo"], &["--json", r#"{"citty": "Oslo"}"#]];
    for given in given {
        let ran = home.run(&[&["call", "fx.echo", &server], given].concat());
        ran.ends_with(0).prints("Oslo").says(&format!("warning: {warning}"));
        let ran = home.run(&[&["call", "fx.echo", "-o", "json", &server], given].concat());
        assert_eq!(ran.ends_with(0).json()["warnings"], json!([warning]));
    }
}

#[test]
fn a_misspelt_argument_is_named_where_another_is_missing() {
    let home = Home::new();
    let open = json!({"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}});
    let mut closed = open.clone();
    closed["additionalProperties"] = json!(false);
    let server = home.server(
        "fx",
        FakeServer::new("fx")
            .tool(Tool::new("open").schema(open).echoes())
            .tool(Tool::new("closed").schema(closed).echoes()),
    );
    insta::assert_snapshot!(home.run(&["call", "fx.open", "mesage=hi", &server]).ends_with(2).err, @r"
    error: fx.open was not called: the arguments do not fit: `message` is missing
    hint: fx.open takes message: string (required)
    warning: the tool declares no argument `mesage`; did you mean `message`?
    ");
    insta::assert_snapshot!(home.run(&["call", "fx.closed", "mesage=hi", &server]).ends_with(2).err, @r"
    error: fx.closed was not called: the arguments do not fit:
      - `mesage` is unknown, did you mean `message`?
      - `message` is missing
    hint: fx.closed takes message: string (required)
    ");
    assert_eq!(home.log("fx").count("tools/call"), 0);
}

#[test]
fn keys_with_numbers_build_lists() {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {
        "type": "object", "properties": {"id": {"type": "integer"}}}}}});
    let server = home.server(
        "fx",
        FakeServer::new("fx").tool(Tool::new("echo").schema(schema).echoes()),
    );
    let ran = home.run(&["call", "fx.echo", "rows.0.id=1", "rows.1.id=2", &server]);
    assert_eq!(ran.ends_with(0).out, "{\"rows\":[{\"id\":1},{\"id\":2}]}\n");
    let ran = home.run(&["call", "fx.echo", "rows.1.id=2", &server]);
    ran.ends_with(2).says("leaves out items");
}
