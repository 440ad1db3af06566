//! The dialects that are JSON Schema with something left out: OpenAI, Anthropic, Bedrock, and Gemini's `parametersJsonSchema`.

use serde_json::{Map, Value};

use super::{
    Fitted, Schema, description_notes,
    parameter_names::ParameterNames,
    reverse_arguments::{Back, Field},
};

/// What a dialect takes.
pub(super) struct Dialect {
    names: ParameterNames,
    /// The keywords that are taken, besides those that make up the tree.
    keywords: &'static [&'static str],
    /// The keywords that the root may have, if it may not have all of them.
    at_root: Option<&'static [&'static str]>,
    /// Whether the items of a list can be told one by one.
    tuples: bool,
}

/// Keywords that every dialect takes.
const TREE: &[&str] = &[
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
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "uniqueItems",
];

/// OpenAI without `strict`.
pub(super) const OPENAI: Dialect = Dialect {
    names: ParameterNames::Any,
    keywords: WELL_KNOWN,
    at_root: None,
    tuples: false,
};
/// Anthropic checks schemas against JSON Schema 2020-12.
pub(super) const ANTHROPIC: Dialect = Dialect {
    names: ParameterNames::Wide,
    keywords: WELL_KNOWN,
    at_root: None,
    tuples: true,
};
/// Bedrock carries the models of many makers; those of Amazon take three keywords at the root.
pub(super) const BEDROCK: Dialect = Dialect {
    names: ParameterNames::Wide,
    keywords: WELL_KNOWN,
    at_root: Some(&["properties", "required", "type"]),
    tuples: false,
};
/// The keywords that Google documents for JSON Schemas.
pub(super) const GEMINI: Dialect = Dialect {
    names: ParameterNames::Narrow,
    keywords: &[
        "additionalProperties",
        "format",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
    ],
    at_root: None,
    tuples: true,
};

/// The schema of a tool's arguments in a dialect.
pub(super) fn fit(root: &Schema, dialect: &Dialect) -> Fitted {
    let mut lost = Vec::new();
    let (mut schema, back) = dialect.schema(root, &mut lost);
    if let Some(allowed) = dialect.at_root {
        schema.retain(|keyword, _| keyword == "description" || allowed.contains(&keyword.as_str()));
    }
    Fitted {
        schema,
        back,
        strict: false,
        lost,
    }
}

impl Dialect {
    fn schema(&self, own: &Schema, lost: &mut Vec<String>) -> (Schema, Back) {
        let (mut schema, mut back) = (Schema::new(), Back::default());
        let mut notes = Vec::new();
        for (keyword, value) in own {
            let is_taken = TREE.contains(&keyword.as_str()) || self.keywords.contains(&keyword.as_str());
            match (keyword.as_str(), value) {
                ("properties" | "required" | "items" | "prefixItems", _) => {}
                ("additionalProperties", Value::Object(other)) if is_taken => {
                    let (other, other_back) = self.schema(other, lost);
                    schema.insert(keyword.clone(), other.into());
                    back.rest = other_back.boxed();
                }
                ("anyOf", Value::Array(branches)) => {
                    let (branches, branches_back) = self.union(branches, lost);
                    schema.insert(keyword.clone(), branches);
                    back.branches = branches_back.branches;
                }
                _ if is_taken => {
                    schema.insert(keyword.clone(), value.clone());
                }
                ("patternProperties", patterns) => {
                    // Names that fit a pattern must stay possible.
                    if own.get("additionalProperties") == Some(&Value::Bool(false)) {
                        schema.insert("additionalProperties".into(), Value::Bool(true));
                    }
                    notes.extend(description_notes::about(keyword, patterns));
                }
                _ => notes.extend(description_notes::about(keyword, value)),
            }
        }
        if own.contains_key("patternProperties") && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            schema.insert("additionalProperties".into(), Value::Bool(true));
        }
        self.properties(own, &mut schema, &mut back, lost);
        self.items(own, &mut schema, &mut back, &mut notes, lost);
        description_notes::add(&mut schema, &notes);
        lost.append(&mut notes);
        (schema, back)
    }

    fn union(&self, branches: &[Value], lost: &mut Vec<String>) -> (Value, Back) {
        let fitted = branches.iter().filter_map(Value::as_object);
        let fitted: Vec<(Schema, Back)> = fitted.map(|branch| self.schema(branch, lost)).collect();
        let back = Back::of_branches(fitted.iter().map(|(schema, back)| (schema, back.clone())).collect());
        let branches: Vec<Value> = fitted.into_iter().map(|(schema, _)| schema.into()).collect();
        (branches.into(), back)
    }

    fn properties(&self, own: &Schema, schema: &mut Schema, back: &mut Back, lost: &mut Vec<String>) {
        let no_properties = Map::new();
        let properties = own.get("properties").and_then(Value::as_object);
        let shown = self.names.shown(properties.unwrap_or(&no_properties));
        if let Some(properties) = properties {
            let mut fitted = Map::new();
            for (name, property) in properties {
                let empty = Schema::new();
                let (property, property_back) = self.schema(property.as_object().unwrap_or(&empty), lost);
                let shown = &shown[name.as_str()];
                let field = Field {
                    own_name: (shown != name).then(|| name.clone()),
                    null_is_absent: false,
                    back: property_back,
                };
                if field != Field::default() {
                    back.fields.insert(shown.clone(), field);
                }
                fitted.insert(shown.clone(), property.into());
            }
            schema.insert("properties".into(), fitted.into());
        }
        let required = own.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let mut required: Vec<&str> = required
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
        back: &mut Back,
        notes: &mut Vec<String>,
        lost: &mut Vec<String>,
    ) {
        let tuple = own.get("prefixItems").and_then(Value::as_array);
        let rest = own.get("items").and_then(Value::as_object);
        if let Some(tuple) = tuple {
            // What is to be done with an item is told by what it looks like, not by its place.
            let mut each: Vec<Value> = Vec::new();
            for item in tuple.iter().chain(own.get("items")) {
                if !each.contains(item) && item.get("not").is_none() {
                    each.push(item.clone());
                }
            }
            let (branches, each_back) = self.union(&each, lost);
            back.items = each_back.boxed();
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
            let (rest, rest_back) = self.schema(rest, lost);
            schema.insert("items".into(), rest.into());
            back.items = rest_back.boxed();
        } else if super::merge_schemas::types_of(own).contains(&"array") {
            // Several providers refuse a list of which they do not know the items.
            schema.insert("items".into(), Map::new().into());
        }
    }
}
