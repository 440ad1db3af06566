//! Parses arguments as strict JSON, and reports the position of a syntax error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use super::{arguments::Arguments, duplicate_keys::NoDuplicates, error::ArgumentsError};

/// Parses a JSON object. An empty text is an empty object.
pub(super) fn object(text: &str) -> Result<Arguments, ArgumentsError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Arguments::default());
    }
    let raw: Box<RawValue> = serde_json::from_str(text).map_err(|error| ArgumentsError::NotJson {
        line: error.line(),
        column: error.column(),
        problem: problem(&error),
    })?;
    if raw.get().starts_with('{') {
        Ok(Arguments::new(raw))
    } else {
        Err(ArgumentsError::NotAnObject)
    }
}

/// Returns the parser's message without the position, which has its own fields in the error.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Parses the arguments for validation. Fails on a duplicate key: the server might read the value that was not validated.
pub(super) fn value(arguments: &Arguments) -> Result<Value, String> {
    match serde_json::from_str::<UniqueKeys>(arguments.as_raw().get()) {
        Ok(UniqueKeys(value)) => Ok(value),
        Err(error) => Err(problem(&error)),
    }
}

/// Fails on a duplicate key like [`value`], for arguments that are not validated.
pub(super) fn check_keys(arguments: &Arguments) -> Result<(), String> {
    match serde_json::from_str::<NoDuplicates>(arguments.as_raw().get()) {
        Ok(NoDuplicates) => Ok(()),
        Err(error) => Err(problem(&error)),
    }
}

/// A value without duplicate keys in its objects.
pub(super) struct UniqueKeys(pub(super) Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(Self)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueKeys(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, UniqueKeys(value))) = fields.next_entry::<String, UniqueKeys>()? {
            if map.contains_key(&name) {
                let text = format!("`{}` is given twice", super::schema::display_name(&name));
                return Err(A::Error::custom(text));
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_json_object_or_nothing() {
        for (text, expected) in [("", "{}"), ("  {\"a\": 1} ", "{\"a\": 1}"), ("{}", "{}")] {
            assert_eq!(object(text).unwrap().as_raw().get(), expected);
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
            (
                "{\n  \"a\": 1,\n}",
                "the arguments are not JSON: key must be a string (line 3, column 1)",
            ),
            (
                "{\"a\": 1",
                "the arguments are not JSON: EOF while parsing an object (line 1, column 7)",
            ),
            ("a=1", "the arguments are not JSON: expected value (line 1, column 1)"),
        ] {
            assert_eq!(object(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn large_numbers_stay_as_they_were_written() {
        let text = r#"{"n":123456789012345678901234567890}"#;
        assert_eq!(object(text).unwrap().as_raw().get(), text);
    }

    #[test]
    fn a_name_that_stands_twice_is_not_checked_but_refused() {
        let read = |text: &str| value(&object(text).unwrap());
        assert_eq!(read(r#"{"a": {"b": 1, "b": 2}}"#), Err("`b` is given twice".to_owned()));
        let text = r#"{"a": [1, -2, 2.5, "x", null, true, {"b": {}}]}"#;
        assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        assert_eq!(read(&deep), Err("recursion limit exceeded".to_owned()));
    }
}
