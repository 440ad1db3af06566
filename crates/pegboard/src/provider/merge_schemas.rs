//! Several schemas as one: `allOf`, `oneOf`, and unions that a dialect takes only in other places.

use serde_json::{Map, Value};

use super::{Schema, description_notes};

/// Keywords that say something about a schema rather than about what fits it.
pub(super) const ANNOTATIONS: &[&str] = &[
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];
/// How many alternatives are spelled out in a note.
const TOLD: usize = 8;

/// Writes `allOf` out, turns `oneOf` into `anyOf`, and a union of one into what it is.
pub(super) fn all(schema: &mut Schema) {
    if let Some(Value::Array(parts)) = schema.remove("allOf") {
        for part in objects(parts) {
            into(schema, part);
        }
    }
    if let Some(one_of) = schema.remove("oneOf") {
        union_into(schema, one_of);
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf")
        && branches.len() == 1
        && let Some(Value::Array(branches)) = schema.remove("anyOf")
    {
        for branch in objects(branches) {
            into(schema, branch);
        }
    }
}

fn objects(values: Vec<Value>) -> impl Iterator<Item = Schema> {
    values.into_iter().filter_map(|value| match value {
        Value::Object(schema) => Some(schema),
        _ => None,
    })
}

/// Adds a union to a schema. When there is one already, the other is only told.
fn union_into(schema: &mut Schema, union: Value) {
    if schema.contains_key("anyOf") {
        let told = description_notes::about("and one of", &union);
        description_notes::add(schema, told.as_slice());
    } else {
        schema.insert("anyOf".into(), union);
    }
}

/// Makes `base` take only what `part` takes too. Where that cannot be written in one schema, the part is told.
pub(super) fn into(base: &mut Schema, part: Schema) {
    let mut told = Vec::new();
    for (keyword, value) in part {
        let Some(own) = base.get_mut(&keyword) else {
            base.insert(keyword, value);
            continue;
        };
        if *own == value || ANNOTATIONS.contains(&keyword.as_str()) {
            continue;
        }
        match (keyword.as_str(), own, value) {
            ("type", own, value) => *own = common_types(own, &value),
            ("enum", Value::Array(own), Value::Array(others)) => {
                let both: Vec<Value> = own.iter().filter(|value| others.contains(value)).cloned().collect();
                if !both.is_empty() {
                    *own = both;
                }
            }
            ("properties", Value::Object(own), Value::Object(others)) => {
                for (name, other) in others {
                    match (own.get_mut(&name), other) {
                        (Some(Value::Object(own)), Value::Object(other)) => into(own, other),
                        (_, other) => {
                            own.insert(name, other);
                        }
                    }
                }
            }
            ("required", Value::Array(own), Value::Array(others)) => {
                own.extend(others);
                own.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                own.dedup();
            }
            ("items", Value::Object(own), Value::Object(other)) => into(own, other),
            // Each part closed itself to what the other parts add.
            ("additionalProperties", own, _) => *own = Value::Bool(true),
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", own, other) => {
                keep_if(own, other, |own, other| other > own);
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", own, other) => {
                keep_if(own, other, |own, other| other < own);
            }
            ("uniqueItems", own, _) => *own = Value::Bool(true),
            (keyword, _, other) => told.extend(description_notes::about(keyword, &other)),
        }
    }
    description_notes::add(base, &told);
}

fn keep_if(own: &mut Value, other: Value, is_narrower: fn(f64, f64) -> bool) {
    if let (Some(a), Some(b)) = (own.as_f64(), other.as_f64())
        && is_narrower(a, b)
    {
        *own = other;
    }
}

/// The types that both allow. When they have none in common, the first is believed.
fn common_types(own: &Value, other: &Value) -> Value {
    let (own_types, other_types) = (types(own), types(other));
    let mut both: Vec<&str> = Vec::new();
    for kind in &own_types {
        for other in &other_types {
            match (*kind, *other) {
                (a, b) if a == b => both.push(a),
                ("number", "integer") | ("integer", "number") => both.push("integer"),
                _ => {}
            }
        }
    }
    match both.as_slice() {
        [] => own.clone(),
        [one] => (*one).into(),
        many => many.to_vec().into(),
    }
}

