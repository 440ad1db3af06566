//! The params of a server's request, with the order of a form's fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::form::MAX_FIELDS;

/// The limit on the length of a request's name.
const MAX_NAME: usize = 128;

/// The params of a request, and the order of the fields in its form. A JSON tree sorts its keys, but users should see the fields in the
/// server's order.
#[derive(Debug, Default)]
pub(in crate::session) struct RequestParams {
    pub(super) params: Value,
    pub(super) order: Vec<String>,
    /// The server's name for the request.
    pub(super) name: Option<String>,
}

impl RequestParams {
    /// Parses the params of a request. Malformed JSON becomes null.
    pub(in crate::session) fn parse(params: Option<&RawValue>) -> Self {
        let Some(text) = params.map(RawValue::get) else {
            return Self::default();
        };
        Self {
            params: serde_json::from_str(text).unwrap_or_default(),
            order: serde_json::from_str(text)
                .map(|Ordered { schema }| schema.properties.0)
                .unwrap_or_default(),
            name: None,
        }
    }

    /// Sets the server's name for the request. One that is too long to be a name is ignored.
    pub(in crate::session) fn with_name(mut self, name: Option<String>) -> Self {
        self.name = name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
        self
    }
}

impl From<Value> for RequestParams {
    fn from(params: Value) -> Self {
        Self {
            params,
            order: Vec::new(),
            name: None,
        }
    }
}

#[derive(Deserialize)]
struct Ordered {
    #[serde(rename = "requestedSchema")]
    schema: OrderedSchema,
}

#[derive(Deserialize)]
struct OrderedSchema {
    properties: Keys,
}

/// The keys of an object in the order of the text, at most [`MAX_FIELDS`] of them.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysVisitor;

        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    if keys.len() < MAX_FIELDS {
                        keys.push(key);
                    }
                }
                Ok(Keys(keys))
            }
        }

        deserializer.deserialize_map(KeysVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str) -> Vec<String> {
        RequestParams::parse(Some(&RawValue::from_string(text.to_owned()).unwrap())).order
    }

    #[test]
    fn the_fields_keep_the_order_of_the_server() {
        let text =
            r#"{"requestedSchema": {"type": "object", "properties": {"user": {"a": 1}, "password": {}, "b": {}}}}"#;
        assert_eq!(order(text), ["user", "password", "b"]);
        for text in ["null", "{}", r#"{"requestedSchema": {"properties": [1]}}"#] {
            assert_eq!(order(text), Vec::<String>::new(), "{text}");
        }
        let many: Vec<String> = (0..5000).map(|number| format!("\"{number}\":{{}}")).collect();
        let many = format!(r#"{{"requestedSchema": {{"properties": {{{}}}}}}}"#, many.join(","));
        assert_eq!(order(&many).len(), MAX_FIELDS);
    }
}
