//! [`UniqueNames`]: JSON in which no object has a name twice.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// Read from JSON whose objects, nested ones included, have every name once. Parsers differ in which of two values they take.
#[derive(Debug)]
pub(super) struct UniqueNames;

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some((name, Self)) = map.next_entry::<String, Self>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a name is there twice"));
            }
        }
        Ok(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while let Some(Self) = items.next_element()? {}
        Ok(Self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once_in_each_object() {
        let is_unique = |json: &str| serde_json::from_str::<UniqueNames>(json).is_ok();
        assert!(is_unique(
            r#"{"a":1,"b":{"a":[{"a":-2.5},{"a":null}]},"c":[true,"a","a"]}"#
        ));
        for json in [
            r#"{"sub":"ada","sub":"bob"}"#,
            r#"{"sub":"ada","s\u0075b":"bob"}"#,
            r#"{"a":{"b":1,"b":1}}"#,
            r#"[{"a":[{"b":1,"b":2}]}]"#,
        ] {
            assert!(!is_unique(json), "{json}");
        }
    }
}
