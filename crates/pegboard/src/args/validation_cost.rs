//! How much work a check would be. A schema with references can say in a few lines that a value is to be looked at a million times.

use serde_json::Value;

/// How many pairs of a schema and a value may be looked at.
const MAX_VISITS: usize = 20_000;
/// How deep references may lead without descending into the value.
const MAX_DEPTH: usize = 256;

/// Whether the value can be checked in bounded time.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let mut work = Work {
        root: schema,
        left: MAX_VISITS,
    };
    work.visit(schema, value, 0).is_some()
}

struct Work<'s> {
    root: &'s Value,
    left: usize,
}

impl Work<'_> {
    fn visit(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let Value::Object(keywords) = schema else {
            return Some(());
        };
        for (keyword, part) in keywords {
            match (keyword.as_str(), part, value) {
                ("$ref", Value::String(target), _) => {
                    let root = self.root;
                    if let Some(target) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
                        self.visit(target, value, depth + 1)?;
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => {
                    parts.iter().try_for_each(|part| self.visit(part, value, depth + 1))?;
                }
                ("not" | "if" | "then" | "else", part, _) => self.visit(part, value, depth + 1)?,
                ("dependentSchemas", Value::Object(parts), _) => {
                    parts.values().try_for_each(|part| self.visit(part, value, depth + 1))?;
                }
                ("properties", Value::Object(parts), Value::Object(fields)) => {
                    for (name, part) in parts {
                        if let Some(field) = fields.get(name) {
                            self.visit(part, field, depth + 1)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(parts), Value::Object(fields)) => {
                    for part in parts.values() {
                        fields
                            .values()
                            .try_for_each(|field| self.visit(part, field, depth + 1))?;
                    }
                }
                ("additionalProperties" | "unevaluatedProperties", part, Value::Object(fields)) => {
                    fields
                        .values()
                        .try_for_each(|field| self.visit(part, field, depth + 1))?;
                }
                ("items" | "additionalItems" | "unevaluatedItems" | "contains", part, Value::Array(items)) => {
                    items.iter().try_for_each(|item| self.visit(part, item, depth + 1))?;
                }
                ("prefixItems", Value::Array(parts), Value::Array(items)) => {
                    let mut pairs = parts.iter().zip(items);
                    pairs.try_for_each(|(part, item)| self.visit(part, item, depth + 1))?;
                }
                _ => {}
            }
        }
        Some(())
    }
}
