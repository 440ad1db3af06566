//! Small parts of the document.

use serde_json::{Map, Value, json};

/// A reference to a component.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The content of a response or a request with JSON.
pub(super) fn json_content(schema: &Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

/// An object of the document.
pub(super) type Object = Map<String, Value>;
