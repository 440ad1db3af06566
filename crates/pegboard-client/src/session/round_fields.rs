//! The fields of a result that say whether it is final or asks for input, parsed in one pass with the result itself.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// The input requests of a round, by the server's keys. They stay raw, because their text holds the order of a form's fields.
pub(super) type InputRequests = BTreeMap<String, Box<RawValue>>;

/// The fields that any result may have besides its own.
#[derive(Debug, Default)]
pub(super) struct RoundFields {
    pub(super) result_type: Option<String>,
    pub(super) requests: Option<InputRequests>,
    /// Sent back unchanged in the next round.
    pub(super) state: Option<String>,
}

/// A result and its round fields.
pub(super) struct WithRound<T>(pub(super) T, pub(super) RoundFields);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WithRound<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ResultVisitor(PhantomData))
    }
}

struct ResultVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ResultVisitor<T> {
    type Value = WithRound<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut round = RoundFields::default();
        let rest = WithoutRound { map, round: &mut round };
        let result = T::deserialize(MapAccessDeserializer::new(rest))?;
        Ok(WithRound(result, round))
    }
}

/// The fields of an object without those of [`RoundFields`], which it stores on the way.
struct WithoutRound<'a, A> {
    map: A,
    round: &'a mut RoundFields,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutRound<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(FieldKey(key)) = self.map.next_key()? {
            match &*key {
                "resultType" => store(&mut self.map, &mut self.round.result_type, "resultType")?,
                "inputRequests" => store(&mut self.map, &mut self.round.requests, "inputRequests")?,
                "requestState" => store(&mut self.map, &mut self.round.state, "requestState")?,
                _ => return seed.deserialize(key.into_deserializer()).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Stores a field's value. Fails if the object has the field twice.
fn store<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    field: &mut Option<T>,
    name: &'static str,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *field = map.next_value()?;
    Ok(())
}

/// A key, borrowed from the text unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct FieldKey<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Sum {
        #[serde(default)]
        total: u64,
    }

    fn parse(text: &str) -> Result<WithRound<Sum>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn round_fields_are_found_wherever_they_stand_and_however_they_are_escaped() {
        let text =
            r#"{"requestState":"s","total":3,"result\u0054ype":"input_required","inputRequests":{"a":{}},"other":[1]}"#;
        let WithRound(sum, round) = parse(text).unwrap();
        assert_eq!(sum.total, 3);
        assert_eq!(round.result_type.as_deref(), Some("input_required"));
        assert_eq!(round.state.as_deref(), Some("s"));
        assert_eq!(round.requests.unwrap()["a"].get(), "{}");
    }

    #[test]
    fn a_result_without_them_is_final_and_null_counts_as_absent() {
        for text in [r#"{"total":1}"#, r#"{"total":1,"resultType":null,"requestState":null}"#] {
            let WithRound(sum, round) = parse(text).unwrap();
            assert_eq!((sum.total, round.result_type, round.state), (1, None, None), "{text}");
        }
    }

    #[test]
    fn a_field_that_is_doubled_or_has_the_wrong_type_is_an_error() {
        for text in [
            r#"{"resultType":"complete","resultType":"task"}"#,
            r#"{"resultType":5}"#,
            r#"{"inputRequests":[]}"#,
            r#"{"total":1,"total":2}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
