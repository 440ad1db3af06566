//! Gemini's `parameters`: the part of OpenAPI's schemas that it documents. There is no null but `nullable`, a list says what is in it, an
//! object says its properties, values to choose from are texts, and `anyOf` stands alone.

use serde_json::{Map, Value};

use super::{
    Fitted, Schema, description_notes, merge_schemas,
    parameter_names::ParameterNames,
    reverse_arguments::{Back, Field, JsonText},
};

/// Keywords that are taken as they are.
const TAKEN: &[&str] = &[
    "description",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "title",
];
/// The formats of texts and numbers that are taken.
const FORMATS: &[&str] = &["date-time", "double", "float", "int32", "int64"];

/// The schema of a tool's arguments as Gemini takes it.
pub(super) fn fit(root: &Schema) -> Fitted {
    let mut gemini = Gemini { lost: Vec::new() };
    let has_properties = root
        .get("properties")
        .is_some_and(|own| own.as_object().is_some_and(|own| !own.is_empty()));
    let (schema, back) = if has_properties {
        gemini.object(root)
    } else {
        // A tool without arguments: the list of tools leaves the whole schema out.
        (gemini.kept(root, &["properties", "required"]), Back::default())
    };
    Fitted {
        schema,
        back,
        strict: false,
        lost: gemini.lost,
    }
}

struct Gemini {
    lost: Vec<String>,
}

impl Gemini {
    fn schema(&mut self, own: &Schema) -> (Schema, Back) {
        let mut own = own.clone();
        let takes_null = without_null(&mut own);
        let (mut schema, back) = self.not_null(own);
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
        (schema, back)
    }

