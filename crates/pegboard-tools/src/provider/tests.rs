//! Tests over all dialects: golden conversions and properties.

mod goldens;
mod properties;

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    args::Arguments,
    catalog::{Catalog, HeaderRule, Tool},
};
use pegboard_base::name::ServerName;

/// A tool whose arguments have this schema.
fn tool(schema: Value) -> Tool {
    let item = json!({"name": "t", "description": "Does it."});
    let mut catalog = Catalog::default();
    catalog.read_tools(&ServerName::parse("fx").unwrap(), vec![item], HeaderRule::Ignored);
    let mut tool = (*catalog.tools[0]).clone();
    // The catalogue would reject some of these schemas.
    tool.input_schema = schema.into();
    tool
}

fn define(provider: Provider, schema: Value) -> Definition {
    provider.define(&tool(schema), None).unwrap()
}

/// The arguments that the server receives when the model writes `written`.
fn back(definition: &Definition, written: Value) -> Value {
    let written = Arguments::try_from(written).unwrap();
    let own = definition.reverse.apply(&written).unwrap_or(written);
    serde_json::from_str(own.as_raw().get()).unwrap()
}

/// A schema with one property, `x`.
#[expect(clippy::needless_pass_by_value, reason = "rows read better without references")]
fn with_x(x: Value) -> Value {
    json!({"type": "object", "properties": {"x": x}, "required": ["x"]})
}

#[test]
fn a_provider_is_known_by_its_word() {
    for provider in Provider::ALL {
        assert_eq!(Provider::parse(provider.as_str()), Some(provider));
    }
    assert_eq!(Provider::parse("OpenAI"), None);
}

#[test]
fn one_bad_property_costs_the_tool_and_says_where() {
    let bad = tool(json!({"type": "object", "properties": {"a": {"type": "string"}, "b": 7}}));
    for provider in Provider::ALL {
        match provider.define(&bad, None) {
            Ok(_) => assert_eq!(provider, Provider::Mcp),
            Err(why) => assert_eq!(
                why.to_string(),
                "its input schema cannot be used at `b`: 7 is no schema"
            ),
        }
    }
}

#[test]
fn a_schema_is_cut_to_its_budget_and_keeps_its_arguments() {
    let item = json!({"type": "object", "title": "Item", "description": "d".repeat(300), "properties": {
        "deep": {"type": "object", "properties": {"deeper": {"type": "object", "properties": {"deepest": {"type": "string", "enum": ["a", "b"]}}}}},
        "name": {"type": "string", "description": "n".repeat(300), "pattern": "^x", "default": "x"},
    }});
    let schema = json!({"type": "object", "properties": {"one": item, "two": item, "list": {"type": "array", "items": item}}, "required": ["one"]});
    for provider in Provider::ALL.into_iter().skip(1) {
        let mut before = usize::MAX;
        for budget in [100_000, 3_000, 1_500, 800, 400, 300] {
            let definition = provider.define(&tool(schema.clone()), Some(budget)).unwrap();
            let bytes = definition.schema.to_string().len();
            assert!(bytes <= budget, "{provider} {budget}: {bytes} {:#}", definition.schema);
            assert!(bytes <= before);
            before = bytes;
            let names: Vec<&String> = definition.schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(names, ["list", "one", "two"], "{provider} {budget}");
        }
    }
    let definition = Provider::Anthropic.define(&tool(schema.clone()), Some(800)).unwrap();
    let lost = [
        "titles and examples",
        "long descriptions of nested arguments",
        "defaults and limits of nested arguments",
        "descriptions of nested arguments",
        "what is nested more than three deep",
        "long descriptions",
    ];
    assert_eq!(definition.lost, lost);
    let definition = Provider::Anthropic.define(&tool(schema), Some(10)).unwrap();
    assert!(
        definition.lost.last().unwrap().contains("larger than it should be"),
        "{:?}",
        definition.lost
    );
}

#[test]
fn a_long_description_goes_on_in_the_schema_where_openai_would_refuse_it() {
    let mut long = tool(json!({}));
    long.description = Some("word ".repeat(500));
    for provider in Provider::ALL {
        let definition = provider.define(&long, None).unwrap();
        let description = definition.description.unwrap();
        if matches!(provider, Provider::OpenAi | Provider::OpenAiStrict) {
            assert!(description.chars().count() <= 1024);
            let rest = definition.schema["description"].as_str().unwrap();
            assert_eq!(format!("{description} {rest}"), "word ".repeat(500).trim());
        } else {
            assert_eq!(description.trim(), "word ".repeat(500).trim());
        }
    }
}
