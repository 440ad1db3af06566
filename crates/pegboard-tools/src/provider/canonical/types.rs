//! Normalises `type`, `enum` and `const`.

use serde_json::Value;

use crate::provider::{
    description_notes,
    schema::{Schema, type_of},
};

/// Maps a type name to a JSON Schema type; `Some(None)` means any type. Many servers use the type names of the language that they are written in.
pub(super) fn type_word(word: &str) -> Option<Option<&'static str>> {
    Some(Some(match word.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" | "date" | "datetime" | "date-time" | "uuid" => "string",
        "integer" | "int" | "int32" | "int64" | "long" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "dict" | "map" => "object",
        "null" | "none" | "nil" => "null",
        "any" | "mixed" | "unknown" | "" => return Some(None),
        _ => return None,
    }))
}

/// Inserts a consistent `type` and `enum`: if one of them allows null, both do.
pub(super) fn insert_types(fields: &Schema, schema: &mut Schema) -> Result<(), String> {
    let mut types = types(fields.get("type"))?;
    let mut values = values(fields)?;
    let takes_null = types.contains(&"null");
    if let Some(values) = &mut values {
        let lists_null = values.contains(&Value::Null);
        if types.is_empty() {
            types = values.iter().map(type_of).collect();
            dedup(&mut types);
        }
        if takes_null && !lists_null {
            values.push(Value::Null);
        }
        if lists_null && !types.contains(&"null") {
            types.push("null");
        }
    }
    if types.is_empty()
        && !["anyOf", "allOf", "oneOf"]
            .iter()
            .any(|union| schema.contains_key(*union))
    {
        if ["properties", "required", "patternProperties"]
            .iter()
            .any(|key| schema.contains_key(*key))
        {
            types.push("object");
        } else if ["items", "prefixItems"].iter().any(|key| schema.contains_key(*key)) {
            types.push("array");
        }
    }
    if types.contains(&"number") {
        types.retain(|kind| *kind != "integer");
    }
    match types.as_slice() {
        [] => {}
        [one] => {
            schema.insert("type".into(), (*one).into());
        }
        many => {
            schema.insert("type".into(), many.to_vec().into());
        }
    }
    if let Some(values) = values {
        schema.insert("enum".into(), values.into());
    }
    Ok(())
}

fn types(written: Option<&Value>) -> Result<Vec<&'static str>, String> {
    let words: Vec<&str> = match written {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) if words.iter().all(|word| word.is_string() || word.is_null()) => {
            words.iter().map(|word| word.as_str().unwrap_or("null")).collect()
        }
        Some(other) => {
            return Err(format!("{} is no type", description_notes::shorten(&other.to_string())));
        }
    };
    let mut types = Vec::new();
    for word in words {
        match type_word(word) {
            // A schema that accepts any type has no `type`.
            Some(None) => return Ok(Vec::new()),
            Some(Some(kind)) => types.push(kind),
            None => return Err(format!("`{}` is no type", description_notes::shorten(word))),
        }
    }
    dedup(&mut types);
    Ok(types)
}

/// The distinct values of `enum` or `const`. An empty `enum` is dropped, because no value would match it.
fn values(fields: &Schema) -> Result<Option<Vec<Value>>, String> {
    let mut values = match (fields.get("enum"), fields.get("const")) {
        (Some(Value::Array(values)), _) => values.clone(),
        (None | Some(Value::Null), Some(value)) => vec![value.clone()],
        (None | Some(Value::Null), None) => return Ok(None),
        (Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))), _) => vec![value.clone()],
        (Some(Value::Object(_)), _) => return Err("its enum is an object, not a list".to_owned()),
    };
    let mut seen = Vec::with_capacity(values.len());
    values.retain(|value| {
        let is_new = !seen.contains(value);
        if is_new {
            seen.push(value.clone());
        }
        is_new
    });
    Ok((!values.is_empty()).then_some(values))
}

fn dedup(types: &mut Vec<&'static str>) {
    let mut seen = Vec::new();
    types.retain(|kind| {
        let is_new = !seen.contains(kind);
        seen.push(*kind);
        is_new
    });
}