    fn not_null(&mut self, mut own: Schema) -> (Schema, Back) {
        if own.contains_key("properties") {
            merge_schemas::flatten(&mut own);
        }
        if let Some(Value::Array(branches)) = own.remove("anyOf") {
            let branches = branches.iter().filter_map(Value::as_object);
            let branches: Vec<Schema> = branches.cloned().collect();
            return self.union(own, branches);
        }
        if own.contains_key("enum") {
            return self.choice(own);
        }
        let kinds: Vec<String> = merge_schemas::types_of(&own).into_iter().map(str::to_owned).collect();
        match kinds.as_slice() {
            [] => self.anything(&own),
            [kind] => match kind.as_str() {
                "object" => self.object(&own),
                "array" => self.list(&own),
                _ => (self.kept(&own, &[]), Back::default()),
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

    /// A union stands alone: what holds for all of it moves into each branch.
    fn union(&mut self, own: Schema, branches: Vec<Schema>) -> (Schema, Back) {
        let (about, common): (Schema, Schema) = own
            .into_iter()
            .partition(|(keyword, _)| merge_schemas::ANNOTATIONS.contains(&keyword.as_str()));
        let takes_text = branches
            .iter()
            .any(|branch| merge_schemas::types_of(branch) == ["string"]);
        let mut fitted: Vec<(Schema, Back)> = Vec::new();
        for mut branch in branches {
            for (keyword, value) in &common {
                if fits_type(keyword, &branch) {
                    merge_schemas::into(&mut branch, Schema::from_iter([(keyword.clone(), value.clone())]));
                }
            }
            let (schema, back) = self.schema(&branch);
            // A text that may also be an object in JSON could not be told from a plain one.
            let is_doubtful = takes_text && back.text.is_some();
            if !is_doubtful && !fitted.iter().any(|(known, _)| *known == schema) {
                fitted.push((schema, back));
            }
        }
        let description = about.get("description").and_then(Value::as_str);
        if let Some((first, _)) = fitted.first_mut()
            && let Some(description) = description
        {
            let text = match first.get("description").and_then(Value::as_str) {
                Some(own) => format!("{description} {own}"),
                None => description.to_owned(),
            };
            first.insert("description".into(), text.into());
        }
        if fitted.len() < 2 {
            return fitted.pop().unwrap_or_else(|| self.anything(&about));
        }
        let back = Back::of_branches(fitted.iter().map(|(schema, back)| (schema, back.clone())).collect());
        let branches: Vec<Value> = fitted.into_iter().map(|(schema, _)| schema.into()).collect();
        (Schema::from_iter([("anyOf".to_owned(), branches.into())]), back)
    }

    /// One of some values. Gemini lists texts only, so that others are written as texts.
    fn choice(&mut self, mut own: Schema) -> (Schema, Back) {
        let Some(Value::Array(values)) = own.remove("enum") else {
            return (self.kept(&own, &[]), Back::default());
        };
        let mut back = Back::default();
        let mut texts: Vec<String> = Vec::new();
        for value in values {
            let text = match &value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // An empty text is refused.
            if text.is_empty() || texts.contains(&text) {
                continue;
            }
            texts.push(text.clone());
            if !value.is_string() {
                back.values.push((text, value));
            }
        }
        own.insert("type".into(), "string".into());
        own.retain(|keyword, _| merge_schemas::ANNOTATIONS.contains(&keyword.as_str()) || keyword == "type");
        let mut schema = self.kept(&own, &[]);
        if !texts.is_empty() {
            schema.insert("enum".into(), texts.into());
            schema.insert("format".into(), "enum".into());
        }
        (schema, back)
    }

    fn object(&mut self, own: &Schema) -> (Schema, Back) {
        let no_properties = Map::new();
        let properties = own
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&no_properties);
        let is_open = own.get("additionalProperties") != Some(&Value::Bool(false));
        if properties.is_empty() {
            let said = if is_open {
                "a JSON object, written as text"
            } else {
                "an empty JSON object, written as text"
            };
            return self.text(own, said, JsonText::Object);
        }
        let (mut fitted, mut back) = (Map::new(), Back::default());
        let shown = ParameterNames::Narrow.shown(properties);
        for (name, property) in properties {
            let empty = Schema::new();
            let (property, property_back) = self.schema(property.as_object().unwrap_or(&empty));
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
        let required = own.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let mut required: Vec<&str> = required
            .filter_map(|name| shown.get(name))
            .map(String::as_str)
            .collect();
        required.sort_unstable();
        let mut schema = self.kept(own, &["properties", "required"]);
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), fitted.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        (schema, back)
    }

    fn list(&mut self, own: &Schema) -> (Schema, Back) {
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
        let mut schema = self.kept(own, &["items"]);
        schema.insert("items".into(), item.0.into());
        let back = Back {
            items: item.1.boxed(),
            ..Back::default()
        };
        (schema, back)
    }

    fn anything(&mut self, own: &Schema) -> (Schema, Back) {
        let said = "any JSON value, written as JSON text";
        self.text(own, said, JsonText::Any)
    }

    /// A value that cannot be described, written as text.
    fn text(&mut self, own: &Schema, said: &str, text: JsonText) -> (Schema, Back) {
        let mut about = own.clone();
        about.remove("type");
        about.remove("properties");
        let mut schema = self.kept(&about, &[]);
        schema.retain(|keyword, _| keyword == "description" || keyword == "title");
        schema.insert("type".into(), "string".into());
        description_notes::add(&mut schema, &[said.to_owned()]);
        let back = Back {
            text: Some(text),
            ..Back::default()
        };
        (schema, back)
    }

    /// The keywords that are taken as they are; the others are told. Those in `done` are somebody else's work.
    fn kept(&mut self, own: &Schema, done: &[&str]) -> Schema {
        let mut schema = Schema::new();
        let mut notes = Vec::new();
        let is_whole = own.get("type") == Some(&Value::from("integer"));
        for (keyword, value) in own {
            match (keyword.as_str(), value) {
                (done_already, _) if done.contains(&done_already) => {}
                ("type", _) => {
                    schema.insert(keyword.clone(), value.clone());
                }
                ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                    schema.insert(keyword.clone(), value.clone());
                }
                ("exclusiveMinimum", bound) if is_whole && bound.is_i64() && !own.contains_key("minimum") => {
                    schema.insert("minimum".into(), (bound.as_i64().unwrap_or(0).saturating_add(1)).into());
                }
                ("exclusiveMaximum", bound) if is_whole && bound.is_i64() && !own.contains_key("maximum") => {
                    schema.insert("maximum".into(), (bound.as_i64().unwrap_or(0).saturating_sub(1)).into());
                }
                (keyword, _) if TAKEN.contains(&keyword) => {
                    schema.insert(keyword.to_owned(), value.clone());
                }
                (keyword, value) => notes.extend(description_notes::about(keyword, value)),
            }
        }
        description_notes::add(&mut schema, &notes);
        self.lost.append(&mut notes);
        schema
    }
}

/// Takes null out of a schema. Whether it was there.
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
            // Nothing but null: a text that should not be given.
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
            // What is left may take null in another way too.
            found |= without_null(schema);
        } else if branches.is_empty() {
            schema.remove("anyOf");
        }
    }
    found
}

/// Whether a keyword says something about the values of a branch.
fn fits_type(keyword: &str, branch: &Schema) -> bool {
    let kinds = merge_schemas::types_of(branch);
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
