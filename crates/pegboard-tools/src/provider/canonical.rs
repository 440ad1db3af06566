//! Normalises the schemas that servers write to one canonical form: JSON Schema 2020-12 with standard keywords only, each with a valid
//! value, and without `allOf`, `oneOf` and `const`.

mod types;
mod values;

use serde_json::{Map, Value};

use super::{
    definition::Quarantine,
    description_notes, merge_schemas,
    schema::{Schema, allow_null},
};
use types::type_word;

/// The kind of value that a keyword has.
enum KeywordValue {
    Schema,
    Schemas,
    Named,
    Count,
    Number,
    Text,
    Flag,
}

/// Returns the form that the value of a keyword must have to be kept. Returns `None` for keywords that are handled one by one or unknown.
fn form(keyword: &str) -> Option<KeywordValue> {
    Some(match keyword {
        "contains"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => KeywordValue::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => KeywordValue::Schemas,
        "dependentSchemas" | "patternProperties" => KeywordValue::Named,
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems" | "minLength"
        | "minProperties" => KeywordValue::Count,
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => KeywordValue::Number,
        "contentEncoding" | "contentMediaType" | "description" | "format" | "pattern" | "title" => KeywordValue::Text,
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => KeywordValue::Flag,
        _ => return None,
    })
}

/// Normalises the root schema of a tool's arguments. The result is always an object with properties.
pub(super) fn root(schema: &Value) -> Result<Schema, Quarantine> {
    let mut root = Normalizer::default().schema(schema)?;
    merge_schemas::flatten(&mut root);
    // The arguments of a call are always an object.
    let mut notes = Vec::new();
    for keyword in ["anyOf", "enum", "items", "prefixItems"] {
        if let Some(value) = root.remove(keyword) {
            notes.extend(description_notes::about(keyword, &value));
        }
    }
    description_notes::add(&mut root, &notes);
    root.insert("type".into(), "object".into());
    root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Ok(root)
}

/// Normalises subschemas recursively.
#[derive(Default)]
struct Normalizer {
    /// The property names that lead to the current subschema.
    path: Vec<String>,
}

impl Normalizer {
    fn quarantine<T>(&self, problem: String) -> Result<T, Quarantine> {
        let path = self.path.join(".");
        Err(Quarantine { path, problem })
    }

