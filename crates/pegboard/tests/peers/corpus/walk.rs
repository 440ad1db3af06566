//! Visits every subschema of a schema.

use serde_json::{Map, Value};

/// Visits a schema and all its subschemas, each with a readable path.
pub(crate) fn each(schema: &Value, path: &str, visit: &mut dyn FnMut(&Map<String, Value>, &str)) {
    let Value::Object(fields) = schema else {
        panic!("{path}: {schema} is no schema");
    };
    visit(fields, path);
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(named)) => {
                for (name, child) in named {
                    each(child, &format!("{path}.{name}"), visit);
                }
            }
            ("items", child) => each(child, &format!("{path}[]"), visit),
            ("additionalProperties", child @ Value::Object(_)) => each(child, &format!("{path}.*"), visit),
            ("anyOf" | "prefixItems", Value::Array(children)) => {
                for child in children {
                    each(child, &format!("{path}|"), visit);
                }
            }
            _ => {}
        }
    }
}

/// Whether a text has letters, digits and `signs` only, starts with a letter or one of `first` (or with anything, if that is `*`), and is
/// not longer than `longest`.
pub(crate) fn is_name(text: &str, longest: usize, signs: &str, first: &str) -> bool {
    let starts_well = |c: char| first == "*" || c.is_ascii_alphabetic() || first.contains(c);
    (1..=longest).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
        && text.starts_with(starts_well)
}

/// The types that a schema names.
pub(crate) fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        _ => Vec::new(),
    }
}

/// Asserts that an object has only these keys.
#[track_caller]
pub(crate) fn only(fields: &Map<String, Value>, allowed: &[&str], path: &str) {
    for key in fields.keys() {
        assert!(allowed.contains(&key.as_str()), "{path}: `{key}` is not taken");
    }
}

/// Asserts that a schema is JSON Schema 2020-12, has no references, and describes an object.
#[track_caller]
pub(crate) fn is_object_schema(schema: &Value, path: &str) {
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        panic!("{path}: {error}");
    }
    assert_eq!(schema["type"], "object", "{path}");
    assert!(schema["properties"].is_object(), "{path}");
    for keyword in ["oneOf", "anyOf", "allOf", "enum", "not", "const"] {
        assert!(schema.get(keyword).is_none(), "{path}: `{keyword}` at the top");
    }
    each(schema, path, &mut |schema, path| {
        for key in schema.keys() {
            let is_reference = key.starts_with('$') || key == "definitions";
            assert!(!is_reference, "{path}: `{key}`");
        }
    });
}
