//! Makes the schema of a tool part of a document: references are rewritten, and what the document's dialect does not have is left out.
//!
//! Every schema that is referred to becomes a component of its own, because generators of clients do not follow a reference into a component.
//! Titles are left out: generators name types after them, and leave out operations if two types have the same name.
//!
//! Servers write schemas of several drafts, with identifiers, references into other documents and mistakes. One that cannot be made valid is
//! not embedded at all.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::parts::{Object, reference};

/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 64;

/// The longest chain of references to references.
const MAX_HOPS: usize = 16;

/// The most components that one schema becomes.
const MAX_COMPONENTS: usize = 256;

/// The most parts of all components of one schema. Schemas that are referred to in each other's middle are repeated.
const MAX_PARTS: usize = 100_000;

/// The components that a schema becomes, the first with the name `key`; `None` if it cannot be part of a document.
pub(super) fn embed_schema(schema: &Value, key: &str) -> Option<Vec<(String, Value)>> {
    let mut embedding = Embedding {
        root: schema,
        key,
        names: BTreeMap::new(),
        waiting: Vec::new(),
        parts: 0,
    };
    embedding.component("")?;
    let mut components = Vec::new();
    while let Some((name, pointer)) = embedding.waiting.pop() {
        let component = embedding.rewrite(embedding.resolve(&pointer)?, 0)?;
        if !jsonschema::draft202012::meta::is_valid(&component) {
            return None;
        }
        components.push((name, component));
    }
    Some(components)
}

/// One schema on its way into the document.
struct Embedding<'s> {
    root: &'s Value,
    key: &'s str,
    /// The component of each part that is referred to, by the JSON Pointer to it.
    names: BTreeMap<String, String>,
    /// The components that are not written yet, with their pointers.
    waiting: Vec<(String, String)>,
    parts: usize,
}

impl<'s> Embedding<'s> {
    /// Returns the name of the component for the part that a pointer leads to.
    fn component(&mut self, pointer: &str) -> Option<String> {
        let pointer = self.last_pointer(pointer)?;
        if let Some(name) = self.names.get(&pointer) {
            return Some(name.clone());
        }
        if self.names.len() == MAX_COMPONENTS {
            return None;
        }
        let name = match self.names.is_empty() {
            true => self.key.to_owned(),
            false => self.free_name(&pointer),
        };
        self.names.insert(pointer.clone(), name.clone());
        self.waiting.push((name.clone(), pointer));
        Some(name)
    }

    /// A name that no other component of this schema has: that of the definition, after the name of the whole.
    fn free_name(&self, pointer: &str) -> String {
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain: String = last.chars().filter(char::is_ascii_alphanumeric).collect();
        let wanted = format!("{}.{}", self.key, if plain.is_empty() { "part" } else { &plain });
        let is_taken = |name: &String| self.names.values().any(|taken| taken.eq_ignore_ascii_case(name));
        let numbered = (2..).map(|number| format!("{wanted}{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(numbered);
        names.find(|name| !is_taken(name)).unwrap_or(wanted)
    }

    /// Follows references to references. A component must be more than a reference.
    fn last_pointer(&self, pointer: &str) -> Option<String> {
        let mut pointer = self.decode(pointer)?;
        for _ in 0..MAX_HOPS {
            match self.resolve(&pointer)?.get("$ref") {
                None => return Some(pointer),
                Some(next) => pointer = self.decode(next.as_str()?.strip_prefix('#')?)?,
            }
        }
        // A schema that is only a reference to itself.
        None
    }

    /// The part that a pointer leads to.
    fn resolve(&self, pointer: &str) -> Option<&'s Value> {
        self.root
            .pointer(pointer)
            .filter(|found| found.is_object() || found.is_boolean())
    }

    /// A JSON Pointer, which may be percent-encoded.
    fn decode(&self, pointer: &str) -> Option<String> {
        match self.root.pointer(pointer) {
            Some(_) => Some(pointer.to_owned()),
            None => decode_percent(pointer),
        }
    }

    fn rewrite(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
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
            if let Some(kept) = self.rewrite_field(key, value, fields, depth)? {
                out.insert(key.clone(), kept);
            }
        }
        Some(out.into())
    }