/// The types of a `type` keyword.
pub(super) fn types(kind: &Value) -> Vec<&str> {
    match kind {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The types of a schema.
pub(super) fn types_of(schema: &Schema) -> Vec<&str> {
    schema.get("type").map(types).unwrap_or_default()
}

/// Turns an object with alternatives into one object that has the properties of all, of which only those are required that every
/// alternative requires. The alternatives are told. A schema that is no object, or has no alternatives, stays.
pub(super) fn flatten(schema: &mut Schema) {
    let is_object = |schema: &Schema| types_of(schema).contains(&"object") || schema.contains_key("properties");
    let Some(Value::Array(branches)) = schema.get("anyOf") else {
        return;
    };
    let branches: Vec<Schema> = objects(branches.clone()).collect();
    let of_objects: Vec<&Schema> = branches
        .iter()
        .filter(|branch| is_object(branch) || !branch.contains_key("type"))
        .collect();
    if of_objects.is_empty() || !(is_object(schema) || of_objects.iter().any(|branch| is_object(branch))) {
        return;
    }
    let told = alternatives(&of_objects);
    let required = required_by_all(&of_objects);
    let mut properties: Map<String, Value> = Map::new();
    for branch in &of_objects {
        let Some(Value::Object(own)) = branch.get("properties") else {
            continue;
        };
        for (name, property) in own {
            match properties.get_mut(name) {
                Some(known) => either(known, property),
                None => {
                    properties.insert(name.clone(), property.clone());
                }
            }
        }
    }
    schema.remove("anyOf");
    schema.insert("type".into(), "object".into());
    let mut joined = Schema::new();
    joined.insert("properties".into(), properties.into());
    if !required.is_empty() {
        joined.insert("required".into(), required.into());
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    into(schema, joined);
    description_notes::add(schema, told.as_slice());
}

/// Makes `known` take what `other` takes as well.
fn either(known: &mut Value, other: &Value) {
    if known == other {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (&mut *known, other)
        && a.get("type") == b.get("type")
        && let (Some(Value::Array(values)), Some(Value::Array(more))) = (a.get_mut("enum"), b.get("enum"))
    {
        for value in more {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        return;
    }
    let is_union = known
        .as_object()
        .is_some_and(|known| known.len() == 1 && known.contains_key("anyOf"));
    if !is_union {
        *known = Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(vec![known.take()]))]));
    }
    if let Some(Value::Array(branches)) = known.get_mut("anyOf")
        && !branches.contains(other)
    {
        branches.push(other.clone());
    }
}

fn required(schema: &Schema) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn required_by_all(branches: &[&Schema]) -> Vec<String> {
    let mut names = branches.first().map(|branch| required(branch)).unwrap_or_default();
    for branch in branches {
        let own = required(branch);
        names.retain(|name| own.contains(name));
    }
    names
}

/// What each alternative needs, in words.
fn alternatives(branches: &[&Schema]) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for branch in branches {
        let needs: Vec<String> = required(branch)
            .into_iter()
            .map(|name| match only_value(branch, &name) {
                Some(value) => format!("{name} = {value}"),
                None => name,
            })
            .collect();
        let needs = needs.join(", ");
        if !needs.is_empty() && !told.contains(&needs) {
            told.push(needs);
        }
    }
    if told.len() < 2 {
        return None;
    }
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    let mut text = format!("give one of these: {}", told.join(" | "));
    if more > 0 {
        text.push_str(&format!(" | {more} more"));
    }
    Some(text)
}

/// The one value that a property may have.
fn only_value<'a>(branch: &'a Schema, name: &str) -> Option<&'a Value> {
    let values = branch.get("properties")?.get(name)?.get("enum")?.as_array()?;
    match values.as_slice() {
        [value] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "rows read better without references")]
    fn object(value: Value) -> Schema {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn parts_become_one_schema_that_takes_what_all_take() {
        let check = |base: Value, part: Value, expected: Value| {
            let mut base = object(base);
            into(&mut base, object(part));
            assert_eq!(Value::Object(base), expected);
        };
        check(
            json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b", "a"], "description": "d"}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a", "b"],
                   "description": "d"}),
        );
        check(
            json!({"minimum": 1, "maximum": 9, "enum": [1, 2, 3], "title": "A"}),
            json!({"minimum": 2, "maximum": 99, "enum": [2, 3, 4], "title": "B"}),
            json!({"minimum": 2, "maximum": 9, "enum": [2, 3], "title": "A"}),
        );
        check(
            json!({"pattern": "^a"}),
            json!({"pattern": "b$"}),
            json!({"pattern": "^a", "description": "pattern: b$"}),
        );
    }

    #[test]
    fn an_object_with_alternatives_becomes_one_with_all_their_properties() {
        let mut schema = object(
            json!({"type": "object", "properties": {"id": {}}, "required": ["id"], "anyOf": [
                {"type": "object", "properties": {"kind": {"type": "string", "enum": ["a"]}, "x": {"type": "string"}}, "required": ["kind", "x"]},
                {"type": "object", "properties": {"kind": {"type": "string", "enum": ["b"]}, "x": {"type": "integer"}}, "required": ["kind"]},
            ]}),
        );
        flatten(&mut schema);
        assert_eq!(
            Value::Object(schema),
            json!({"type": "object", "required": ["id", "kind"], "properties": {
                "id": {}, "kind": {"type": "string", "enum": ["a", "b"]}, "x": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            }, "description": "give one of these: kind = \"a\", x | kind = \"b\""})
        );
    }

    #[test]
    fn alternatives_that_only_require_are_told() {
        let mut schema = object(json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [
            {"required": ["a"]}, {"required": ["b"]}]}));
        flatten(&mut schema);
        assert_eq!(
            Value::Object(schema),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "description": "give one of these: a | b"})
        );
    }

    #[test]
    fn a_union_of_other_things_stays() {
        let schema = object(json!({"anyOf": [{"type": "string"}, {"type": "null"}]}));
        let mut same = schema.clone();
        flatten(&mut same);
        assert_eq!(same, schema);
    }
}
