//! The documented rules of MCP, Anthropic, Google and Amazon, and the errors of their APIs.

use serde_json::{Map, Value};

use crate::corpus::walk::{each, is_name, is_object_schema, only, types};

pub(crate) fn mcp(tools: &[Value], count: usize) {
    assert_eq!(tools.len(), count);
    for tool in tools {
        let fields = tool.as_object().unwrap();
        only(
            fields,
            &[
                "name",
                "title",
                "description",
                "inputSchema",
                "outputSchema",
                "annotations",
            ],
            "a tool",
        );
        let name = tool["name"].as_str().unwrap();
        assert!(is_name(name, 128, "_-.", "*"), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
    }
}

/// Checks the names of all arguments at every depth.
fn parameters(schema: &Value, path: &str, check: &dyn Fn(&str) -> bool) {
    each(schema, path, &mut |schema, path| {
        for name in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            assert!(check(name), "{path}: `{name}`");
        }
    });
}

pub(crate) fn anthropic(tools: &[Value], count: usize) {
    assert_eq!(tools.len(), count);
    for tool in tools {
        only(
            tool.as_object().unwrap(),
            &["name", "description", "input_schema"],
            "a tool",
        );
        let name = tool["name"].as_str().unwrap();
        assert!(is_name(name, 128, "_-", "*"), "{name}");
        is_object_schema(&tool["input_schema"], name);
        parameters(&tool["input_schema"], name, &|parameter| {
            is_name(parameter, 64, "_-.", "*")
        });
    }
}

pub(crate) fn bedrock(tools: &[Value], count: usize) {
    assert_eq!(tools.len(), count);
    for tool in tools {
        only(tool.as_object().unwrap(), &["toolSpec"], "a tool");
        let fields = tool["toolSpec"].as_object().unwrap();
        only(fields, &["name", "description", "inputSchema"], "a tool");
        let name = fields["name"].as_str().unwrap();
        assert!(is_name(name, 64, "_-", "*"), "{name}");
        assert!(
            fields
                .get("description")
                .is_none_or(|text| !text.as_str().unwrap().is_empty()),
            "{name}"
        );
        only(fields["inputSchema"].as_object().unwrap(), &["json"], name);
        let schema = &fields["inputSchema"]["json"];
        is_object_schema(schema, name);
        // Amazon's own models accept no other keys at the top level.
        only(schema.as_object().unwrap(), &["type", "properties", "required"], name);
        parameters(schema, name, &|parameter| is_name(parameter, 64, "_-.", "*"));
    }
}

fn declarations(tools: &[Value], count: usize) -> impl Iterator<Item = &Map<String, Value>> {
    assert_eq!(tools.len(), 1);
    only(tools[0].as_object().unwrap(), &["functionDeclarations"], "the tool");
    let declarations = tools[0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(declarations.len(), count);
    declarations.iter().map(|declaration| {
        let name = declaration["name"].as_str().unwrap();
        assert!(is_name(name, 64, "_-.", "_"), "{name}");
        declaration.as_object().unwrap()
    })
}

fn is_parameter(name: &str) -> bool {
    is_name(name, 64, "_", "_")
}

pub(crate) fn gemini_json(tools: &[Value], count: usize) {
    for declaration in declarations(tools, count) {
        only(
            declaration,
            &["name", "description", "parametersJsonSchema"],
            "a declaration",
        );
        let (schema, name) = (
            &declaration["parametersJsonSchema"],
            declaration["name"].as_str().unwrap(),
        );
        is_object_schema(schema, name);
        parameters(schema, name, &is_parameter);
        each(schema, name, &mut |schema, path| {
            only(
                schema,
                &[
                    "type",
                    "title",
                    "description",
                    "properties",
                    "required",
                    "additionalProperties",
                    "enum",
                    "format",
                    "minimum",
                    "maximum",
                    "items",
                    "prefixItems",
                    "minItems",
                    "maxItems",
                    "anyOf",
                ],
                path,
            );
        });
    }
}

pub(crate) fn gemini(tools: &[Value], count: usize) {
    for declaration in declarations(tools, count) {
        only(declaration, &["name", "description", "parameters"], "a declaration");
        let name = declaration["name"].as_str().unwrap();
        if let Some(schema) = declaration.get("parameters") {
            assert_eq!(schema["type"], "object", "{name}");
            parameters(schema, name, &is_parameter);
            each(schema, name, &mut is_openapi);
        }
    }
}

fn is_openapi(schema: &Map<String, Value>, path: &str) {
    if schema.contains_key("anyOf") {
        only(schema, &["anyOf"], path);
        assert!(schema["anyOf"].as_array().unwrap().len() > 1, "{path}");
        return;
    }
    only(
        schema,
        &[
            "type",
            "format",
            "title",
            "description",
            "nullable",
            "enum",
            "items",
            "minItems",
            "maxItems",
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "minLength",
            "maxLength",
            "pattern",
            "minimum",
            "maximum",
        ],
        path,
    );
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{path}: of no type"));
    assert!(
        ["string", "number", "integer", "boolean", "array", "object"].contains(&kind),
        "{path}: {kind}"
    );
    assert_eq!(types(schema).len(), 1, "{path}");
    if let Some(nullable) = schema.get("nullable") {
        assert!(nullable.is_boolean(), "{path}");
    }
    if let Some(values) = schema.get("enum") {
        assert_eq!(kind, "string", "{path}: an enum of others than texts");
        let values = values.as_array().unwrap();
        assert!(
            !values.is_empty()
                && values
                    .iter()
                    .all(|value| value.as_str().is_some_and(|text| !text.is_empty())),
            "{path}"
        );
    }
    if let Some(format) = schema.get("format") {
        let taken: &[&str] = match kind {
            "string" => &["enum", "date-time"],
            "integer" => &["int32", "int64"],
            _ => &["float", "double"],
        };
        assert!(taken.contains(&format.as_str().unwrap()), "{path}: {format}");
    }
    assert_eq!(kind == "array", schema.contains_key("items"), "{path}");
    let properties = schema.get("properties").and_then(Value::as_object);
    assert_eq!(
        kind == "object",
        properties.is_some_and(|properties| !properties.is_empty()),
        "{path}"
    );
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let is_there = properties.is_some_and(|properties| properties.contains_key(name.as_str().unwrap()));
        assert!(is_there, "{path}: {name} is required and not described");
    }
}
