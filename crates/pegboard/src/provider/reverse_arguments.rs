//! The way back: a model's arguments, written for the schema it was shown, as the tool's own schema has them.

use std::collections::BTreeMap;

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::Schema;
use crate::args::Arguments;

/// Turns the arguments that a model wrote for a provider's schema into those that the tool's own schema describes: arguments get their
/// own names, a null that stands for "not given" goes, values written as text become what they mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reverse(Option<Back>);

impl Reverse {
    pub(super) fn new(back: Back) -> Self {
        Self((!back.is_nothing()).then_some(back))
    }

    /// Whether arguments stay as they are.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The arguments in the tool's own form, or nothing when they are so already.
    pub fn apply(&self, arguments: &Arguments) -> Option<Arguments> {
        let turned = self.0.as_ref()?.turn(arguments.as_raw())?;
        // An object stays an object.
        Arguments::parse(turned.get()).ok()
    }
}

/// What is to be done with a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Back {
    /// Texts that stand for other values.
    pub(super) values: Vec<(String, Value)>,
    pub(super) text: Option<JsonText>,
    /// What is to be done with the fields of an object, by the names that the model was shown.
    pub(super) fields: BTreeMap<String, Field>,
    /// What is to be done with the other fields.
    pub(super) rest: Option<Box<Self>>,
    pub(super) items: Option<Box<Self>>,
    /// What is to be done with a value that fits one of several schemas.
    pub(super) branches: Vec<(Probe, Self)>,
}

/// A value that the model writes as a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonText {
    /// An object; any other text stays a text.
    Object,
    /// Any JSON; what is no JSON stays a text.
    Any,
}

/// What is to be done with a field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Field {
    /// Its own name, if the model was shown another.
    pub(super) own_name: Option<String>,
    /// Whether null stands for "not given".
    pub(super) null_is_absent: bool,
    pub(super) back: Back,
}

impl Back {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Puts away what is to be done with a part, if there is something.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        (!self.is_nothing()).then(|| Box::new(self))
    }

    /// What is to be done with a value that fits one of these schemas.
    pub(super) fn of_branches(branches: Vec<(&Schema, Self)>) -> Self {
        let mut back = Self::default();
        if branches.iter().any(|(_, back)| !back.is_nothing()) {
            let probed = branches.into_iter().map(|(schema, back)| (Probe::new(schema), back));
            back.branches = probed.collect();
        }
        back
    }

    /// The value turned back, or nothing when it stays. Numbers that are not touched keep every digit.
    fn turn(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        if !self.branches.is_empty() {
            let value: Value = serde_json::from_str(raw.get()).ok()?;
            let (_, back) = self.branches.iter().find(|(probe, _)| probe.fits(&value))?;
            return back.turn(raw);
        }
        match raw.get().as_bytes().first() {
            Some(b'{') if !self.fields.is_empty() || self.rest.is_some() => self.turn_object(raw),
            Some(b'[') => self.turn_list(raw),
            Some(b'"') => self.turn_text(raw),
            _ => None,
        }
    }

    fn turn_object(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        let given: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let mut own: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
        // A name that was shown counts more than the same name as somebody's own.
        let (shown, others): (Vec<_>, Vec<_>) = given.iter().partition(|(name, _)| self.fields.contains_key(*name));
        for (name, value) in others {
            let turned = self.rest.as_ref().and_then(|rest| rest.turn(value));
            own.insert(name, turned.unwrap_or_else(|| value.clone()));
        }
        for (name, value) in shown {
            let field = &self.fields[name];
            if field.null_is_absent && value.get() == "null" {
                continue;
            }
            let turned = field.back.turn(value).unwrap_or_else(|| value.clone());
            own.insert(field.own_name.as_deref().unwrap_or(name), turned);
        }
        to_raw_value(&own).ok()
    }

    fn turn_list(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        let back = self.items.as_ref()?;
        let items: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let turned = items.into_iter().map(|item| back.turn(&item).unwrap_or(item));
        to_raw_value(&turned.collect::<Vec<_>>()).ok()
    }

    fn turn_text(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        if self.values.is_empty() && self.text.is_none() {
            return None;
        }
        let text: String = serde_json::from_str(raw.get()).ok()?;
        if let Some((_, value)) = self.values.iter().find(|(shown, _)| *shown == text) {
            return to_raw_value(value).ok();
        }
        let is_wanted = match self.text? {
            JsonText::Object => text.trim_start().starts_with('{'),
            JsonText::Any => true,
        };
        // Reading it as a value bounds how deep it is nested.
        let is_json = is_wanted && serde_json::from_str::<Value>(&text).is_ok();
        is_json.then(|| RawValue::from_string(text.trim().to_owned()).ok())?
    }
}

/// Tells whether a value was written for a schema, by what can be seen without going deep.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Probe {
    types: Vec<String>,
    nullable: bool,
    values: Option<Vec<Value>>,
    required: Vec<String>,
    /// The properties, if there may be no others.
    only: Option<Vec<String>>,
    /// Properties that may have a few values only.
    tags: Vec<(String, Vec<Value>)>,
}

