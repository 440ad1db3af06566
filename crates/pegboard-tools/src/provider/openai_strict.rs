//! Converts schemas for OpenAI's `strict` mode: every property is required, no others are allowed, and the schema is small and simple. An
//! optional property becomes nullable, and a null from the model then means that it is absent.
//!
//! The limits are the smallest that any endpoint documents. A tool that exceeds them is offered without `strict`, which is always accepted.

use serde_json::Value;

use super::{
    conversion_steps::{self, Converted, Properties},
    merge_schemas,
    parameter_names::ParameterNames,
    reverse_arguments::ReverseRule,
    schema::{Schema, allow_null, is_annotation, properties, split_annotations, types_of},
};

/// The deepest nesting of objects.
const MAX_DEPTH: usize = 5;
/// The most properties of all objects together.
const MAX_PROPERTIES: usize = 100;
/// The most `enum` values of all schemas together.
const MAX_VALUES: usize = 500;
/// The most characters of property names and `enum` values together.
const MAX_CHARACTERS: usize = 15_000;
/// How many values make an `enum` a long one, and the most characters that its values may have.
const MAX_LIST: (usize, usize) = (250, 7_500);

/// Keywords that are copied, besides those that nest schemas.
const TAKEN: &[&str] = &["description", "enum", "type"];

/// Converts the root schema of a tool's arguments. The error says why `strict` does not accept it.
pub(super) fn convert(root: &Schema) -> Result<Converted, String> {
    let mut strict = Strict::default();
    let (schema, reverse) = strict.object(root, true, 1)?;
    strict.check()?;
    Ok(Converted {
        schema,
        reverse,
        strict: true,
        lost: strict.lost,
    })
}

/// Converts subschemas recursively, and counts the items whose number is limited over the whole schema.
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

    fn schema(&mut self, own: &Schema, depth: usize) -> Result<(Schema, ReverseRule), String> {
        let mut own = own.clone();
        if own.contains_key("properties") {
            merge_schemas::flatten(&mut own);
        }
        if let Some(Value::Array(branches)) = own.remove("anyOf") {
            return self.union(own, &branches, depth);
        }
        let kinds: Vec<String> = types_of(&own).into_iter().map(str::to_owned).collect();
        let has_parts = kinds.iter().any(|kind| kind == "object" || kind == "array");
        match kinds.as_slice() {
            [] => Err("an argument takes anything".to_owned()),
            [kind] if kind == "object" => self.object(&own, false, depth),
            [kind] if kind == "array" => self.list(&own, depth),
            many if has_parts && many.len() > 1 => {
                let branch = |kind: &String| {
                    let mut branch = own.clone();
                    branch.insert("type".into(), kind.as_str().into());
                    branch.retain(|keyword, _| !is_annotation(keyword));
                    let is_null = kind == "null";
                    branch.retain(|keyword, _| !is_null || keyword == "type");
                    Value::Object(branch)
                };
                let branches: Vec<Value> = many.iter().map(branch).collect();
                own.retain(|keyword, _| is_annotation(keyword));
                self.union(own, &branches, depth)
            }
            _ => {
                self.count_values(&own)?;
                Ok((self.copy_accepted(&own, &[]), ReverseRule::default()))
            }
        }
    }

    fn union(&mut self, own: Schema, branches: &[Value], depth: usize) -> Result<(Schema, ReverseRule), String> {
        let (annotations, common) = split_annotations(own);
        let mut converted = Vec::new();
        for branch in branches.iter().filter_map(Value::as_object) {
            let mut branch = branch.clone();
            merge_schemas::into(&mut branch, common.clone());
            converted.push(self.schema(&branch, depth)?);
        }
        let (branches, reverse) = conversion_steps::any_of(converted);
        let mut schema = self.copy_accepted(&annotations, &[]);
        schema.insert("anyOf".into(), branches);
        Ok((schema, reverse))
    }

    fn object(&mut self, own: &Schema, is_root: bool, depth: usize) -> Result<(Schema, ReverseRule), String> {
        if depth > MAX_DEPTH {
            return Err(format!("its arguments are nested deeper than {MAX_DEPTH}"));
        }
        let empty = Schema::new();
        let properties = properties(own).unwrap_or(&empty);
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
        let mut converted = Properties::default();
        let shown = ParameterNames::Wide.map_names(properties);
        for (name, property) in properties {
            let mut property = self.schema(property.as_object().unwrap_or(&empty), depth + 1)?;
            let shown = &shown[name.as_str()];
            let is_optional = !is_required(name);
            if is_optional {
                allow_null(&mut property.0);
            }
            self.properties += 1;
            self.characters += shown.len();
            converted.insert(name, shown, property, is_optional);
        }
        let required: Vec<String> = converted.schemas.keys().cloned().collect();
        let mut schema = self.copy_accepted(own, &["additionalProperties", "properties", "required"]);
        schema.insert("properties".into(), converted.schemas.into());
        schema.insert("required".into(), required.into());
        schema.insert("additionalProperties".into(), false.into());
        Ok((schema, converted.reverse))
    }

    fn list(&mut self, own: &Schema, depth: usize) -> Result<(Schema, ReverseRule), String> {
        let item = match (own.get("prefixItems"), own.get("items")) {
            (None, Some(Value::Object(item))) => self.schema(item, depth)?,
            _ => return Err("a list may hold anything".to_owned()),
        };
        let mut schema = self.copy_accepted(own, &["items"]);
        schema.insert("items".into(), item.0.into());
        Ok((schema, ReverseRule::for_items(item.1)))
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

    /// Copies the keywords that `strict` accepts; the others become notes. Skips those in `done`, which the caller converts.
    fn copy_accepted(&mut self, own: &Schema, done: &[&str]) -> Schema {
        conversion_steps::keywords(own, done, &mut self.lost, |keyword, value| {
            TAKEN.contains(&keyword).then(|| (keyword.to_owned(), value.clone()))
        })
    }
}
