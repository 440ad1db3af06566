//! Converts schemas to Gemini's `parameters`: the subset of OpenAPI schemas that Google documents. Null is written as `nullable`, an array
//! must have `items`, an object must have `properties`, `enum` has strings only, and `anyOf` stands without other keywords.

use serde_json::Value;

use super::{
    conversion_steps::{self, Converted, Properties},
    description_notes, merge_schemas,
    parameter_names::ParameterNames,
    reverse_arguments::{JsonText, ReverseRule},
    schema::{BOUNDS, Schema, is_annotation, properties, required_names, split_annotations, types_of},
};

/// Keywords that are copied unchanged, besides [`BOUNDS`].
const TAKEN: &[&str] = &["description", "pattern", "title"];
/// The values of `format` that Gemini accepts.
const FORMATS: &[&str] = &["date-time", "double", "float", "int32", "int64"];

/// Converts the root schema of a tool's arguments.
pub(super) fn convert(root: &Schema) -> Converted {
    let mut gemini = Gemini { lost: Vec::new() };
    let has_properties = properties(root).is_some_and(|own| !own.is_empty());
    let (schema, reverse) = if has_properties {
        gemini.object(root)
    } else {
        // A tool without arguments: the list of tools omits its schema.
        (
            gemini.copy_accepted(root, &["properties", "required"]),
            ReverseRule::default(),
        )
    };
    Converted {
        schema,
        reverse,
        strict: false,
        lost: gemini.lost,
    }
}

struct Gemini {
    lost: Vec<String>,
}

