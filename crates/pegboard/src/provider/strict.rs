//! OpenAI's `strict`: every property is required, nothing else is allowed, and the schema is small and plain. What was optional may be
//! null, and a null from the model then means that it is not given.
//!
//! The limits are the smallest that any endpoint documents. A tool that does not keep to them is offered without `strict`, which is always
//! accepted.

use serde_json::{Map, Value};

use super::{
    Fitted, Schema, canonical, description_notes, merge_schemas,
    parameter_names::ParameterNames,
    reverse_arguments::{Back, Field},
};

/// How deep objects may be nested.
const MAX_DEPTH: usize = 5;
/// How many properties all objects may have together.
const MAX_PROPERTIES: usize = 100;
/// How many values may be listed in all places together.
const MAX_VALUES: usize = 500;
/// How many characters names and listed values may have together.
const MAX_CHARACTERS: usize = 15_000;
/// How many characters the values of one long list may have, and what a long list is.
const MAX_LIST: (usize, usize) = (250, 7_500);

/// Keywords that are taken, besides those that make up the tree.
const TAKEN: &[&str] = &["description", "enum", "type"];

/// The schema of a tool's arguments for `strict`, or why there is none.
pub(super) fn fit(root: &Schema) -> Result<Fitted, String> {
    let mut strict = Strict::default();
    let (schema, back) = strict.object(root, true, 1)?;
    strict.check()?;
    Ok(Fitted {
        schema,
        back,
        strict: true,
        lost: strict.lost,
    })
}

/// What has been used so far.
#[derive(Default)]
struct Strict {
    properties: usize,
    values: usize,
    characters: usize,
    lost: Vec<String>,
}

impl Strict {
    fn check(&self) -> Result<(), String> {
        for (what, used, most) in [
            ("properties", self.properties, MAX_PROPERTIES),
            ("listed values", self.values, MAX_VALUES),
            ("characters in names and values", self.characters, MAX_CHARACTERS),
        ] {
            if used > most {
                return Err(format!("it has {used} {what}, and {most} are allowed"));
            }
        }
        Ok(())
    }

    fn schema(&mut self, own: &Schema, depth: usize) -> Result<(Schema, Back), String> {
        let mut own = own.clone();
        if own.contains_key("properties") {
            merge_schemas::flatten(&mut own);
        }
        if let Some(Value::Array(branches)) = own.remove("anyOf") {
            return self.union(own, &branches, depth);
        }
        let kinds: Vec<String> = merge_schemas::types_of(&own).into_iter().map(str::to_owned).collect();
        let has_parts = kinds.iter().any(|kind| kind == "object" || kind == "array");
        match kinds.as_slice() {
            [] => Err("an argument takes anything".to_owned()),
            [kind] if kind == "object" => self.object(&own, false, depth),
            [kind] if kind == "array" => self.list(&own, depth),
            many if has_parts && many.len() > 1 => {
                let branch = |kind: &String| {
                    let mut branch = own.clone();
                    branch.insert("type".into(), kind.as_str().into());
                    branch.retain(|keyword, _| !merge_schemas::ANNOTATIONS.contains(&keyword.as_str()));
                    let is_null = kind == "null";
                    branch.retain(|keyword, _| !is_null || keyword == "type");
                    Value::Object(branch)
                };
                let branches: Vec<Value> = many.iter().map(branch).collect();
                own.retain(|keyword, _| merge_schemas::ANNOTATIONS.contains(&keyword.as_str()));
                self.union(own, &branches, depth)
            }
            _ => {
                self.count_values(&own)?;
                Ok((self.kept(&own, &[]), Back::default()))
            }
        }
    }

    fn union(&mut self, own: Schema, branches: &[Value], depth: usize) -> Result<(Schema, Back), String> {
        let (about, common): (Schema, Schema) = own
            .into_iter()
            .partition(|(keyword, _)| merge_schemas::ANNOTATIONS.contains(&keyword.as_str()));
        let mut fitted = Vec::new();
        for branch in branches.iter().filter_map(Value::as_object) {
            let mut branch = branch.clone();
            merge_schemas::into(&mut branch, common.clone());
            fitted.push(self.schema(&branch, depth)?);
        }
        let back = Back::of_branches(fitted.iter().map(|(schema, back)| (schema, back.clone())).collect());
        let branches: Vec<Value> = fitted.into_iter().map(|(schema, _)| schema.into()).collect();
        let mut schema = self.kept(&about, &[]);
        schema.insert("anyOf".into(), branches.into());
        Ok((schema, back))
    }

