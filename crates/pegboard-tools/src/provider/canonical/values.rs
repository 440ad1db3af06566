//! Normalises keywords whose value is a number or arbitrary JSON.

use serde_json::{Number, Value};

use crate::provider::schema::Schema;

/// Reads a non-negative integer, also if it is written as `3.0` or `"3"`.
pub(super) fn count(value: &Value) -> Option<Value> {
    let number = number(value)?;
    match number.as_u64() {
        Some(count) => Some(count.into()),
        None => {
            let float = number.as_f64()?;
            // Larger numbers are no useful limit, and may not be exact.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole, not negative and small"
            )]
            let count = (float.fract() == 0.0 && (0.0..1e15).contains(&float)).then_some(float as u64)?;
            Some(count.into())
        }
    }
}

/// Reads a number, also if it is written as a string.
pub(crate) fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            let number: Number = text.trim().parse().ok()?;
            Some(Value::Number(number))
        }
        _ => None,
    }
}

/// Converts draft 4 bounds, where `exclusiveMinimum: true` makes `minimum` exclusive.
pub(super) fn bounds(fields: &Schema, schema: &mut Schema) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if fields.get(exclusive) == Some(&Value::Bool(true))
            && let Some(value) = schema.remove(bound)
        {
            schema.insert(exclusive.to_owned(), value);
        }
    }
}

/// Copies `default`, and `example` or `examples` as `examples`.
pub(super) fn data(fields: &Schema, schema: &mut Schema) {
    if let Some(default) = fields.get("default") {
        schema.insert("default".into(), default.clone());
    }
    match (fields.get("examples"), fields.get("example")) {
        (Some(Value::Array(examples)), _) if !examples.is_empty() => {
            schema.insert("examples".into(), examples.clone().into());
        }
        (None, Some(example)) => {
            schema.insert("examples".into(), vec![example.clone()].into());
        }
        _ => {}
    }
}