impl Gemini {
    fn schema(&mut self, own: &Schema) -> (Schema, ReverseRule) {
        let mut own = own.clone();
        let takes_null = without_null(&mut own);
        let (mut schema, reverse) = self.not_null(own);
        if takes_null {
            let is_union = schema.contains_key("anyOf");
            match schema.get_mut("anyOf") {
                Some(Value::Array(branches)) if is_union => {
                    for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
                        branch.insert("nullable".into(), true.into());
                    }
                }
                _ => {
                    schema.insert("nullable".into(), true.into());
                }
            }
        }
        (schema, reverse)
    }

    fn not_null(&mut self, mut own: Schema) -> (Schema, ReverseRule) {
        if own.contains_key("properties") {
            merge_schemas::flatten(&mut own);
        }
        if let Some(Value::Array(branches)) = own.remove("anyOf") {
            let branches = branches.iter().filter_map(Value::as_object);
            let branches: Vec<Schema> = branches.cloned().collect();
            return self.union(own, branches);
        }
        if own.contains_key("enum") {
            return self.enumeration(own);
        }
        let kinds: Vec<String> = types_of(&own).into_iter().map(str::to_owned).collect();
        match kinds.as_slice() {
            [] => self.anything(&own),
            [kind] => match kind.as_str() {
                "object" => self.object(&own),
                "array" => self.list(&own),
                _ => (self.copy_accepted(&own, &[]), ReverseRule::default()),
            },
            many => {
                own.remove("type");
                let branches = many
                    .iter()
                    .map(|kind| Schema::from_iter([("type".to_owned(), kind.as_str().into())]));
                self.union(own, branches.collect())
            }
        }
    }

    /// Converts a union. Gemini takes no keywords beside `anyOf`, so common restrictions move into each branch.
    fn union(&mut self, own: Schema, branches: Vec<Schema>) -> (Schema, ReverseRule) {
        let (annotations, common) = split_annotations(own);
        let takes_text = branches.iter().any(|branch| types_of(branch) == ["string"]);
        let mut converted: Vec<(Schema, ReverseRule)> = Vec::new();
        for mut branch in branches {
            for (keyword, value) in &common {
                if fits_type(keyword, &branch) {
                    merge_schemas::into(&mut branch, Schema::from_iter([(keyword.clone(), value.clone())]));
                }
            }
            let (schema, reverse) = self.schema(&branch);
            // A JSON text could not be distinguished from a plain string.
            let is_ambiguous = takes_text && reverse.text.is_some();
            if !is_ambiguous && !converted.iter().any(|(known, _)| *known == schema) {
                converted.push((schema, reverse));
            }
        }
        let description = annotations.get("description").and_then(Value::as_str);
        if let Some((first, _)) = converted.first_mut()
            && let Some(description) = description
        {
            let text = match first.get("description").and_then(Value::as_str) {
                Some(own) => format!("{description} {own}"),
                None => description.to_owned(),
            };
            first.insert("description".into(), text.into());
        }
        if converted.len() < 2 {
            return converted.pop().unwrap_or_else(|| self.anything(&annotations));
        }
        let (branches, reverse) = conversion_steps::any_of(converted);
        (Schema::from_iter([("anyOf".to_owned(), branches)]), reverse)
    }

    /// Converts an `enum`. Gemini lists strings only, so other values are shown as strings.
    fn enumeration(&mut self, mut own: Schema) -> (Schema, ReverseRule) {
        let Some(Value::Array(values)) = own.remove("enum") else {
            return (self.copy_accepted(&own, &[]), ReverseRule::default());
        };
        let mut reverse = ReverseRule::default();
        let mut texts: Vec<String> = Vec::new();
        for value in values {
            let text = match &value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // Gemini rejects an empty string.
            if text.is_empty() || texts.contains(&text) {
                continue;
            }
            texts.push(text.clone());
            if !value.is_string() {
                reverse.values.push((text, value));
            }
        }
        own.insert("type".into(), "string".into());
        own.retain(|keyword, _| is_annotation(keyword) || keyword == "type");
        let mut schema = self.copy_accepted(&own, &[]);
        if !texts.is_empty() {
            schema.insert("enum".into(), texts.into());
            schema.insert("format".into(), "enum".into());
        }
        (schema, reverse)
    }

    fn object(&mut self, own: &Schema) -> (Schema, ReverseRule) {
        let empty = Schema::new();
        let properties = properties(own).unwrap_or(&empty);
        let is_open = own.get("additionalProperties") != Some(&Value::Bool(false));
        if properties.is_empty() {
            let note = if is_open {
                "a JSON object, written as text"
            } else {
                "an empty JSON object, written as text"
            };
            return self.text(own, note, JsonText::Object);
        }
        let mut converted = Properties::default();
        let shown = ParameterNames::Narrow.map_names(properties);
        for (name, property) in properties {
            let property = self.schema(property.as_object().unwrap_or(&empty));
            converted.insert(name, &shown[name.as_str()], property, false);
        }
        let mut required: Vec<&str> = required_names(own)
            .filter_map(|name| shown.get(name))
            .map(String::as_str)
            .collect();
        required.sort_unstable();
        let mut schema = self.copy_accepted(own, &["properties", "required"]);
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), converted.schemas.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        (schema, converted.reverse)
    }

    fn list(&mut self, own: &Schema) -> (Schema, ReverseRule) {
        let tuple = own.get("prefixItems").and_then(Value::as_array);
        let item = match (tuple, own.get("items")) {
            (Some(tuple), rest) => {
                let each = tuple.iter().chain(rest).filter(|item| item.get("not").is_none());
                let each: Vec<Schema> = each.filter_map(Value::as_object).cloned().collect();
                self.union(Schema::new(), each)
            }
            (None, Some(Value::Object(item))) => self.schema(item),
            (None, _) => self.schema(&Schema::new()),
        };
        let mut schema = self.copy_accepted(own, &["items"]);
        schema.insert("items".into(), item.0.into());
        (schema, ReverseRule::for_items(item.1))
    }

    fn anything(&mut self, own: &Schema) -> (Schema, ReverseRule) {
        self.text(own, "any JSON value, written as JSON text", JsonText::Any)
    }

    /// Converts a schema that Gemini cannot express: the model writes the value as JSON in a string.
    fn text(&mut self, own: &Schema, note: &str, text: JsonText) -> (Schema, ReverseRule) {
        let mut about = own.clone();
        about.remove("type");
        about.remove("properties");
        let mut schema = self.copy_accepted(&about, &[]);
        schema.retain(|keyword, _| keyword == "description" || keyword == "title");
        schema.insert("type".into(), "string".into());
        description_notes::add(&mut schema, &[note.to_owned()]);
        let reverse = ReverseRule {
            text: Some(text),
            ..ReverseRule::default()
        };
        (schema, reverse)
    }

    /// Copies the keywords that Gemini accepts; the others become notes. Skips those in `done`, which the caller converts.
    fn copy_accepted(&mut self, own: &Schema, done: &[&str]) -> Schema {
        let is_integer = own.get("type") == Some(&Value::from("integer"));
        conversion_steps::keywords(own, done, &mut self.lost, |keyword, value| match (keyword, value) {
            ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => copy(keyword, value),
            ("exclusiveMinimum", bound) if is_integer && bound.is_i64() && !own.contains_key("minimum") => {
                let least = bound.as_i64().unwrap_or(0).saturating_add(1);
                Some(("minimum".to_owned(), least.into()))
            }
            ("exclusiveMaximum", bound) if is_integer && bound.is_i64() && !own.contains_key("maximum") => {
                let most = bound.as_i64().unwrap_or(0).saturating_sub(1);
                Some(("maximum".to_owned(), most.into()))
            }
            _ if keyword == "type" || TAKEN.contains(&keyword) || BOUNDS.contains(&keyword) => copy(keyword, value),
            _ => None,
        })
    }
}