    fn schema(&mut self, value: &Value) -> Result<Schema, Quarantine> {
        let mut schema = Schema::new();
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Bool(true) | Value::Null => return Ok(schema),
            Value::Bool(false) => {
                schema.insert("not".into(), Value::Object(Map::new()));
                return Ok(schema);
            }
            Value::String(word) => match type_word(word) {
                Some(kind) => {
                    schema.extend(kind.map(|kind| ("type".to_owned(), kind.into())));
                    return Ok(schema);
                }
                None => return self.quarantine(format!("`{}` is no schema", description_notes::shorten(word))),
            },
            other => {
                return self.quarantine(format!(
                    "{} is no schema",
                    description_notes::shorten(&other.to_string())
                ));
            }
        };
        for (keyword, value) in fields {
            if let Some(value) = self.keyword(keyword, value)? {
                schema.insert(keyword.clone(), value);
            }
        }
        self.properties(fields, &mut schema)?;
        self.items(fields, &mut schema)?;
        self.dependencies(fields, &mut schema)?;
        values::bounds(fields, &mut schema);
        values::data(fields, &mut schema);
        if let Err(problem) = types::insert_types(fields, &mut schema) {
            return self.quarantine(problem);
        }
        merge_schemas::all(&mut schema);
        if fields.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut schema);
        }
        Ok(schema)
    }

    /// Normalises the value of a keyword that has a [`KeywordValue`]. Returns `None` if the value is not of that form.
    fn keyword(&mut self, keyword: &str, value: &Value) -> Result<Option<Value>, Quarantine> {
        Ok(match (form(keyword), value) {
            (Some(KeywordValue::Schema), Value::Object(_) | Value::Bool(_)) => Some(self.schema(value)?.into()),
            (Some(KeywordValue::Schemas), Value::Array(items)) if !items.is_empty() => Some(self.list(items)?),
            (Some(KeywordValue::Named), Value::Object(named)) => {
                let mut read = Map::new();
                for (name, schema) in named {
                    read.insert(name.clone(), self.schema(schema)?.into());
                }
                Some(read.into())
            }
            (Some(KeywordValue::Count), value) => values::count(value),
            (Some(KeywordValue::Number), value) => values::number(value),
            (Some(KeywordValue::Text), Value::String(text)) => Some(text.clone().into()),
            (Some(KeywordValue::Flag), Value::Bool(flag)) => Some((*flag).into()),
            _ => None,
        })
    }

    fn list(&mut self, items: &[Value]) -> Result<Value, Quarantine> {
        let mut read = Vec::with_capacity(items.len());
        for item in items {
            read.push(Value::Object(self.schema(item)?));
        }
        Ok(read.into())
    }

    /// Normalises `properties`, `required` and `additionalProperties`. Draft 3 has `required: true` inside a property.
    fn properties(&mut self, fields: &Schema, schema: &mut Schema) -> Result<(), Quarantine> {
        let mut required: Vec<String> = match fields.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        match fields.get("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(properties)) => {
                let mut read = Map::new();
                for (name, property) in properties {
                    self.path.push(name.clone());
                    let schema = self.schema(property)?;
                    self.path.pop();
                    if property.get("required") == Some(&Value::Bool(true)) {
                        required.push(name.clone());
                    }
                    // No value is valid for a property with the schema `false`.
                    if *property != Value::Bool(false) {
                        read.insert(name.clone(), schema.into());
                    }
                }
                schema.insert("properties".into(), read.into());
            }
            Some(other) => {
                let shown = description_notes::shorten(&other.to_string());
                return self.quarantine(format!("its properties are {shown}, not an object"));
            }
        }
        required.sort_unstable();
        required.dedup();
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        match fields.get("additionalProperties") {
            Some(Value::Bool(flag)) => {
                schema.insert("additionalProperties".into(), (*flag).into());
            }
            Some(other @ Value::Object(_)) => {
                let other = self.schema(other)?;
                schema.insert("additionalProperties".into(), other.into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Normalises `items`. Before 2020-12, a tuple is an array of schemas there.
    fn items(&mut self, fields: &Schema, schema: &mut Schema) -> Result<(), Quarantine> {
        let (tuple, rest) = match fields.get("items") {
            Some(Value::Array(tuple)) => (Some(tuple), fields.get("additionalItems")),
            items => (None, items),
        };
        if let Some(tuple) = tuple.filter(|tuple| !tuple.is_empty()) {
            let tuple = self.list(tuple)?;
            schema.insert("prefixItems".into(), tuple);
        }
        if let Some(rest @ (Value::Object(_) | Value::Bool(_) | Value::String(_))) = rest {
            let rest = self.schema(rest)?;
            schema.insert("items".into(), rest.into());
        }
        Ok(())
    }

    /// Splits `dependencies` into the two keywords that replaced it.
    fn dependencies(&mut self, fields: &Schema, schema: &mut Schema) -> Result<(), Quarantine> {
        let mut needed = Map::new();
        for keyword in ["dependencies", "dependentRequired"] {
            let Some(Value::Object(named)) = fields.get(keyword) else {
                continue;
            };
            for (name, needs) in named {
                match needs {
                    Value::Array(_) => {
                        needed.insert(name.clone(), needs.clone());
                    }
                    needs => {
                        let needs = self.schema(needs)?;
                        let all = schema
                            .entry("dependentSchemas")
                            .or_insert_with(|| Value::Object(Map::new()));
                        if let Value::Object(all) = all {
                            all.insert(name.clone(), needs.into());
                        }
                    }
                }
            }
        }
        if !needed.is_empty() {
            schema.insert("dependentRequired".into(), needed.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
