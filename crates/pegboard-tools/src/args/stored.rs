//! Arguments in stored calls: the JSON object itself.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

use super::{arguments::Arguments, json::UniqueKeys};

/// With `serde_json` the text is written unchanged.
impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_raw().serialize(serializer)
    }
}

/// Fails on a duplicate key at any depth: which of its values a server would read is not defined.
impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(unique_keys(deserializer)?).map_err(D::Error::custom)
    }
}

/// Reads any JSON. Fails on a duplicate key at any depth.
pub(crate) fn unique_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    UniqueKeys::deserialize(deserializer).map(|UniqueKeys(value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_stored_as_an_object() {
        let arguments = Arguments::parse(r#"{"b": [1, 2.5], "a": {"c": null}}"#).unwrap();
        let written = serde_json::to_string(&arguments).unwrap();
        assert_eq!(written, arguments.as_str());
        let read: Arguments = serde_json::from_str(&written).unwrap();
        assert_eq!(read.as_str(), r#"{"a":{"c":null},"b":[1,2.5]}"#);
        for bad in ["3", "[]", "\"text\"", r#"{"a":1,"a":2}"#] {
            assert!(serde_json::from_str::<Arguments>(bad).is_err(), "{bad}");
        }
    }
}
