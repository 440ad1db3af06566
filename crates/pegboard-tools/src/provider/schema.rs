//! A JSON Schema as a map of keywords, and how its keywords are read.

use serde_json::{Map, Value};

/// A JSON Schema that is an object.
pub(super) type Schema = Map<String, Value>;

/// Keywords that annotate a schema and do not restrict its values.
const ANNOTATIONS: &[&str] = &[
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

pub(super) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword)
}

/// Keywords that bound sizes and numbers.
pub(super) const BOUNDS: &[&str] = &[
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
];

/// Separates the annotations from the keywords that restrict values.
pub(super) fn split_annotations(schema: Schema) -> (Schema, Schema) {
    schema.into_iter().partition(|(keyword, _)| is_annotation(keyword))
}

/// The properties of an object schema, if it declares some.
pub(super) fn properties(schema: &Schema) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The names of the required properties.
pub(super) fn required_names(schema: &Schema) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// The types of a schema.
pub(super) fn types_of(schema: &Schema) -> Vec<&str> {
    schema.get("type").map(type_names).unwrap_or_default()
}

/// The types in the value of a `type` keyword.
pub(super) fn type_names(kind: &Value) -> Vec<&str> {
    match kind {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The narrowest JSON Schema type of a value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Makes a schema accept null as well.
pub(super) fn allow_null(schema: &mut Schema) {
    let null = Value::from("null");
    match schema.get_mut("type") {
        Some(Value::Array(types)) if !types.contains(&null) => types.push(null.clone()),
        Some(kind @ Value::String(_)) if *kind != null => *kind = Value::Array(vec![kind.take(), null.clone()]),
        _ => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        let is_null = |branch: &Value| branch.get("type") == Some(&null);
        if !branches.iter().any(is_null) {
            branches.push(Value::Object(Schema::from_iter([("type".to_owned(), null)])));
        }
    }
}