    fn object(&mut self, own: &Schema, is_root: bool, depth: usize) -> Result<(Schema, Back), String> {
        if depth > MAX_DEPTH {
            return Err(format!("its arguments are nested deeper than {MAX_DEPTH}"));
        }
        let no_properties = Map::new();
        let properties = own
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&no_properties);
        let may_have_others = match own.get("additionalProperties") {
            Some(Value::Bool(false)) => false,
            Some(_) => true,
            None => !is_root && properties.is_empty(),
        };
        if may_have_others && (properties.is_empty() || own.get("additionalProperties") != Some(&Value::Bool(true))) {
            return Err("an object may have any keys".to_owned());
        }
        let required = own.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|own| own == name));
        if required
            .into_iter()
            .flatten()
            .any(|name| name.as_str().is_none_or(|name| !properties.contains_key(name)))
        {
            return Err("an object requires a property that it does not describe".to_owned());
        }
        let (mut fitted, mut back) = (Map::new(), Back::default());
        let shown = ParameterNames::Wide.shown(properties);
        for (name, property) in properties {
            let empty = Schema::new();
            let (mut property, property_back) = self.schema(property.as_object().unwrap_or(&empty), depth + 1)?;
            let shown = &shown[name.as_str()];
            if !is_required(name) {
                canonical::allow_null(&mut property);
            }
            let field = Field {
                own_name: (shown != name).then(|| name.clone()),
                null_is_absent: !is_required(name),
                back: property_back,
            };
            if field != Field::default() {
                back.fields.insert(shown.clone(), field);
            }
            self.properties += 1;
            self.characters += shown.len();
            fitted.insert(shown.clone(), property.into());
        }
        let required: Vec<String> = fitted.keys().cloned().collect();
        let mut schema = self.kept(own, &["additionalProperties", "properties", "required"]);
        schema.insert("properties".into(), fitted.into());
        schema.insert("required".into(), required.into());
        schema.insert("additionalProperties".into(), false.into());
        Ok((schema, back))
    }

    fn list(&mut self, own: &Schema, depth: usize) -> Result<(Schema, Back), String> {
        let item = match (own.get("prefixItems"), own.get("items")) {
            (None, Some(Value::Object(item))) => self.schema(item, depth)?,
            _ => return Err("a list may hold anything".to_owned()),
        };
        let mut schema = self.kept(own, &["items"]);
        schema.insert("items".into(), item.0.into());
        let back = Back {
            items: item.1.boxed(),
            ..Back::default()
        };
        Ok((schema, back))
    }

    fn count_values(&mut self, own: &Schema) -> Result<(), String> {
        let Some(Value::Array(values)) = own.get("enum") else {
            return Ok(());
        };
        let characters: usize = values.iter().filter_map(Value::as_str).map(str::len).sum();
        if values.len() > MAX_LIST.0 && characters > MAX_LIST.1 {
            return Err("it has a long list of long values".to_owned());
        }
        self.values += values.len();
        self.characters += characters;
        Ok(())
    }

    /// The keywords that are taken as they are; the others are told. Those in `done` are somebody else's work.
    fn kept(&mut self, own: &Schema, done: &[&str]) -> Schema {
        let mut schema = Schema::new();
        let mut notes = Vec::new();
        for (keyword, value) in own {
            match keyword.as_str() {
                done_already if done.contains(&done_already) => {}
                taken if TAKEN.contains(&taken) => {
                    schema.insert(keyword.clone(), value.clone());
                }
                other => notes.extend(description_notes::about(other, value)),
            }
        }
        description_notes::add(&mut schema, &notes);
        self.lost.append(&mut notes);
        schema
    }
}
