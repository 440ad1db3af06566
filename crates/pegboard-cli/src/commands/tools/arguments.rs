//! A table of a tool's arguments, read from its schema.

use serde_json::Value;

use crate::output::{Table, one_line};

/// One row per argument: name, type, required or optional, description.
pub(super) fn table(schema: &Value) -> Table {
    let mut table = Table::with_indent(6);
    let required = schema.get("required").and_then(Value::as_array);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return table;
    };
    for (name, property) in properties {
        let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
        let need = if is_required { "required" } else { "optional" };
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        table.row([
            one_line(name),
            one_line(&kind(property)),
            need.to_owned(),
            one_line(description),
        ]);
    }
    table
}

/// The type of an argument: its `enum` values if they are few, else its `type`.
fn kind(property: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let joined = |values: &Vec<Value>| values.iter().map(word).collect::<Vec<_>>().join("|");
    match (property.get("enum"), property.get("type")) {
        (Some(Value::Array(values)), _) if values.len() <= 8 => joined(values),
        (_, Some(Value::Array(kinds))) => joined(kinds),
        (_, Some(Value::String(kind))) => kind.clone(),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_shown_with_type_and_need() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "description": "The\nfirst"},
            "b": {"type": ["integer", "null"]},
            "c": {"enum": ["x", 1]},
            "d": true,
        }});
        let lines = [
            "      a  string        required  The first",
            "      b  integer|null  optional",
            "      c  x|1           optional",
            "      d  any           optional\n",
        ];
        assert_eq!(table(&schema).render(None), lines.join("\n"));
        assert_eq!(table(&json!({"type": "object"})).render(None), "");
    }
}
