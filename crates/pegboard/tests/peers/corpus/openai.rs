//! OpenAI's documented rules: the function calling guide, the structured outputs guide with its limits, and the errors of its API.

use serde_json::{Map, Value};

use crate::corpus::walk::{each, is_name, is_object_schema, only, types};

#[track_caller]
fn function(fields: &Map<String, Value>) -> &Value {
    let name = fields["name"].as_str().unwrap();
    assert!(is_name(name, 64, "_-", "*"), "{name}");
    let schema = &fields["parameters"];
    is_object_schema(schema, name);
    each(schema, name, &mut |schema, path| {
        let is_list = types(schema).contains(&"array");
        assert!(!is_list || schema.contains_key("items"), "{path}: a list without items");
        assert!(!schema.contains_key("oneOf") && !schema.contains_key("allOf"), "{path}");
    });
    schema
}

fn of_chat(tool: &Value) -> &Map<String, Value> {
    let fields = tool.as_object().unwrap();
    only(fields, &["type", "function"], "a tool");
    assert_eq!(tool["type"], "function");
    let function = tool["function"].as_object().unwrap();
    let description = function.get("description").map(|text| text.as_str().unwrap());
    assert!(description.is_none_or(|text| (1..=1024).contains(&text.chars().count())));
    function
}

pub(crate) fn chat(tools: &[Value], count: usize) {
    assert_eq!(tools.len(), count);
    for tool in tools {
        let fields = of_chat(tool);
        only(fields, &["name", "description", "parameters"], "a function");
        function(fields);
    }
}

pub(crate) fn responses(tools: &[Value], count: usize) {
    assert_eq!(tools.len(), count);
    for tool in tools {
        let fields = tool.as_object().unwrap();
        only(
            fields,
            &["type", "name", "description", "parameters", "strict"],
            "a tool",
        );
        assert_eq!(tool["type"], "function");
        assert_eq!(tool["strict"], false);
        function(fields);
    }
}

pub(crate) fn strict(tools: &[Value], count: usize) {
    assert_eq!(tools.len(), count);
    let mut held = 0;
    for tool in tools {
        let fields = of_chat(tool);
        only(fields, &["name", "description", "parameters", "strict"], "a function");
        let schema = function(fields);
        if fields["strict"] == true {
            held += 1;
            is_strict(schema, fields["name"].as_str().unwrap());
        }
    }
    assert!(held * 2 > count, "only {held} of {count} tools are strict");
}

fn is_strict(schema: &Value, name: &str) {
    let (mut properties, mut values, mut characters) = (0, 0, 0);
    each(schema, name, &mut |schema, path| {
        only(
            schema,
            &[
                "type",
                "properties",
                "required",
                "additionalProperties",
                "items",
                "enum",
                "anyOf",
                "description",
            ],
            path,
        );
        assert!(
            schema.contains_key("type") || schema.contains_key("anyOf"),
            "{path}: of no type"
        );
        if let Some(own) = schema.get("properties").and_then(Value::as_object) {
            let mut required: Vec<&str> = schema["required"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap())
                .collect();
            required.sort_unstable();
            let own: Vec<&str> = own.keys().map(String::as_str).collect();
            assert_eq!(required, own, "{path}: not all properties are required");
            properties += own.len();
            characters += own.iter().map(|name| name.len()).sum::<usize>();
        }
        if types(schema).contains(&"object") {
            assert_eq!(schema["additionalProperties"], false, "{path}: open");
            assert!(schema.contains_key("properties"), "{path}: without properties");
        }
        if let Some(listed) = schema.get("enum").and_then(Value::as_array) {
            values += listed.len();
            characters += listed.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
        }
    });
    assert!(depth(schema) <= 5, "{name}: nested {} deep", depth(schema));
    assert!(
        properties <= 100 && values <= 500 && characters <= 15_000,
        "{name}: too large"
    );
}

/// The nesting depth of objects.
fn depth(schema: &Value) -> usize {
    let properties = schema.get("properties").and_then(Value::as_object);
    let inner = properties.into_iter().flatten().map(|(_, child)| child);
    let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let below = inner
        .chain(branches)
        .chain(schema.get("items"))
        .map(depth)
        .max()
        .unwrap_or(0);
    below + usize::from(properties.is_some())
}
