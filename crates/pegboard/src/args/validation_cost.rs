//! Estimates the cost of a validation. A small schema with references can make a validator visit a value a million times.

use serde_json::Value;

/// The most pairs of a subschema and a value that a validation may visit.
const MAX_VISITS: usize = 20_000;
/// The deepest nesting of subschemas that is followed.
const MAX_DEPTH: usize = 256;

/// Whether the value can be validated within the limits.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let mut estimate = CostEstimate {
        root: schema,
        visits_left: MAX_VISITS,
    };
    estimate.visit(schema, value, 0).is_some()
}

struct CostEstimate<'s> {
    root: &'s Value,
    visits_left: usize,
}

impl CostEstimate<'_> {
    fn visit(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        self.visits_left = self.visits_left.checked_sub(1)?;
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
