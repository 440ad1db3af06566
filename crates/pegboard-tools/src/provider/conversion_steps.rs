//! Steps that the conversions to all dialects share: properties, unions and keywords.

use serde_json::{Map, Value};

use super::{
    description_notes,
    reverse_arguments::{FieldRule, ReverseRule},
    schema::Schema,
};

/// A schema in a provider's dialect.
pub(super) struct Converted {
    pub(super) schema: Schema,
    /// How a model's arguments are converted back.
    pub(super) reverse: ReverseRule,
    pub(super) strict: bool,
    /// What the dialect cannot express, one phrase each.
    pub(super) lost: Vec<String>,
}

impl Converted {
    pub(super) fn bytes(&self) -> usize {
        // Serialising a map of JSON values cannot fail.
        serde_json::to_string(&self.schema).map_or(0, |text| text.len())
    }
}

/// The converted properties of an object, under the names that the model sees.
#[derive(Default)]
pub(super) struct Properties {
    pub(super) schemas: Map<String, Value>,
    pub(super) reverse: ReverseRule,
}

impl Properties {
    /// Adds the property `name` under the name `shown`. With `null_is_absent`, a null from the model means that the property is absent.
    pub(super) fn insert(&mut self, name: &str, shown: &str, property: (Schema, ReverseRule), null_is_absent: bool) {
        let (schema, reverse) = property;
        let field = FieldRule {
            own_name: (shown != name).then(|| name.to_owned()),
            null_is_absent,
            reverse,
        };
        if field != FieldRule::default() {
            self.reverse.fields.insert(shown.to_owned(), field);
        }
        self.schemas.insert(shown.to_owned(), schema.into());
    }
}

/// Joins converted branches into the value of an `anyOf`.
pub(super) fn any_of(branches: Vec<(Schema, ReverseRule)>) -> (Value, ReverseRule) {
    let reverse = ReverseRule::for_branches(&branches);
    let schemas: Vec<Value> = branches.into_iter().map(|(schema, _)| schema.into()).collect();
    (schemas.into(), reverse)
}

/// Converts single keywords with `convert`, and skips those in `done`. Keywords for which it returns `None` become notes in the description,
/// and are added to `lost`.
pub(super) fn keywords(
    own: &Schema,
    done: &[&str],
    lost: &mut Vec<String>,
    convert: impl Fn(&str, &Value) -> Option<(String, Value)>,
) -> Schema {
    let mut schema = Schema::new();
    let mut notes = Vec::new();
    for (keyword, value) in own.iter().filter(|(keyword, _)| !done.contains(&keyword.as_str())) {
        match convert(keyword, value) {
            Some((keyword, value)) => {
                schema.insert(keyword, value);
            }
            None => notes.extend(description_notes::about(keyword, value)),
        }
    }
    description_notes::add(&mut schema, &notes);
    lost.append(&mut notes);
    schema
}
