//! An example call of a tool, made from its schema.

use serde_json::{Value, json};

use super::schema_text::SchemaNode;
use crate::output::single_quote;

/// A command line that calls the tool with its required arguments.
pub(super) fn command(tool: &str, schema: SchemaNode<'_>) -> String {
    let arguments = arguments(schema);
    let mut command = format!("pegboard call {}", quote(tool));
    // A key with a separator in it could not be told from its value.
    let is_plain = |key: &String| !key.is_empty() && !key.contains(['=', ':', '.', '@']) && !key.starts_with('-');
    if !arguments.iter().all(|(key, _)| is_plain(key)) {
        let arguments = Value::Object(arguments.into_iter().collect());
        return format!("{command} --json {}", quote(&arguments.to_string()));
    }
    for (key, value) in &arguments {
        let word = match value {
            Value::String(text) if text.starts_with('@') => format!("{key}=@{text}"),
            Value::String(text) => format!("{key}={text}"),
            Value::Array(_) | Value::Object(_) => format!("{key}:={value}"),
            value => format!("{key}={value}"),
        };
        command.push(' ');
        command.push_str(&quote(&word));
    }
    command
}

/// The example that the schema has, or values for the required arguments, which it accepts as far as it can be told.
fn arguments(schema: SchemaNode<'_>) -> Vec<(String, Value)> {
    let examples = schema.get("examples").and_then(|examples| examples.get(0));
    if let Some(Value::Object(example)) = examples {
        return example.clone().into_iter().collect();
    }
    needed_properties(schema)
        .map(|(name, node)| (name.to_owned(), value(name, node)))
        .collect()
}

/// The required properties, and as many more as the schema asks for.
fn needed_properties(schema: SchemaNode<'_>) -> impl Iterator<Item = (&str, SchemaNode<'_>)> {
    let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    // The required ones are the first.
    let properties = schema.properties().into_iter().zip(0..);
    properties
        .filter(move |((_, _, is_required), place)| *is_required || *place < least)
        .map(|((name, node, _), _)| (name, node))
}

fn value(name: &str, node: SchemaNode<'_>) -> Value {
    let given = node.get("examples").and_then(|examples| examples.get(0));
    let listed = node.get("enum").and_then(|values| values.get(0));
    if let Some(value) = given.or(node.get("default")).or(node.get("const")).or(listed) {
        return value.clone();
    }
    if let Some(first) = node
        .alternatives()
        .into_iter()
        .find(|one| one.first_type() != Some("null"))
    {
        return value(name, first);
    }
    value_of(name, node)
}

fn value_of(name: &str, node: SchemaNode<'_>) -> Value {
    match node.first_type() {
        Some("integer" | "number") => number(node),
        Some("boolean") => json!(true),
        Some("array") => {
            let count = node.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 16);
            let item = node.items().map_or_else(|| json!("text"), |items| value(name, items));
            Value::Array((0..count).map(|_| item.clone()).collect())
        }
        Some("object") => {
            let fields = needed_properties(node).map(|(name, node)| (name.to_owned(), value(name, node)));
            Value::Object(fields.collect())
        }
        Some("null") => Value::Null,
        _ => Value::String(text(name, node)),
    }
}

fn number(node: SchemaNode<'_>) -> Value {
    let limit = |key: &str| node.get(key).and_then(Value::as_f64);
    let mut number = limit("minimum")
        .or(limit("exclusiveMinimum").map(|limit| limit.floor() + 1.0))
        .unwrap_or(1.0);
    if let Some(step) = limit("multipleOf").filter(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    if let Some(most) = limit("maximum").filter(|most| number > *most) {
        number = most;
    }
    if let Some(bound) = limit("exclusiveMaximum").filter(|bound| number >= *bound) {
        number = bound.ceil() - 1.0;
    }
    // A whole number is written without a fraction, which an integer requires.
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => json!(number as i64),
        false => json!(number),
    }
}

fn text(name: &str, node: SchemaNode<'_>) -> String {
    let sample = match node.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "ada@example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        Some("ipv4") => "192.0.2.1",
        Some("hostname") => "example.com",
        _ => match name {
            name if name.contains("path") || name.contains("file") => "/tmp/example.txt",
            name if name.contains("url") || name.contains("uri") => "https://example.com/",
            _ => "text",
        },
    };
    let length = |key: &str| {
        node.get(key)
            .and_then(Value::as_u64)
            .and_then(|length| usize::try_from(length).ok())
    };
    let mut sample = sample.to_owned();
    if let Some(least) = length("minLength").filter(|least| *least <= 256) {
        while sample.len() < least {
            sample.push('x');
        }
    }
    if let Some(most) = length("maxLength") {
        sample.truncate(most);
    }
    sample
}

/// A word as a POSIX shell reads it.
fn quote(word: &str) -> String {
    let is_safe =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '=' | ':' | '@' | ',' | '+');
    match !word.is_empty() && word.chars().all(is_safe) {
        true => word.to_owned(),
        false => single_quote(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_a_fitting_value_for_each_required_argument() {
        let schema = json!({"required": ["n", "s", "o", "l", "e"], "properties": {
            "n": {"type": "integer", "exclusiveMinimum": 2, "multipleOf": 5},
            "s": {"type": "string", "minLength": 6},
            "o": {"type": "object", "required": ["u"], "properties": {"u": {"anyOf": [{"type": "null"}, {"const": "it's"}]}, "v": {}}},
            "l": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
            "e": {"enum": ["@me", "b"]},
            "z": {"type": "string"},
        }});
        assert_eq!(
            command("fx.t", SchemaNode::root(&schema)),
            r#"pegboard call fx.t e=@@me 'l:=[true,true]' n=5 'o:={"u":"it'\''s"}' s=textxx"#
        );
        assert_eq!(
            command("fx.t", SchemaNode::root(&json!({"properties": {"a": {}}}))),
            "pegboard call fx.t"
        );
        let least =
            json!({"minProperties": 2, "required": ["b"], "properties": {"a": {}, "b": {"type": "boolean"}, "c": {}}});
        assert_eq!(
            command("fx.t", SchemaNode::root(&least)),
            "pegboard call fx.t b=true a=text"
        );
        let shown = json!({"examples": [{"a": 7}], "required": ["a"], "properties": {"a": {"type": "integer"}}});
        assert_eq!(command("fx.t", SchemaNode::root(&shown)), "pegboard call fx.t a=7");
        let odd = json!({"required": ["a.b"], "properties": {"a.b": {"type": "number", "maximum": -0.5}}});
        assert_eq!(
            command("fx.t", SchemaNode::root(&odd)),
            r#"pegboard call fx.t --json '{"a.b":-0.5}'"#
        );
    }
}