    /// Rewrites the value of one keyword. Returns `Some(None)` if it is left out.
    #[expect(
        clippy::option_option,
        reason = "the schema is refused, the keyword is left out, or it is kept"
    )]
    fn rewrite_field(&mut self, key: &str, value: &Value, fields: &Object, depth: usize) -> Option<Option<Value>> {
        let mut inner = |value: &Value| self.rewrite(value, depth + 1);
        Some(match key {
            "$ref" => {
                let name = self.component(value.as_str()?.strip_prefix('#')?)?;
                reference(&name).get("$ref").cloned()
            }
            // A schema with a base of its own, or with references that depend on the path to it.
            "$id" | "id" if depth > 0 && value.is_string() => return None,
            "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" => return None,
            // Each definition that is used is a component.
            "$defs" | "definitions" => value.is_object().then_some(None)?,
            "properties" | "patternProperties" | "dependentSchemas" => {
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
            "$schema" | "$id" | "id" | "$vocabulary" | "$comment" | "title" => None,
            // Annotations of other dialects. What is no schema must not look like one.
            _ => (!value.is_object() && !value.is_array()).then(|| value.clone()),
        })
    }
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

fn decode_percent(text: &str) -> Option<String> {
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
        let components = embed_schema(schema, "t.input")?;
        Some(components.into_iter().collect::<Object>().into())
    }

    #[test]
    fn every_definition_that_is_used_is_a_component_and_titles_are_left_out() {
        let tree = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://x.example/tree", "type": "object",
        "title": "Input", "properties": {
            "root": {"$ref": "#/$defs/node"},
            "id": {"type": "string", "title": "Id"},
            "title": {"type": "string"},
            "again": {"$ref": "#"},
            "part": {"$ref": "#/$defs/node/properties/next"},
            "alias": {"$ref": "#/$defs/alias"},
            "deep": {"$ref": "#/properties/id"},
        },
        "$defs": {
            "node": {"type": "object", "title": "Node", "properties": {"next": {"$ref": "#/$defs/node"}}},
            "alias": {"$ref": "#/$defs/node"},
            "unused": {"type": "string"},
        }});
        let node = json!({"$ref": "#/components/schemas/t.input.node"});
        let expected = json!({
            "t.input": {"type": "object", "properties": {
                "root": node,
                "id": {"type": "string"},
                "title": {"type": "string"},
                "again": {"$ref": "#/components/schemas/t.input"},
                "part": node,
                "alias": node,
                "deep": {"$ref": "#/components/schemas/t.input.id"},
            }},
            "t.input.node": {"type": "object", "properties": {"next": node}},
            "t.input.id": {"type": "string"},
        });
        assert_eq!(embed(&tree), Some(expected));
    }

    #[test]
    fn a_schema_that_is_a_reference_to_its_definition_is_that_definition() {
        let schema = json!({"$ref": "#/definitions/In", "definitions": {"In": {"type": "object", "properties": {"me": {"$ref": "#"}}}}});
        let expected =
            json!({"t.input": {"type": "object", "properties": {"me": {"$ref": "#/components/schemas/t.input"}}}});
        assert_eq!(embed(&schema), Some(expected));
    }

    #[test]
    fn definitions_with_the_same_letters_have_names_of_their_own() {
        let schema = json!({"properties": {"a": {"$ref": "#/$defs/my-x"}, "b": {"$ref": "#/$defs/myX"}},
            "$defs": {"my-x": {"type": "string"}, "myX": {"type": "integer"}}});
        let components = embed(&schema).unwrap();
        let mut names: Vec<&String> = components.as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(names, ["t.input", "t.input.myX2", "t.input.myx"]);
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
            json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
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
        assert_eq!(embed(&schema), Some(json!({"t.input": expected})));
    }
}
