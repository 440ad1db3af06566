//! Arguments for a tool, made from its own schema: valid ones, and ones that the schema forbids.

use serde_json::{Map, Value, json};

/// How deep references and objects are followed.
const DEPTH: usize = 8;

/// Arguments that the schema allows, as far as it can be told without solving it.
pub(super) fn valid_arguments(tool: &Value) -> Value {
    let schema = schema(tool);
    match value(schema, schema, DEPTH) {
        object @ Value::Object(_) => object,
        _ => json!({}),
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(tool: &Value) -> &Value {
    tool.get("inputSchema").unwrap_or(&Value::Null)
}

/// A required argument, if the tool has one.
pub(super) fn required_argument(tool: &Value) -> Option<&str> {
    schema(tool).get("required")?.as_array()?.first()?.as_str()
}

/// An argument of a declared type, and a value of another type that no server can convert to it.
pub(super) fn wrong_type(tool: &Value) -> Option<(&str, Value)> {
    let schema = schema(tool);
    let properties = schema.get("properties")?.as_object()?;
    properties.iter().find_map(|(name, property)| {
        let wrong = match follow(property, schema, DEPTH).get("type")?.as_str()? {
            "string" => json!({"not": "a string"}),
            "integer" | "number" => json!("not a number"),
            "boolean" => json!("perhaps"),
            "array" => json!({"not": "a list"}),
            "object" => json!("not an object"),
            _ => return None,
        };
        Some((name.as_str(), wrong))
    })
}

/// An argument that takes any text.
pub(super) fn text_argument(tool: &Value) -> Option<&str> {
    let schema = schema(tool);
    let properties = schema.get("properties")?.as_object()?;
    let is_text = |property: &Value| {
        let property = follow(property, schema, DEPTH);
        property.get("type").and_then(Value::as_str) == Some("string") && property.get("enum").is_none()
    };
    let found = properties.iter().find(|(_, property)| is_text(property));
    found.map(|(name, _)| name.as_str())
}

/// Whether arguments that the schema does not declare are forbidden.
pub(super) fn is_closed(tool: &Value) -> bool {
    schema(tool).get("additionalProperties") == Some(&Value::Bool(false))
}

fn value(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    let schema = follow(schema, root, depth);
    for key in ["const", "default"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    for key in ["enum", "examples"] {
        if let Some(value) = schema.get(key).and_then(|values| values.get(0)) {
            return value.clone();
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(key).and_then(|schemas| schemas.get(0)) {
            return value(first, root, depth - 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("string") => text(schema),
        Some("integer") => json!(number(schema).ceil() as i64),
        Some("number") => json!(number(schema)),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(100);
            let item = schema.get("items").map(|items| value(items, root, depth - 1));
            json!((0..least).map(|_| item.clone().unwrap_or_default()).collect::<Vec<_>>())
        }
        _ => object(schema, root, depth),
    }
}

fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let fields: Map<String, Value> = names
        .map(|name| {
            let property = schema.get("properties").and_then(|all| all.get(name));
            (
                name.to_owned(),
                property.map_or_else(|| json!("a"), |property| value(property, root, depth - 1)),
            )
        })
        .collect();
    Value::Object(fields)
}

fn text(schema: &Value) -> Value {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "ada@example.com",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "a",
    };
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(10_000);
    let missing = usize::try_from(least).unwrap_or(0).saturating_sub(known.len());
    json!(format!("{known}{}", "a".repeat(missing)))
}

fn number(schema: &Value) -> f64 {
    let of = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = of("minimum").or_else(|| of("exclusiveMinimum").map(|least| least + 1.0));
    let most = of("maximum").or_else(|| of("exclusiveMaximum").map(|most| most - 1.0));
    let usual = least.unwrap_or(1.0).max(1.0);
    most.map_or(usual, |most| usual.min(most))
}

/// The schema that a `$ref` within the document leads to.
fn follow<'a>(schema: &'a Value, root: &'a Value, depth: usize) -> &'a Value {
    let mut schema = schema;
    for _ in 0..depth {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            break;
        };
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let Some(target) = target else { break };
        schema = target;
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> Value {
        json!({"name": "t", "inputSchema": {
            "type": "object",
            "required": ["city", "count", "kind", "when"],
            "properties": {
                "city": {"type": "string", "minLength": 3},
                "count": {"type": "integer", "minimum": 2, "maximum": 5},
                "kind": {"$ref": "#/$defs/kind"},
                "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                "unneeded": {"type": "boolean"},
            },
            "$defs": {"kind": {"enum": ["b", "c"]}},
            "additionalProperties": false,
        }})
    }

    #[test]
    fn samples_follow_the_schema() {
        let tool = tool();
        let sample = valid_arguments(&tool);
        assert_eq!(
            sample,
            json!({"city": "aaa", "count": 2, "kind": "b", "when": "2026-01-31"})
        );
        assert!(jsonschema::is_valid(schema(&tool), &sample));
    }

    #[test]
    fn forbidden_arguments_are_forbidden() {
        let tool = tool();
        let (name, wrong) = wrong_type(&tool).unwrap();
        let mut arguments = valid_arguments(&tool);
        arguments[name] = wrong;
        assert!(!jsonschema::is_valid(schema(&tool), &arguments));
        assert_eq!(
            (required_argument(&tool), text_argument(&tool)),
            (Some("city"), Some("city"))
        );
        assert!(is_closed(&tool));
    }
}
