//! Makes the schema of a tool part of a document: references are rewritten, and what the document's dialect does not have is left out.
//!
//! Servers write schemas of several drafts, with identifiers, references into other documents and mistakes. One that cannot be made valid is
//! not embedded at all.

use serde_json::{Value, json};

use super::parts::Object;

/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 64;

/// The longest chain of references to references.
const MAX_HOPS: usize = 16;

/// The schema as the component `key` of a document; `None` if it cannot be one.
pub(super) fn embedded(schema: &Value, key: &str) -> Option<Value> {
    let base = format!("#/components/schemas/{key}");
    let mut references = Vec::new();
    let embedded = rewritten(schema, &base, 0, &mut references)?;
    let resolve = |reference: &str| target(&embedded, reference.strip_prefix(&base)?);
    let leads_to_schema = |reference: &String| {
        let mut found = resolve(reference);
        for _ in 0..MAX_HOPS {
            match found.and_then(|found| found.get("$ref")) {
                None => return found.is_some_and(|found| found.is_object() || found.is_boolean()),
                Some(next) => found = next.as_str().and_then(resolve),
            }
        }
        // A schema that is only a reference to itself.
        false
    };
    let is_sound = references.iter().all(leads_to_schema) && jsonschema::draft202012::meta::is_valid(&embedded);
    is_sound.then_some(embedded)
}

fn rewritten(schema: &Value, base: &str, depth: usize, references: &mut Vec<String>) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fields = match schema {
        // Generators of clients do not know that `true` is a schema.
        Value::Bool(true) => return Some(Object::new().into()),
        Value::Bool(false) => return Some(json!({"not": {}})),
        Value::Object(fields) => fields,
        _ => return None,
    };
    let mut out = Object::new();
    for (key, value) in fields {
        let mut inner = |value: &Value| rewritten(value, base, depth + 1, references);
        let kept = match key.as_str() {
            "$ref" => {
                let rest = value.as_str()?.strip_prefix('#')?;
                let reference = format!("{base}{rest}");
                references.push(reference.clone());
                Some(reference.into())
            }
            // A schema with a base of its own, or with references that depend on the path to it.
            "$id" | "id" if depth > 0 && value.is_string() => return None,
            "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" => return None,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                let named = value.as_object()?.iter();
                let named: Option<Object> = named.map(|(name, one)| Some((name.clone(), inner(one)?))).collect();
                Some(named?.into())
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let all: Option<Vec<Value>> = value.as_array()?.iter().map(inner).collect();
                Some(all?.into())
            }
            // A list of schemas has another name since draft 2020-12.
            "items" if value.is_array() => return None,
            "additionalProperties" if value.is_boolean() => Some(value.clone()),
            "items"
            | "additionalProperties"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Some(inner(value)?),
            "default" => is_plain_value(value, fields).then(|| value.clone()),
            // Draft 4 has flags here.
            "exclusiveMinimum" | "exclusiveMaximum" => value.is_number().then(|| value.clone()),
            "enum" | "required" | "examples" => value.is_array().then(|| value.clone()),
            "type" | "const" | "dependentRequired" => Some(value.clone()),
            "$schema" | "$id" | "id" | "$vocabulary" | "$comment" => None,
            // Annotations of other dialects. What is no schema must not look like one.
            _ => (!value.is_object() && !value.is_array()).then(|| value.clone()),
        };
        if let Some(kept) = kept {
            out.insert(key.clone(), kept);
        }
    }
    Some(out.into())
}

/// Whether a default is surely valid. Tools that read the document check it, and one that is wrong makes the document wrong.
fn is_plain_value(value: &Value, schema: &Object) -> bool {
    let has_type = match (schema.get("type").and_then(Value::as_str), value) {
        (Some("string"), Value::String(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_))
        | (Some("null"), Value::Null) => true,
        (Some("integer"), Value::Number(number)) => number.is_i64() || number.is_u64(),
        (Some("array"), Value::Array(items)) => items.is_empty(),
        (Some("object"), Value::Object(fields)) => fields.is_empty(),
        _ => false,
    };
    let is_plain = |key: &String| matches!(key.as_str(), "type" | "default" | "title" | "description" | "items");
    has_type && schema.keys().all(is_plain)
}

/// What a JSON Pointer, perhaps percent-encoded, points to.
fn target<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    root.pointer(pointer).or_else(|| root.pointer(&decoded(pointer)?))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embed(schema: &Value) -> Option<Value> {
        embedded(schema, "t.input")
    }

    #[test]
    fn references_are_rewritten() {
        let tree = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://x.example/tree", "type": "object",
            "properties": {"root": {"$ref": "#/$defs/node"}, "id": {"type": "string"}, "again": {"$ref": "#"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}});
        let embedded = embed(&tree).unwrap();
        let node = "#/components/schemas/t.input/$defs/node";
        assert_eq!(embedded["properties"]["root"]["$ref"], node);
        assert_eq!(embedded["$defs"]["node"]["properties"]["next"]["$ref"], node);
        assert_eq!(embedded["properties"]["again"]["$ref"], "#/components/schemas/t.input");
        assert_eq!(embedded["properties"]["id"], json!({"type": "string"}));
        assert_eq!((embedded.get("$schema"), embedded.get("$id")), (None, None));
    }

    #[test]
    fn a_reference_may_be_percent_encoded() {
        let schema = json!({"$defs": {"a b": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a%20b"}}});
        assert!(embed(&schema).is_some());
    }

    #[test]
    fn what_cannot_be_part_of_a_document_is_not_embedded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"not": deep});
        }
        for schema in [
            json!({"properties": {"x": {"$ref": "https://x.example/schema"}}}),
            json!({"properties": {"x": {"$ref": "other.json#/a"}}}),
            json!({"properties": {"x": {"$ref": "#/$defs/missing"}}}),
            json!({"properties": {"x": {"$ref": "#named"}}}),
            json!({"$ref": "#"}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"properties": {"x": {"$id": "inner", "type": "string"}}}),
            json!({"$dynamicRef": "#node"}),
            json!({"type": "strange"}),
            json!({"type": 7}),
            json!({"properties": ["x"]}),
            json!({"minLength": -1}),
            json!({"required": "x", "properties": {"x": 7}}),
            json!({"items": [{"type": "string"}]}),
            json!("object"),
            json!(null),
            deep,
        ] {
            assert_eq!(embed(&schema), None, "{schema}");
        }
    }

    #[test]
    fn words_of_other_dialects_and_doubtful_defaults_are_left_out() {
        let schema = json!({"type": "object", "discriminator": {"x": 1}, "x-order": [1], "nullable": true, "properties": {
            "a": {"type": "integer", "exclusiveMinimum": true, "minimum": 0, "default": 1},
            "b": {"type": "string", "default": null},
            "c": {"type": "string", "default": "fine"},
            "d": true,
        }, "additionalProperties": false});
        let expected = json!({"type": "object", "nullable": true, "properties": {
            "a": {"type": "integer", "minimum": 0},
            "b": {"type": "string"},
            "c": {"type": "string", "default": "fine"},
            "d": {},
        }, "additionalProperties": false});
        assert_eq!(embed(&schema), Some(expected));
    }
}
