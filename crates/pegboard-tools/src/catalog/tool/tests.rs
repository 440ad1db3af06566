//! Tools parsed from text and from a tree, and what makes them invalid.

use serde_json::{Value, json};

use super::{Tool, fast_parse::ToolParser};
use crate::catalog::{HeaderRule, Item, ListWarning, sanitize::MAX_DESCRIPTION};
use pegboard_base::name::ServerName;

/// Both parsers must return the same tool.
fn parse(item: Value) -> Result<Tool, String> {
    let (tool, warnings) = parse_warned(item);
    assert!(warnings.is_empty(), "{warnings:?}");
    tool
}

fn parse_warned(item: Value) -> (Result<Tool, String>, Vec<ListWarning>) {
    let server = ServerName::parse("fx").unwrap();
    let parse = |item: Item| {
        let mut parser = ToolParser::new(&server, HeaderRule::Enforced);
        (parser.parse(item), parser.warnings)
    };
    let from_text = parse(Item::Text(item.to_string().into()));
    let from_tree = parse(item.into());
    assert_eq!(from_text, from_tree);
    from_tree
}

#[test]
fn a_missing_input_schema_takes_any_object() {
    for item in [
        json!({"name": "t"}),
        json!({"name": "t", "inputSchema": null}),
        json!({"name": "t", "inputSchema": {}}),
    ] {
        assert_eq!(parse(item).unwrap().input_schema.value(), json!({"type": "object"}));
    }
}

#[test]
fn a_tool_is_for_the_model_unless_its_visibility_leaves_the_model_out() {
    for (meta, expected) in [
        (json!(null), true),
        (json!({"ui": {}}), true),
        (json!({"ui": {"visibility": ["model", "app"]}}), true),
        (json!({"ui": {"visibility": ["app"]}}), false),
        (json!({"ui": {"visibility": []}}), false),
        (json!({"ui": {"visibility": "app"}}), false),
        (json!({"ui": {"visibility": 7}}), true),
    ] {
        let tool = parse(json!({"name": "t", "_meta": meta})).unwrap();
        assert_eq!(tool.for_model, expected, "{meta}");
    }
}

#[test]
fn texts_of_a_tool_are_sanitized_and_truncated() {
    let long = "é".repeat(MAX_DESCRIPTION);
    let tool = parse(json!({"name": "t", "title": "T\u{200b}itle", "description": long})).unwrap();
    assert_eq!(tool.title.unwrap(), "Title");
    let description = tool.description.unwrap();
    assert!(description.len() <= MAX_DESCRIPTION && description.ends_with('…'));
}

#[test]
fn a_tool_may_say_how_large_its_results_are() {
    let tool = parse(json!({"name": "t", "_meta": {"anthropic/maxResultSizeChars": 100_000}})).unwrap();
    assert_eq!(tool.max_result, Some(100_000));
    assert_eq!(
        parse(json!({"name": "t", "_meta": {"anthropic/maxResultSizeChars": -1}}))
            .unwrap()
            .max_result,
        None
    );
}

#[test]
fn required_names_are_listed_in_one_order_whatever_the_server_does() {
    let schema = json!({"type": "object", "required": ["b", "a"], "properties": {
        "a": {"type": "object", "required": ["z", "y"]}, "b": {}, "required": {"default": ["q", "p"]},
    }});
    let parsed = parse(json!({"name": "t", "inputSchema": schema}))
        .unwrap()
        .input_schema
        .value();
    assert_eq!(parsed["required"], json!(["a", "b"]));
    assert_eq!(parsed["properties"]["a"]["required"], json!(["y", "z"]));
    assert_eq!(parsed["properties"]["required"]["default"], json!(["q", "p"]));
}

#[test]
fn a_broken_input_schema_says_what_is_wrong() {
    let check = |schema: Value, expected: &str| {
        let problem = parse(json!({"name": "t", "inputSchema": schema})).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    };
    check(json!(7), "a number, not an object");
    check(json!({"type": "string"}), "arguments are always an object");
    check(json!({"type": "object", "properties": []}), "a list, not an object");
    let mut deep = json!({});
    for _ in 0..40 {
        deep = json!({ "items": deep });
    }
    check(json!({"type": "object", "properties": {"x": deep}}), "deeper than 32");
    check(
        json!({"type": "object", "description": "x".repeat(70_000)}),
        "65536 are allowed",
    );
}

#[test]
fn an_output_schema_beyond_the_bounds_costs_only_itself() {
    let check = |schema: Value, why: &str| {
        let item = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
        let (tool, warnings) = parse_warned(item);
        let tool = tool.unwrap();
        assert_eq!(tool.output_schema, None);
        assert_eq!(tool.input_schema.value(), json!({"type": "object"}));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0]
                .message
                .starts_with("the outputSchema of tool `t` was left out: ")
                && warnings[0].message.contains(why),
            "{warnings:?}"
        );
    };
    check(
        json!({"type": "object", "description": "x".repeat(70_000)}),
        "65536 are allowed",
    );
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "items": inner }));
    check(deep, "deeper than 32");
    let large = json!({"type": "object", "description": "x".repeat(60_000)});
    let tool = parse(json!({"name": "t", "outputSchema": large})).unwrap();
    assert_eq!(tool.output_schema.unwrap().value(), large);
}

#[test]
fn header_marks_are_found_on_nested_properties() {
    let tool = parse(json!({"name": "t", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "job": {"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Job"}}},
        "other": {"type": "object", "default": {"x-mcp-header": "data, not a mark"}},
    }}}))
    .unwrap();
    assert_eq!(
        tool.mirrored,
        [
            (vec!["job".to_owned(), "id".to_owned()], "Job".to_owned()),
            (vec!["region".to_owned()], "Region".to_owned())
        ]
    );
}

#[test]
fn a_header_mark_may_stand_on_a_property_that_is_named_like_a_keyword() {
    let schema = json!({"type": "object", "properties": {"default": {"type": "string", "x-mcp-header": "Default"}}});
    let tool = parse(json!({"name": "t", "inputSchema": schema})).unwrap();
    assert_eq!(tool.mirrored, [(vec!["default".to_owned()], "Default".to_owned())]);
}

#[test]
fn a_wrong_header_mark_costs_the_tool() {
    let check = |properties: Value, expected: &str| {
        let schema = json!({"type": "object", "properties": properties});
        let problem = parse(json!({"name": "t", "inputSchema": schema})).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    };
    check(
        json!({"a": {"type": "string", "x-mcp-header": ""}}),
        "not a header name",
    );
    check(
        json!({"a": {"type": "string", "x-mcp-header": "a b"}}),
        "not a header name",
    );
    check(json!({"a": {"type": "string", "x-mcp-header": 7}}), "not a header name");
    check(
        json!({"a": {"type": "array", "x-mcp-header": "A"}}),
        "whose type is array",
    );
    check(
        json!({"a": {"type": "number", "x-mcp-header": "A"}}),
        "whose type is number",
    );
    check(
        json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
        "two arguments",
    );
    check(
        json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
        "no argument can be read",
    );
}