/// Removes null from a schema. Returns whether the schema accepted it.
fn without_null(schema: &mut Schema) -> bool {
    let null = Value::from("null");
    let mut found = false;
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) => {
            let before = kinds.len();
            kinds.retain(|kind| *kind != null);
            found |= kinds.len() < before;
            if let [one] = kinds.as_slice() {
                let one = one.clone();
                schema.insert("type".into(), one);
            }
        }
        Some(kind) if *kind == null => {
            // Gemini has no null type; the property becomes a string that may be null.
            *kind = "string".into();
            schema.remove("enum");
            return true;
        }
        _ => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        let before = values.len();
        values.retain(|value| !value.is_null());
        found |= values.len() < before;
        if values.is_empty() {
            schema.remove("enum");
        }
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        let before = branches.len();
        branches.retain(|branch| branch.get("type") != Some(&null));
        found |= branches.len() < before;
        if let [Value::Object(one)] = branches.as_slice() {
            let one = one.clone();
            schema.remove("anyOf");
            merge_schemas::into(schema, one);
            // The remaining branch may accept null in another way too.
            found |= without_null(schema);
        } else if branches.is_empty() {
            schema.remove("anyOf");
        }
    }
    found
}

/// Whether a keyword restricts values of the types of a branch.
fn fits_type(keyword: &str, branch: &Schema) -> bool {
    let kinds = types_of(branch);
    let of = |kind: &str| kinds.is_empty() || kinds.contains(&kind);
    match keyword {
        "maxLength" | "minLength" | "pattern" | "contentEncoding" | "contentMediaType" => of("string"),
        "format" => of("string") || of("number") || of("integer"),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => of("number") || of("integer"),
        "contains" | "items" | "maxItems" | "minItems" | "prefixItems" | "uniqueItems" => of("array"),
        "additionalProperties"
        | "maxProperties"
        | "minProperties"
        | "patternProperties"
        | "properties"
        | "propertyNames"
        | "required" => of("object"),
        _ => true,
    }
}

fn copy(keyword: &str, value: &Value) -> Option<(String, Value)> {
    Some((keyword.to_owned(), value.clone()))
}
