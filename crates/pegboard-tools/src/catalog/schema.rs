//! JSON Schemas as compact text, because a board may hold ten thousand of them and reads only a few.

pub(super) mod normalize;

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::OnceLock,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Keywords whose value maps names to schemas. The names may be those of other keywords.
pub(super) const SCHEMA_MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// A JSON Schema, stored as text without whitespace and with sorted keys. Two schemas that differ only in order are equal.
pub struct Schema {
    text: Box<str>,
    /// The parsed tree, for schemas that every call needs.
    tree: OnceLock<Box<Value>>,
}

impl Schema {
    /// Parses the schema, for one-time use.
    pub fn value(&self) -> Value {
        match self.tree.get() {
            Some(tree) => (**tree).clone(),
            None => serde_json::from_str(&self.text).unwrap_or_default(),
        }
    }

    /// Returns the parsed schema and caches it, for repeated use.
    pub fn tree(&self) -> &Value {
        self.tree
            .get_or_init(|| Box::new(serde_json::from_str(&self.text).unwrap_or_default()))
    }

    /// The schema as JSON text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn from_text(text: String) -> Self {
        Self {
            text: text.into_boxed_str(),
            tree: OnceLock::new(),
        }
    }
}

impl Clone for Schema {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            tree: OnceLock::new(),
        }
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Schema {}

impl Hash for Schema {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl From<Value> for Schema {
    fn from(mut schema: Value) -> Self {
        sort_required(&mut schema);
        Self::from_text(schema.to_string())
    }
}

/// Sorts the names of required properties, as the keys of objects are already, so that a server that lists them in another order after a
/// restart does not change the definition that a model sees. The JSON reader has limited the depth.
fn sort_required(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(names)) = fields.get_mut("required")
                && names.iter().all(Value::is_string)
            {
                names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
            fields.values_mut().for_each(sort_required);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_required),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Value::deserialize(deserializer)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn order_makes_no_difference() {
        let one =
            json!({"type": "object", "required": ["b", "a"], "properties": {"b": {}, "a": {"required": ["z", "y"]}}});
        let schema = Schema::from(one);
        assert_eq!(
            schema.as_str(),
            r#"{"properties":{"a":{"required":["y","z"]},"b":{}},"required":["a","b"],"type":"object"}"#
        );
        let back: Schema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
        assert_eq!((&back, back.value()), (&schema, schema.value()));
    }
}
