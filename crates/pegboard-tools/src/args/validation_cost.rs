//! Estimates the cost of a validation. A small schema with references, or a list of values in a schema and another one in a result, can make
//! a validator work for minutes.

use serde_json::Value;

/// How many steps any validation may take. A step is a pair of a subschema and a value, or an entry of a list that a value is compared with.
const FREE_STEPS: usize = 20_000;
/// How many more steps it may take for each part of the value, so that the cost grows linearly.
const STEPS_PER_PART: usize = 16;
/// The most steps of all, for values of any size: about 100 ms.
const MAX_STEPS: usize = 2_000_000;
/// How many bytes of a string are searched in one step.
const BYTES_PER_STEP: usize = 32;
/// The deepest nesting of subschemas that is followed.
const MAX_DEPTH: usize = 256;

/// The size of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaSize {
    /// The number of its parts, values included.
    pub(super) parts: usize,
    pub(super) has_references: bool,
}

/// Whether the value can be validated within the limits.
pub(super) fn is_bounded(schema: &Value, size: SchemaSize, value: &Value) -> bool {
    let parts = parts(value);
    // Without references, each part of the schema meets each part of the value at most once or twice.
    if !size.has_references && size.parts.saturating_mul(parts) <= FREE_STEPS {
        return true;
    }
    let mut estimate = CostEstimate {
        root: schema,
        steps_left: FREE_STEPS
            .saturating_add(parts.saturating_mul(STEPS_PER_PART))
            .min(MAX_STEPS),
    };
    estimate.visit(schema, value, 0).is_some()
}

/// The number of values in a value, where a long string counts by its length. The value was parsed, so its depth is bounded.
pub(super) fn parts(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(parts).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::String(text) => 1 + text.len() / BYTES_PER_STEP,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

struct CostEstimate<'s> {
    root: &'s Value,
    steps_left: usize,
}

impl CostEstimate<'_> {
    fn take(&mut self, steps: usize) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(steps)?;
        Some(())
    }

    fn visit(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        self.take(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let Value::Object(keywords) = schema else {
            return Some(());
        };
        for (keyword, part) in keywords {
            self.keyword(keyword, part, value, depth + 1)?;
        }
        Some(())
    }

    fn keyword(&mut self, keyword: &str, part: &Value, value: &Value, depth: usize) -> Option<()> {
        match (keyword, part, value) {
            ("$ref", Value::String(target), _) => {
                let root = self.root;
                if let Some(target) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
                    self.visit(target, value, depth)?;
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => self.all(parts, value, depth)?,
            ("not" | "if" | "then" | "else", part, _) => self.visit(part, value, depth)?,
            ("dependentSchemas" | "dependencies", Value::Object(parts), _) => self.all(parts.values(), value, depth)?,
            ("properties", Value::Object(parts), Value::Object(fields)) => {
                for (name, part) in parts {
                    match fields.get(name) {
                        Some(field) => self.visit(part, field, depth)?,
                        None => self.take(1)?,
                    }
                }
            }
            ("patternProperties", Value::Object(parts), Value::Object(fields)) => {
                for part in parts.values() {
                    self.each(part, fields.values(), depth)?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties", part, Value::Object(fields)) => {
                self.each(part, fields.values(), depth)?;
            }
            ("propertyNames", part, Value::Object(fields)) => {
                for name in fields.keys() {
                    self.take(name.len() / BYTES_PER_STEP)?;
                    self.visit(part, &Value::Null, depth)?;
                }
            }
            ("items" | "prefixItems", Value::Array(parts), Value::Array(items)) => {
                let mut pairs = parts.iter().zip(items);
                pairs.try_for_each(|(part, item)| self.visit(part, item, depth))?;
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", part, Value::Array(items)) => {
                self.each(part, items, depth)?;
            }
            ("uniqueItems", _, Value::Array(items)) => self.take(items.len())?,
            ("enum" | "required", Value::Array(entries), _) => self.take(entries.len())?,
            ("pattern" | "minLength" | "maxLength", _, Value::String(text)) => {
                self.take(text.len() / BYTES_PER_STEP)?
            }
            _ => {}
        }
        Some(())
    }

    fn all<'p>(&mut self, parts: impl IntoIterator<Item = &'p Value>, value: &Value, depth: usize) -> Option<()> {
        parts.into_iter().try_for_each(|part| self.visit(part, value, depth))
    }

    fn each<'v>(&mut self, part: &Value, values: impl IntoIterator<Item = &'v Value>, depth: usize) -> Option<()> {
        values.into_iter().try_for_each(|value| self.visit(part, value, depth))
    }
}
