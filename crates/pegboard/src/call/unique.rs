//! Reads JSON in which no key may be there twice, at any depth.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The object that a text is, or what is wrong with it.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Unique(Value::Object(map))) => Ok(map),
        Ok(_) => Err("the arguments are no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A value without doubled keys. The reader of JSON bounds its depth.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
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
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Unique(value))) = entries.next_entry::<String, Unique>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key `{}` is there twice",
                    key.escape_debug()
                )));
            }
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_found_at_any_depth() {
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": [{"b": null, "c": {"d": 1, "d": 1}}]}"#,
            r#"{"a": 1, "\u0061": 2}"#,
        ] {
            assert!(object(text).unwrap_err().contains("is there twice"), "{text}");
        }
        let text = r#"{"a":[1,-2,0.5,"x",null,true,{}],"b":{"a":18446744073709551615}}"#;
        assert_eq!(Value::Object(object(text).unwrap()).to_string(), text);
        assert!(object("[]").is_err());
    }
}