impl Probe {
    fn new(schema: &Schema) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let values = |schema: &Schema| {
            let mut values = schema.get("enum").and_then(Value::as_array).cloned()?;
            values.extend(takes_null(schema).then_some(Value::Null));
            Some(values)
        };
        let names = |value: Option<&Value>| -> Vec<String> {
            let names = value.and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let tags = properties.into_iter().flatten();
        Self {
            types: super::merge_schemas::types_of(schema)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            nullable: takes_null(schema),
            values: values(schema),
            required: names(schema.get("required")),
            only: match (schema.get("additionalProperties"), properties) {
                (Some(Value::Bool(false)), Some(properties)) => Some(properties.keys().cloned().collect()),
                _ => None,
            },
            tags: tags
                .filter_map(|(name, schema)| Some((name.clone(), values(schema.as_object()?)?)))
                .collect(),
        }
    }

    fn fits(&self, value: &Value) -> bool {
        let kind = super::canonical::type_of(value);
        let is_of_type = self
            .types
            .iter()
            .any(|own| own == kind || (own == "number" && kind == "integer"));
        if !(self.types.is_empty() || is_of_type || (self.nullable && value.is_null())) {
            return false;
        }
        if self.values.as_ref().is_some_and(|values| !values.contains(value)) {
            return false;
        }
        let Value::Object(fields) = value else { return true };
        let may_be = |name: &String| self.only.as_ref().is_none_or(|only| only.contains(name));
        let tag_fits =
            |(name, values): &(String, Vec<Value>)| fields.get(name).is_none_or(|value| values.contains(value));
        self.required.iter().all(|name| fields.contains_key(name))
            && fields.keys().all(may_be)
            && self.tags.iter().all(tag_fits)
    }
}

/// Whether null is allowed beside the type, as OpenAPI writes it.
fn takes_null(schema: &Schema) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(back: &Back, given: &str, expected: &str) {
        let given = Arguments::parse(given).unwrap();
        let turned = Reverse::new(back.clone()).apply(&given).unwrap_or(given);
        assert_eq!(turned.as_raw().get(), expected);
    }

    fn field(own_name: Option<&str>, null_is_absent: bool, back: Back) -> Field {
        Field {
            own_name: own_name.map(str::to_owned),
            null_is_absent,
            back,
        }
    }

    fn with(fields: Vec<(&str, Field)>) -> Back {
        Back {
            fields: fields
                .into_iter()
                .map(|(name, field)| (name.to_owned(), field))
                .collect(),
            ..Back::default()
        }
    }

    #[test]
    fn names_and_absent_values_come_back_at_every_depth() {
        let inner = with(vec![("b_1", field(Some("b!"), true, Back::default()))]);
        let list = Back {
            items: inner.clone().boxed(),
            ..Back::default()
        };
        let back = with(vec![
            ("a_1", field(Some("a!"), false, inner)),
            ("l", field(None, true, list)),
        ]);
        check(&back, r#"{"a_1":{"b_1":1},"l":null,"x":2}"#, r#"{"a!":{"b!":1},"x":2}"#);
        check(
            &back,
            r#"{"a_1":{"b_1":null},"l":[{"b_1":2},{}]}"#,
            r#"{"a!":{},"l":[{"b!":2},{}]}"#,
        );
        // A model that knows better and uses the tool's own name is understood.
        check(&back, r#"{"a!":7}"#, r#"{"a!":7}"#);
    }

    #[test]
    fn texts_become_what_they_stand_for() {
        let back = with(vec![
            (
                "n",
                field(
                    None,
                    false,
                    Back {
                        values: vec![("1".into(), json!(1))],
                        ..Back::default()
                    },
                ),
            ),
            (
                "o",
                field(
                    None,
                    false,
                    Back {
                        text: Some(JsonText::Object),
                        ..Back::default()
                    },
                ),
            ),
            (
                "v",
                field(
                    None,
                    false,
                    Back {
                        text: Some(JsonText::Any),
                        ..Back::default()
                    },
                ),
            ),
        ]);
        check(
            &back,
            r#"{"n":"1","o":"{\"a\":[1]}","v":"[12345678901234567890123]"}"#,
            r#"{"n":1,"o":{"a":[1]},"v":[12345678901234567890123]}"#,
        );
        check(
            &back,
            r#"{"n":"2","o":"not {","v":"plain"}"#,
            r#"{"n":"2","o":"not {","v":"plain"}"#,
        );
        check(&back, r#"{"o":{"a":1},"v":5}"#, r#"{"o":{"a":1},"v":5}"#);
    }

    #[test]
    fn a_value_is_turned_by_the_schema_that_it_was_written_for() {
        let schema = |tag: &str| {
            let schema = json!({"type": "object", "properties": {"kind": {"enum": [tag]}, "x": {}}, "required": ["kind"],
                                "additionalProperties": false});
            schema.as_object().unwrap().clone()
        };
        let (a, b) = (schema("a"), schema("b"));
        let drop_null = with(vec![("x", field(None, true, Back::default()))]);
        let union = Back::of_branches(vec![(&a, drop_null), (&b, Back::default())]);
        let back = with(vec![("u", field(None, false, union))]);
        check(&back, r#"{"u":{"kind":"a","x":null}}"#, r#"{"u":{"kind":"a"}}"#);
        check(
            &back,
            r#"{"u":{"kind":"b","x":null}}"#,
            r#"{"u":{"kind":"b","x":null}}"#,
        );
        check(&back, r#"{"u":"text"}"#, r#"{"u":"text"}"#);
    }
}
