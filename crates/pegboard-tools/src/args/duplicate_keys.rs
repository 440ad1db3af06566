//! Finds duplicate keys in JSON without building a tree.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::schema::display_name;

/// Up to this many keys of an object are compared one by one. More are hashed, so that the cost stays linear.
const FEW: usize = 16;

/// Whether an object in a JSON text has a key twice, or the text is no JSON.
pub(crate) fn has_duplicate_keys(json: &[u8]) -> bool {
    serde_json::from_slice::<NoDuplicates>(json).is_err()
}

/// JSON in which no object has a key twice, at any depth.
pub(super) struct NoDuplicates;

impl<'de> Deserialize<'de> for NoDuplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NoDuplicatesVisitor)
    }
}

struct NoDuplicatesVisitor;

impl<'de> Visitor<'de> for NoDuplicatesVisitor {
    type Value = NoDuplicates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<NoDuplicates, E> {
        Ok(NoDuplicates)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<NoDuplicates, E> {
        Ok(NoDuplicates)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<NoDuplicates, E> {
        Ok(NoDuplicates)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<NoDuplicates, E> {
        Ok(NoDuplicates)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<NoDuplicates, E> {
        Ok(NoDuplicates)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<NoDuplicates, E> {
        Ok(NoDuplicates)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NoDuplicates, A::Error> {
        while items.next_element::<NoDuplicates>()?.is_some() {}
        Ok(NoDuplicates)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<NoDuplicates, A::Error> {
        let mut seen = Seen::default();
        while let Some(ObjectKey(key)) = fields.next_key()? {
            seen.add(key)
                .map_err(|key| A::Error::custom(format!("`{}` is given twice", display_name(&key))))?;
            fields.next_value::<NoDuplicates>()?;
        }
        Ok(NoDuplicates)
    }
}

/// The keys of one object so far.
#[derive(Default)]
struct Seen<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Seen<'a> {
    /// Adds a key, or returns it if it was there.
    fn add(&mut self, key: Cow<'a, str>) -> Result<(), Cow<'a, str>> {
        if self.few.contains(&key) || (!self.many.is_empty() && self.many.contains(&key)) {
            return Err(key);
        }
        if self.few.len() < FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        Ok(())
    }
}

/// A key, copied only if it has escapes.
struct ObjectKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for ObjectKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = ObjectKey<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<ObjectKey<'de>, E> {
                Ok(ObjectKey(Cow::Borrowed(key)))
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<ObjectKey<'de>, E> {
                Ok(ObjectKey(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let checked = serde_json::from_str::<NoDuplicates>(text);
        checked.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"x":[{"b":{"a":1,"c":[],"a":1}}]}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"":1,"":2}"#,
        ] {
            let problem = check(text).unwrap_err();
            assert!(problem.contains("is given twice"), "{text}: {problem}");
        }
        let text =
            r#"{"a":[1,-2,0.5,"x",null,true,{}],"b":{"a":18446744073709551615,"n":123456789012345678901234567890}}"#;
        assert_eq!(check(text), Ok(()));
    }

    #[test]
    fn objects_with_many_keys_are_checked_too() {
        let object = |keys: &mut dyn Iterator<Item = u32>| {
            let fields: Vec<String> = keys.map(|key| format!("\"k{key}\":0")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert_eq!(check(&object(&mut (0..5000))), Ok(()));
        for again in [0, FEW as u32 - 1, FEW as u32, 4999] {
            let text = object(&mut (0..5000).chain([again]));
            assert!(check(&text).is_err(), "{again}");
        }
    }
}
