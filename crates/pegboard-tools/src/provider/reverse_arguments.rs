//! Converts a model's arguments, written for a provider's schema, back to the tool's own schema.

use std::collections::BTreeMap;

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::schema::{Schema, properties, required_names, type_of, types_of};
use crate::args::Arguments;

/// Converts arguments that a model wrote for a provider's schema back to the tool's own schema: it restores property names, drops each null
/// that stands for an absent value, and parses values that were written as text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reverse(Option<ReverseRule>);

impl Reverse {
    pub(super) fn new(reverse: ReverseRule) -> Self {
        Self((!reverse.is_identity()).then_some(reverse))
    }

    /// Whether arguments need no conversion.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Converts the arguments back. Returns `None` if they need no change.
    pub fn apply(&self, arguments: &Arguments) -> Option<Arguments> {
        let reversed = self.0.as_ref()?.apply(arguments.as_raw())?;
        // Reversing an object yields an object.
        Arguments::parse(reversed.get()).ok()
    }
}

/// How one value is converted back.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ReverseRule {
    /// Strings that stand for other values.
    pub(super) values: Vec<(String, Value)>,
    pub(super) text: Option<JsonText>,
    /// The rules for an object's fields, by the names that the model was shown.
    pub(super) fields: BTreeMap<String, FieldRule>,
    /// The rule for all other fields.
    pub(super) rest: Option<Box<Self>>,
    pub(super) items: Option<Box<Self>>,
    /// The rules for the branches of a union; the first branch that matches the value applies.
    pub(super) branches: Vec<(BranchMatcher, Self)>,
}

/// A value that the model writes as JSON in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonText {
    /// An object; other strings are not parsed.
    Object,
    /// Any JSON value; a string that is not JSON stays a string.
    Any,
}

/// How one field of an object is converted back.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FieldRule {
    /// The tool's own name for the field, if the model was shown another.
    pub(super) own_name: Option<String>,
    /// Whether null means that the field is absent.
    pub(super) null_is_absent: bool,
    pub(super) reverse: ReverseRule,
}

impl ReverseRule {
    pub(super) fn is_identity(&self) -> bool {
        *self == Self::default()
    }

    /// Boxes the rule, unless it changes nothing.
    pub(super) fn non_identity(self) -> Option<Box<Self>> {
        (!self.is_identity()).then(|| Box::new(self))
    }

    /// The rule for a value of a union with these branches.
    pub(super) fn for_branches(branches: &[(Schema, Self)]) -> Self {
        let mut union = Self::default();
        if branches.iter().any(|(_, reverse)| !reverse.is_identity()) {
            let matched = branches.iter();
            let matched = matched.map(|(schema, reverse)| (BranchMatcher::new(schema), reverse.clone()));
            union.branches = matched.collect();
        }
        union
    }

    /// The rule for a list whose items have this rule.
    pub(super) fn for_items(items: Self) -> Self {
        Self {
            items: items.non_identity(),
            ..Self::default()
        }
    }

    /// Converts a value back. Returns `None` if it stays as it is. Untouched numbers keep every digit.
    fn apply(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        if !self.branches.is_empty() {
            let value: Value = serde_json::from_str(raw.get()).ok()?;
            let (_, reverse) = self.branches.iter().find(|(matcher, _)| matcher.fits(&value))?;
            return reverse.apply(raw);
        }
        match raw.get().as_bytes().first() {
            Some(b'{') if !self.fields.is_empty() || self.rest.is_some() => self.apply_to_object(raw),
            Some(b'[') => self.apply_to_list(raw),
            Some(b'"') => self.apply_to_text(raw),
            _ => None,
        }
    }

    fn apply_to_object(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        let given: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let mut own: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
        // A shown name takes precedence over an equal own name, so the shown ones are inserted last.
        let (shown, others): (Vec<_>, Vec<_>) = given.iter().partition(|(name, _)| self.fields.contains_key(*name));
        for (name, value) in others {
            let reversed = self.rest.as_ref().and_then(|rest| rest.apply(value));
            own.insert(name, reversed.unwrap_or_else(|| value.clone()));
        }
        for (name, value) in shown {
            let field = &self.fields[name];
            if field.null_is_absent && value.get() == "null" {
                continue;
            }
            let reversed = field.reverse.apply(value).unwrap_or_else(|| value.clone());
            own.insert(field.own_name.as_deref().unwrap_or(name), reversed);
        }
        to_raw_value(&own).ok()
    }

    fn apply_to_list(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        let reverse = self.items.as_ref()?;
        let items: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let reversed = items.into_iter().map(|item| reverse.apply(&item).unwrap_or(item));
        to_raw_value(&reversed.collect::<Vec<_>>()).ok()
    }

    fn apply_to_text(&self, raw: &RawValue) -> Option<Box<RawValue>> {
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
        // Parsing it into a value bounds its depth.
        let is_json = is_wanted && serde_json::from_str::<Value>(&text).is_ok();
        is_json.then(|| RawValue::from_string(text.trim().to_owned()).ok())?
    }
}

