//! One form for the many ways in which servers write a schema: JSON Schema 2020-12 with only its own keywords, each with a value that it
//! may have, without `allOf`, `oneOf` and `const`.

mod kinds;
mod values;

use serde_json::{Map, Value};

use super::{Schema, description_notes, merge_schemas};
use kinds::type_word;
pub(super) use kinds::{allow_null, type_of};

/// What makes a schema useless.
pub(super) struct Bad {
    /// The properties that lead to it.
    pub(super) path: String,
    pub(super) problem: String,
}

/// What the value of a keyword is.
enum Form {
    Schema,
    Schemas,
    Named,
    Count,
    Number,
    Text,
    Flag,
}

/// The keywords that are kept as they are when their value is of the right form. The others are looked at one by one, or unknown.
fn form(keyword: &str) -> Option<Form> {
    Some(match keyword {
        "contains"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Form::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Form::Schemas,
        "dependentSchemas" | "patternProperties" => Form::Named,
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems" | "minLength"
        | "minProperties" => Form::Count,
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => Form::Number,
        "contentEncoding" | "contentMediaType" | "description" | "format" | "pattern" | "title" => Form::Text,
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => Form::Flag,
        _ => return None,
    })
}

/// The schema of a tool's arguments: an object with properties, whatever was written.
pub(super) fn root(schema: &Value) -> Result<Schema, Bad> {
    let mut root = Reader::default().schema(schema)?;
    merge_schemas::flatten(&mut root);
    // The arguments are an object and nothing else.
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

/// Reads schemas and remembers where it is.
#[derive(Default)]
struct Reader {
    path: Vec<String>,
}

impl Reader {
    fn bad<T>(&self, problem: String) -> Result<T, Bad> {
        let path = self.path.join(".");
        Err(Bad { path, problem })
    }

    fn schema(&mut self, value: &Value) -> Result<Schema, Bad> {
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
                None => return self.bad(format!("`{}` is no schema", description_notes::short(word))),
            },
            other => return self.bad(format!("{} is no schema", description_notes::short(&other.to_string()))),
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
        if let Err(problem) = kinds::settle(fields, &mut schema) {
            return self.bad(problem);
        }
        merge_schemas::all(&mut schema);
        if fields.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut schema);
        }
        Ok(schema)
    }

    /// The value of a keyword of which only the form matters, unless it is of another form.
    fn keyword(&mut self, keyword: &str, value: &Value) -> Result<Option<Value>, Bad> {
        Ok(match (form(keyword), value) {
            (Some(Form::Schema), Value::Object(_) | Value::Bool(_)) => Some(self.schema(value)?.into()),
            (Some(Form::Schemas), Value::Array(items)) if !items.is_empty() => Some(self.list(items)?),
            (Some(Form::Named), Value::Object(named)) => {
                let mut read = Map::new();
                for (name, schema) in named {
                    read.insert(name.clone(), self.schema(schema)?.into());
                }
                Some(read.into())
            }
            (Some(Form::Count), value) => values::count(value),
            (Some(Form::Number), value) => values::number(value),
            (Some(Form::Text), Value::String(text)) => Some(text.clone().into()),
            (Some(Form::Flag), Value::Bool(flag)) => Some((*flag).into()),
            _ => None,
        })
    }

    fn list(&mut self, items: &[Value]) -> Result<Value, Bad> {
        let mut read = Vec::with_capacity(items.len());
        for item in items {
            read.push(Value::Object(self.schema(item)?));
        }
        Ok(read.into())
    }

    /// The properties, and which of them must be there. Old schemas say the latter in each of them.
    fn properties(&mut self, fields: &Schema, schema: &mut Schema) -> Result<(), Bad> {
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
                    // What may never be given is not there.
                    if *property != Value::Bool(false) {
                        read.insert(name.clone(), schema.into());
                    }
                }
                schema.insert("properties".into(), read.into());
            }
            Some(other) => {
                let shown = description_notes::short(&other.to_string());
                return self.bad(format!("its properties are {shown}, not an object"));
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

    /// The items of a list. Old schemas write those of a tuple as a list of schemas.
    fn items(&mut self, fields: &Schema, schema: &mut Schema) -> Result<(), Bad> {
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

    /// `dependencies` became two keywords.
    fn dependencies(&mut self, fields: &Schema, schema: &mut Schema) -> Result<(), Bad> {
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
