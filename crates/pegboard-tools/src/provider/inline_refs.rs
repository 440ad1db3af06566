//! Inlines the references of a schema. Nothing is fetched, recursion is cut, and the size of the result is bounded.

use std::{borrow::Cow, collections::HashMap};

use serde_json::{Map, Value, json};

use super::description_notes;

/// The largest result, in bytes. The schemas that servers send are bounded to a quarter of it.
const MAX_BYTES: usize = 256 << 10;
/// The deepest nesting of the result.
const MAX_DEPTH: usize = 64;
/// The limits on nested references that are tried in turn until the result is small enough.
const REF_DEPTHS: [usize; 6] = [16, 8, 4, 2, 1, 0];

/// Keywords whose value is a schema or a list of schemas. Those in `BY_NAME` hold a map of schemas, all others hold data.
const ONE_OR_MANY: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const BY_NAME: &[&str] = &["dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Returns the schema without references and without definitions.
pub(super) fn inline(schema: &Value) -> Value {
    let mut anchors = HashMap::new();
    find_anchors(schema, &mut anchors);
    for max_refs in REF_DEPTHS {
        let mut inliner = Inliner {
            root: schema,
            anchors: &anchors,
            open: Vec::new(),
            max_refs,
            bytes_left: MAX_BYTES,
        };
        if let Ok(whole) = inliner.schema(schema, 0) {
            return whole;
        }
    }
    // Reached only if the schema is too large even without inlined references.
    json!({"type": "object"})
}

/// Collects the subschemas with an anchor.
fn find_anchors<'a>(schema: &'a Value, anchors: &mut HashMap<&'a str, &'a Value>) {
    match schema {
        Value::Object(fields) => {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = fields.get(key).and_then(Value::as_str) {
                    anchors.entry(name).or_insert(schema);
                }
            }
            fields.values().for_each(|value| find_anchors(value, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| find_anchors(item, anchors)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The inlined schema exceeds [`MAX_BYTES`].
struct TooLarge;

struct Inliner<'a> {
    root: &'a Value,
    anchors: &'a HashMap<&'a str, &'a Value>,
    /// The targets that are being inlined, the innermost last.
    open: Vec<*const Value>,
    max_refs: usize,
    bytes_left: usize,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<Value, TooLarge> {
        let Value::Object(fields) = schema else {
            return self.data(schema);
        };
        if depth > MAX_DEPTH {
            return Ok(json!({"description": "goes on deeper"}));
        }
        let reference = ["$ref", "$dynamicRef", "$recursiveRef"]
            .into_iter()
            .find_map(|key| fields.get(key).and_then(Value::as_str));
        let target = match reference {
            Some(reference) => Some(self.target(reference, depth)?),
            None => None,
        };
        let mut whole = Map::new();
        for (key, value) in fields {
            if key.starts_with('$') || key == "definitions" {
                continue;
            }
            self.spend(key.len() + 4)?;
            let value = match value {
                Value::Object(named) if BY_NAME.contains(&key.as_str()) => self.by_name(named, depth + 1)?,
                Value::Array(items) if is_schema_key(key) => self.list(items, depth + 1)?,
                value if is_schema_key(key) => self.schema(value, depth + 1)?,
                value => self.data(value)?,
            };
            whole.insert(key.clone(), value);
        }
        Ok(match (target, whole.is_empty()) {
            (None, _) => Value::Object(whole),
            (Some(target), true) => target,
            (Some(target), false) => {
                // Keywords beside a `$ref` apply in addition to its target.
                match whole.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
                    Value::Array(all) => all.insert(0, target),
                    other => *other = Value::Array(vec![target]),
                }
                Value::Object(whole)
            }
        })
    }

    fn by_name(&mut self, named: &'a Map<String, Value>, depth: usize) -> Result<Value, TooLarge> {
        let mut whole = Map::new();
        for (name, schema) in named {
            self.spend(name.len() + 4)?;
            whole.insert(name.clone(), self.schema(schema, depth)?);
        }
        Ok(Value::Object(whole))
    }

    fn list(&mut self, items: &'a [Value], depth: usize) -> Result<Value, TooLarge> {
        let items: Result<Vec<Value>, TooLarge> = items.iter().map(|item| self.schema(item, depth)).collect();
        items.map(Value::Array)
    }

    fn data(&mut self, value: &Value) -> Result<Value, TooLarge> {
        self.spend(value.to_string().len())?;
        Ok(value.clone())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }

    /// Returns the inlined target of a reference.
    fn target(&mut self, reference: &str, depth: usize) -> Result<Value, TooLarge> {
        let Some(target) = self.find(reference) else {
            let why = if reference.starts_with('#') {
                "its definition is missing"
            } else {
                "it is defined elsewhere"
            };
            return Ok(json!({ "description": why }));
        };
        if self.open.contains(&std::ptr::from_ref(target)) || self.open.len() >= self.max_refs {
            self.spend(100)?;
            return Ok(outline(target));
        }
        self.open.push(target);
        let whole = self.schema(target, depth);
        self.open.pop();
        whole
    }

    fn find(&self, reference: &str) -> Option<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        if !base.is_empty() && base.trim_end_matches('#') != own.trim_end_matches('#') {
            return None;
        }
        let fragment = decode(fragment);
        let target = match &*fragment {
            pointer if pointer.is_empty() || pointer.starts_with('/') => self.root.pointer(pointer)?,
            anchor => *self.anchors.get(anchor)?,
        };
        // A pointer may lead to a value that is not a schema.
        (target.is_object() || target.is_boolean()).then_some(target)
    }
}

fn is_schema_key(key: &str) -> bool {
    ONE_OR_MANY.contains(&key)
}

/// Returns a placeholder for a schema that is not inlined again: its type and its name.
fn outline(target: &Value) -> Value {
    let mut outline = Map::new();
    if let Some(kind) = target.get("type") {
        outline.insert("type".into(), kind.clone());
    }
    let name = target
        .get("title")
        .or_else(|| target.get("description"))
        .and_then(Value::as_str);
    let note = match name {
        Some(name) => format!("{name} (as described before)"),
        None => "as described before".to_owned(),
    };
    outline.insert("description".into(), description_notes::shorten(&note).into());
    Value::Object(outline)
}

/// Percent-decodes a fragment.
fn decode(fragment: &str) -> Cow<'_, str> {
    if !fragment.contains('%') {
        return fragment.into();
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "rows read better without references")]
    fn check(schema: Value, expected: Value) {
        assert_eq!(inline(&schema), expected);
    }

    #[test]
    fn any_pointer_into_the_schema_is_followed() {
        let text = json!({"type": "string"});
        for reference in [
            "#/$defs/A~1b%20c",
            "#/properties/x",
            "#spot",
            "http://own/#/properties/x",
        ] {
            check(
                json!({"$id": "http://own/", "$defs": {"A/b c": {"$anchor": "spot", "type": "string"}},
                       "properties": {"x": text, "y": {"$ref": reference}}}),
                json!({"properties": {"x": text, "y": text}}),
            );
        }
        check(
            json!({"definitions": {"t": {"type": "string"}}, "items": [{"$ref": "#/definitions/t"}]}),
            json!({"items": [text]}),
        );
    }

    #[test]
    fn what_stands_beside_a_reference_is_kept() {
        check(
            json!({"$defs": {"t": {"type": "string"}}, "items": {"$ref": "#/$defs/t", "description": "d"}}),
            json!({"items": {"description": "d", "allOf": [{"type": "string"}]}}),
        );
    }

    #[test]
    fn a_schema_that_holds_itself_is_cut() {
        let tree = json!({"type": "object", "title": "Node", "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}});
        check(
            json!({"$defs": {"node": tree}, "properties": {"root": {"$ref": "#/$defs/node"}}}),
            json!({"properties": {"root": {"type": "object", "title": "Node", "properties": {
                "children": {"type": "array", "items": {"type": "object", "description": "Node (as described before)"}}}}}}),
        );
        check(json!({"$ref": "#"}), json!({"description": "as described before"}));
    }

    #[test]
    fn nothing_is_fetched_and_nothing_is_missed() {
        check(
            json!({"items": {"$ref": "https://example.com/s.json"}}),
            json!({"items": {"description": "it is defined elsewhere"}}),
        );
        for reference in ["#/$defs/none", "#nowhere", "#/type"] {
            check(
                json!({"type": "object", "items": {"$ref": reference}}),
                json!({"type": "object", "items": {"description": "its definition is missing"}}),
            );
        }
    }

    #[test]
    fn data_and_names_that_look_like_references_are_left_alone() {
        let schema = json!({"default": {"$ref": "#/x"}, "properties": {"$ref": {"type": "string"}, "definitions": {}}});
        check(schema.clone(), schema);
    }

    #[test]
    fn a_schema_that_would_grow_without_end_stays_small() {
        // Each definition refers to the next one twice: a million subschemas when inlined.
        let mut definitions = Map::new();
        for at in 0..20 {
            let next = format!("#/$defs/d{}", at + 1);
            let part = json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}}});
            definitions.insert(format!("d{at}"), part);
        }
        definitions.insert("d20".into(), json!({"type": "string"}));
        let bomb =
            json!({"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}, "y": {"$ref": "#/$defs/d0"}}});
        let whole = inline(&bomb);
        assert!(whole.to_string().len() <= MAX_BYTES);
        assert_eq!(whole["properties"]["x"], whole["properties"]["y"]);
        assert_eq!(whole["properties"]["y"]["properties"]["b"]["type"], "object");
    }
}
