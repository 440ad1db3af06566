//! Merges schemas: `allOf`, `oneOf`, and unions in places where a dialect does not accept them.

use serde_json::{Map, Value};

use super::{
    description_notes,
    schema::{Schema, is_annotation, required_names, type_names, types_of},
};

/// The most alternatives that a note lists.
const MAX_ALTERNATIVES: usize = 8;

/// Merges `allOf` into the schema, turns `oneOf` into `anyOf`, and merges a union of one branch.
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

/// Adds a union to a schema. If it has one already, the new one becomes a note.
fn union_into(schema: &mut Schema, union: Value) {
    if schema.contains_key("anyOf") {
        let notes = description_notes::about("and one of", &union);
        description_notes::add(schema, notes.as_slice());
    } else {
        schema.insert("anyOf".into(), union);
    }
}

/// Restricts `base` to the values that `part` accepts too. What one schema cannot express becomes a note.
pub(super) fn into(base: &mut Schema, part: Schema) {
    let mut notes = Vec::new();
    for (keyword, value) in part {
        let Some(own) = base.get_mut(&keyword) else {
            base.insert(keyword, value);
            continue;
        };
        if *own == value || is_annotation(&keyword) {
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
            // Each part restricts the properties of the others too, so the merged schema cannot restrict any.
            ("additionalProperties", own, _) => *own = Value::Bool(true),
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", own, other) => {
                keep_if(own, other, |own, other| other > own);
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", own, other) => {
                keep_if(own, other, |own, other| other < own);
            }
            ("uniqueItems", own, _) => *own = Value::Bool(true),
            (keyword, _, other) => notes.extend(description_notes::about(keyword, &other)),
        }
    }
    description_notes::add(base, &notes);
}

fn keep_if(own: &mut Value, other: Value, is_narrower: fn(f64, f64) -> bool) {
    if let (Some(a), Some(b)) = (own.as_f64(), other.as_f64())
        && is_narrower(a, b)
    {
        *own = other;
    }
}

/// The types that both allow, or those of `own` if there are none.
fn common_types(own: &Value, other: &Value) -> Value {
    let (own_types, other_types) = (type_names(own), type_names(other));
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

/// Merges a union of objects into one object with the properties of all branches. It requires only what every branch requires, and lists the
/// alternatives in a note. Other schemas stay as they are.
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
    let notes = alternatives(&of_objects);
    let required = names_required_by_all(&of_objects);
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
    description_notes::add(schema, notes.as_slice());
}

/// Extends `known` to accept the values of `other` as well.
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

fn names_required_by_all(branches: &[&Schema]) -> Vec<String> {
    let Some((first, others)) = branches.split_first() else {
        return Vec::new();
    };
    let by_others = |name: &&str| {
        others
            .iter()
            .all(|branch| required_names(branch).any(|other| other == *name))
    };
    required_names(first).filter(by_others).map(str::to_owned).collect()
}

/// Describes what each alternative requires.
fn alternatives(branches: &[&Schema]) -> Option<String> {
    let mut notes: Vec<String> = Vec::new();
    for branch in branches {
        let needs: Vec<String> = required_names(branch)
            .map(|name| match only_value(branch, name) {
                Some(value) => format!("{name} = {value}"),
                None => name.to_owned(),
            })
            .collect();
        let needs = needs.join(", ");
        if !needs.is_empty() && !notes.contains(&needs) {
            notes.push(needs);
        }
    }
    if notes.len() < 2 {
        return None;
    }
    let more = notes.len().saturating_sub(MAX_ALTERNATIVES);
    notes.truncate(MAX_ALTERNATIVES);
    let mut text = format!("give one of these: {}", notes.join(" | "));
    if more > 0 {
        text.push_str(&format!(" | {more} more"));
    }
    Some(text)
}

/// The only value of a property's `enum`.
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
    fn alternatives_that_only_require_are_notes() {
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
