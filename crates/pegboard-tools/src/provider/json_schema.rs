//! Converts schemas to the dialects that are subsets of JSON Schema: OpenAI, Anthropic, Bedrock, and Gemini's `parametersJsonSchema`.

use serde_json::{Map, Value};

use super::{
    conversion_steps::{self, Converted, Properties},
    description_notes,
    parameter_names::ParameterNames,
    reverse_arguments::ReverseRule,
    schema::{BOUNDS, Schema, properties, required_names, types_of},
};

/// What a dialect accepts.
pub(super) struct Dialect {
    names: ParameterNames,
    /// The accepted keywords, besides [`COMMON`].
    keywords: &'static [&'static [&'static str]],
    /// The keywords that the root may have, if they are restricted.
    at_root: Option<&'static [&'static str]>,
    /// Whether `prefixItems` is accepted.
    tuples: bool,
}

/// Keywords that every dialect accepts.
const COMMON: &[&str] = &[
    "anyOf",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "title",
    "type",
];
const WELL_KNOWN: &[&str] = &[
    "additionalProperties",
    "default",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "multipleOf",
    "pattern",
    "uniqueItems",
];

/// OpenAI without `strict`.
pub(super) const OPENAI: Dialect = Dialect {
    names: ParameterNames::Any,
    keywords: &[WELL_KNOWN, BOUNDS],
    at_root: None,
    tuples: false,
};
/// Anthropic validates schemas against JSON Schema 2020-12.
pub(super) const ANTHROPIC: Dialect = Dialect {
    names: ParameterNames::Wide,
    keywords: &[WELL_KNOWN, BOUNDS],
    at_root: None,
    tuples: true,
};
/// Bedrock serves models of many vendors; Amazon's own accept three keywords at the root.
pub(super) const BEDROCK: Dialect = Dialect {
    names: ParameterNames::Wide,
    keywords: &[WELL_KNOWN, BOUNDS],
    at_root: Some(&["properties", "required", "type"]),
    tuples: false,
};
/// The keywords that Google documents for JSON Schemas.
pub(super) const GEMINI: Dialect = Dialect {
    names: ParameterNames::Narrow,
    keywords: &[&[
        "additionalProperties",
        "format",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
    ]],
    at_root: None,
    tuples: true,
};

/// Converts the root schema of a tool's arguments to a dialect.
pub(super) fn convert(root: &Schema, dialect: &Dialect) -> Converted {
    let mut lost = Vec::new();
    let (mut schema, reverse) = dialect.schema(root, &mut lost);
    if let Some(allowed) = dialect.at_root {
        schema.retain(|keyword, _| keyword == "description" || allowed.contains(&keyword.as_str()));
    }
    Converted {
        schema,
        reverse,
        strict: false,
        lost,
    }
}

impl Dialect {
    fn schema(&self, own: &Schema, lost: &mut Vec<String>) -> (Schema, ReverseRule) {
        let (mut schema, mut reverse) = (Schema::new(), ReverseRule::default());
        let mut notes = Vec::new();
        for (keyword, value) in own {
            let is_taken =
                COMMON.contains(&keyword.as_str()) || self.keywords.iter().any(|list| list.contains(&keyword.as_str()));
            match (keyword.as_str(), value) {
                ("properties" | "required" | "items" | "prefixItems", _) => {}
                ("additionalProperties", Value::Object(other)) if is_taken => {
                    let (other, other_reverse) = self.schema(other, lost);
                    schema.insert(keyword.clone(), other.into());
                    reverse.rest = other_reverse.non_identity();
                }
                ("anyOf", Value::Array(branches)) => {
                    let (branches, branches_reverse) = self.union(branches, lost);
                    schema.insert(keyword.clone(), branches);
                    reverse.branches = branches_reverse.branches;
                }
                _ if is_taken => {
                    schema.insert(keyword.clone(), value.clone());
                }
                _ => notes.extend(description_notes::about(keyword, value)),
            }
        }
        // Properties that match a pattern must stay allowed.
        if own.contains_key("patternProperties") && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            schema.insert("additionalProperties".into(), Value::Bool(true));
        }
        self.properties(own, &mut schema, &mut reverse, lost);
        self.items(own, &mut schema, &mut reverse, &mut notes, lost);
        description_notes::add(&mut schema, &notes);
        lost.append(&mut notes);
        (schema, reverse)
    }

    fn union(&self, branches: &[Value], lost: &mut Vec<String>) -> (Value, ReverseRule) {
        let converted = branches.iter().filter_map(Value::as_object);
        let converted: Vec<(Schema, ReverseRule)> = converted.map(|branch| self.schema(branch, lost)).collect();
        conversion_steps::any_of(converted)
    }

    fn properties(&self, own: &Schema, schema: &mut Schema, reverse: &mut ReverseRule, lost: &mut Vec<String>) {
        let empty = Schema::new();
        let properties = properties(own);
        let shown = self.names.map_names(properties.unwrap_or(&empty));
        if let Some(properties) = properties {
            let mut converted = Properties::default();
            for (name, property) in properties {
                let property = self.schema(property.as_object().unwrap_or(&empty), lost);
                converted.insert(name, &shown[name.as_str()], property, false);
            }
            schema.insert("properties".into(), converted.schemas.into());
            reverse.fields = converted.reverse.fields;
        }
        let mut required: Vec<&str> = required_names(own)
            .map(|name| shown.get(name).map_or(name, String::as_str))
            .collect();
        required.sort_unstable();
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
    }

    fn items(
        &self,
        own: &Schema,
        schema: &mut Schema,
        reverse: &mut ReverseRule,
        notes: &mut Vec<String>,
        lost: &mut Vec<String>,
    ) {
        let tuple = own.get("prefixItems").and_then(Value::as_array);
        let rest = own.get("items").and_then(Value::as_object);
        if let Some(tuple) = tuple {
            // Arguments are converted back by matching an item against all schemas of the tuple, not by its index.
            let mut each: Vec<Value> = Vec::new();
            for item in tuple.iter().chain(own.get("items")) {
                if !each.contains(item) && item.get("not").is_none() {
                    each.push(item.clone());
                }
            }
            let (branches, each_reverse) = self.union(&each, lost);
            reverse.items = each_reverse.non_identity();
            if self.tuples {
                schema.insert("prefixItems".into(), self.union(tuple, lost).0);
                if let Some(rest) = rest {
                    schema.insert("items".into(), self.schema(rest, lost).0.into());
                }
                return;
            }
            notes.extend(description_notes::about("items in this order", &tuple.clone().into()));
            let item = match branches {
                Value::Array(mut one) if one.len() == 1 => one.remove(0),
                many => Value::Object(Schema::from_iter([("anyOf".to_owned(), many)])),
            };
            schema.insert("items".into(), item);
            return;
        }
        if let Some(rest) = rest {
            let (rest, rest_reverse) = self.schema(rest, lost);
            schema.insert("items".into(), rest.into());
            reverse.items = rest_reverse.non_identity();
        } else if types_of(own).contains(&"array") {
            // Several providers reject an array without `items`.
            schema.insert("items".into(), Map::new().into());
        }
    }
}