/// Decides whether a value was written for a branch of a union, by its type, required names and tags. Nested values are not compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BranchMatcher {
    types: Vec<String>,
    nullable: bool,
    values: Option<Vec<Value>>,
    required: Vec<String>,
    /// All allowed properties, if additional ones are not allowed.
    only: Option<Vec<String>>,
    /// Properties with an `enum`, and its values.
    tags: Vec<(String, Vec<Value>)>,
}

impl BranchMatcher {
    fn new(schema: &Schema) -> Self {
        let properties = properties(schema);
        let values = |schema: &Schema| {
            let mut values = schema.get("enum").and_then(Value::as_array).cloned()?;
            values.extend(takes_null(schema).then_some(Value::Null));
            Some(values)
        };
        let tags = properties.into_iter().flatten();
        Self {
            types: types_of(schema).into_iter().map(str::to_owned).collect(),
            nullable: takes_null(schema),
            values: values(schema),
            required: required_names(schema).map(str::to_owned).collect(),
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
        let kind = type_of(value);
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

/// Whether the schema has OpenAPI's `nullable`.
fn takes_null(schema: &Schema) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(reverse: &ReverseRule, given: &str, expected: &str) {
        let given = Arguments::parse(given).unwrap();
        let reversed = Reverse::new(reverse.clone()).apply(&given).unwrap_or(given);
        assert_eq!(reversed.as_raw().get(), expected);
    }

    fn field(own_name: Option<&str>, null_is_absent: bool, reverse: ReverseRule) -> FieldRule {
        FieldRule {
            own_name: own_name.map(str::to_owned),
            null_is_absent,
            reverse,
        }
    }

    fn with(fields: Vec<(&str, FieldRule)>) -> ReverseRule {
        ReverseRule {
            fields: fields
                .into_iter()
                .map(|(name, field)| (name.to_owned(), field))
                .collect(),
            ..ReverseRule::default()
        }
    }

    #[test]
    fn names_and_absent_values_come_back_at_every_depth() {
        let inner = with(vec![("b_1", field(Some("b!"), true, ReverseRule::default()))]);
        let list = ReverseRule {
            items: inner.clone().non_identity(),
            ..ReverseRule::default()
        };
        let reverse = with(vec![
            ("a_1", field(Some("a!"), false, inner)),
            ("l", field(None, true, list)),
        ]);
        check(
            &reverse,
            r#"{"a_1":{"b_1":1},"l":null,"x":2}"#,
            r#"{"a!":{"b!":1},"x":2}"#,
        );
        check(
            &reverse,
            r#"{"a_1":{"b_1":null},"l":[{"b_1":2},{}]}"#,
            r#"{"a!":{},"l":[{"b!":2},{}]}"#,
        );
        // A model may also use the tool's own name.
        check(&reverse, r#"{"a!":7}"#, r#"{"a!":7}"#);
    }

    #[test]
    fn strings_become_the_values_they_stand_for() {
        let reverse = with(vec![
            (
                "n",
                field(
                    None,
                    false,
                    ReverseRule {
                        values: vec![("1".into(), json!(1))],
                        ..ReverseRule::default()
                    },
                ),
            ),
            (
                "o",
                field(
                    None,
                    false,
                    ReverseRule {
                        text: Some(JsonText::Object),
                        ..ReverseRule::default()
                    },
                ),
            ),
            (
                "v",
                field(
                    None,
                    false,
                    ReverseRule {
                        text: Some(JsonText::Any),
                        ..ReverseRule::default()
                    },
                ),
            ),
        ]);
        check(
            &reverse,
            r#"{"n":"1","o":"{\"a\":[1]}","v":"[12345678901234567890123]"}"#,
            r#"{"n":1,"o":{"a":[1]},"v":[12345678901234567890123]}"#,
        );
        check(
            &reverse,
            r#"{"n":"2","o":"not {","v":"plain"}"#,
            r#"{"n":"2","o":"not {","v":"plain"}"#,
        );
        check(&reverse, r#"{"o":{"a":1},"v":5}"#, r#"{"o":{"a":1},"v":5}"#);
    }

    #[test]
    fn a_value_is_turned_by_the_schema_that_it_was_written_for() {
        let schema = |tag: &str| {
            let schema = json!({"type": "object", "properties": {"kind": {"enum": [tag]}, "x": {}}, "required": ["kind"],
                                "additionalProperties": false});
            schema.as_object().unwrap().clone()
        };
        let (a, b) = (schema("a"), schema("b"));
        let drop_null = with(vec![("x", field(None, true, ReverseRule::default()))]);
        let union = ReverseRule::for_branches(&[(a, drop_null), (b, ReverseRule::default())]);
        let reverse = with(vec![("u", field(None, false, union))]);
        check(&reverse, r#"{"u":{"kind":"a","x":null}}"#, r#"{"u":{"kind":"a"}}"#);
        check(
            &reverse,
            r#"{"u":{"kind":"b","x":null}}"#,
            r#"{"u":{"kind":"b","x":null}}"#,
        );
        check(&reverse, r#"{"u":"text"}"#, r#"{"u":"text"}"#);
    }
}
