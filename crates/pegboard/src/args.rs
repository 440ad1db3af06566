//! A call's arguments: one JSON object, kept as the text it will be sent as.

use serde_json::{Map, Value, value::RawValue};

/// The arguments of a call: a JSON object, kept as text.
#[derive(Debug, Clone)]
pub struct Arguments(Box<RawValue>);

impl Arguments {
    /// Reads a JSON object. An empty text is an empty object.
    pub fn parse(text: &str) -> Result<Self, ArgumentsError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let raw: Box<RawValue> = serde_json::from_str(text).map_err(|error| ArgumentsError::NotJson {
            line: error.line(),
            column: error.column(),
            problem: problem(&error),
        })?;
        if raw.get().starts_with('{') {
            Ok(Self(raw))
        } else {
            Err(ArgumentsError::NotAnObject)
        }
    }

    /// Reads `key=value` pairs as a person types them. A value that is JSON is taken as JSON, unless the schema says that the argument is
    /// a text; anything else is a text.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        schema: &Value,
    ) -> Result<Self, ArgumentsError> {
        let mut arguments = Map::new();
        for (key, value) in pairs {
            let wanted = schema
                .get("properties")
                .and_then(|properties| properties.get(key))
                .and_then(|p| p.get("type"));
            let read = match wanted.and_then(Value::as_str) {
                Some("string") => Value::String(value.to_owned()),
                _ => serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned())),
            };
            if arguments.insert(key.to_owned(), read).is_some() {
                return Err(ArgumentsError::Twice(key.to_owned()));
            }
        }
        Ok(arguments.into())
    }

    /// The object as the text that is sent.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

/// The problem without the position, which is told apart.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Map::new().into()
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(arguments: Map<String, Value>) -> Self {
        let text = Value::Object(arguments).to_string();
        // What serde_json wrote, it can read.
        Self(RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl TryFrom<Value> for Arguments {
    type Error = ArgumentsError;

    fn try_from(value: Value) -> Result<Self, ArgumentsError> {
        match value {
            Value::Object(arguments) => Ok(arguments.into()),
            Value::Null => Ok(Self::default()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(ArgumentsError::NotAnObject),
        }
    }
}

/// Why a text cannot be the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// It is not JSON.
    #[error("the arguments are not JSON: {problem} (line {line}, column {column})")]
    NotJson {
        /// Where, counted from one.
        line: usize,
        /// Where in that line.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// It is JSON, but no object.
    #[error("the arguments must be a JSON object, such as {{\"key\": \"value\"}}")]
    NotAnObject,
    /// An argument was given twice.
    #[error("the argument `{0}` is given twice")]
    Twice(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_a_json_object_or_nothing() {
        for (text, expected) in [("", "{}"), ("  {\"a\": 1} ", "{\"a\": 1}"), ("{}", "{}")] {
            assert_eq!(Arguments::parse(text).unwrap().as_raw().get(), expected);
        }
        for (text, expected) in [
            (
                "[1]",
                "the arguments must be a JSON object, such as {\"key\": \"value\"}",
            ),
            (
                "{\"a\": }",
                "the arguments are not JSON: expected value (line 1, column 7)",
            ),
            ("a=1", "the arguments are not JSON: expected value (line 1, column 1)"),
        ] {
            assert_eq!(Arguments::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn large_numbers_stay_as_they_were_written() {
        let text = r#"{"n":123456789012345678901234567890}"#;
        assert_eq!(Arguments::parse(text).unwrap().as_raw().get(), text);
    }

    #[test]
    fn typed_pairs_become_json_where_the_schema_allows() {
        let schema = json!({"properties": {"zip": {"type": "string"}, "n": {"type": "integer"}}});
        let pairs = [
            ("zip", "01234"),
            ("n", "5"),
            ("flag", "true"),
            ("text", "a b"),
            ("list", "[1,2]"),
            ("empty", ""),
        ];
        let arguments = Arguments::from_pairs(pairs, &schema).unwrap();
        let expected = r#"{"empty":"","flag":true,"list":[1,2],"n":5,"text":"a b","zip":"01234"}"#;
        assert_eq!(arguments.as_raw().get(), expected);
        let twice = Arguments::from_pairs([("a", "1"), ("a", "2")], &schema).unwrap_err();
        assert_eq!(twice, ArgumentsError::Twice("a".into()));
    }
}
