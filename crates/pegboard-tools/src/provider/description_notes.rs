//! Notes in a schema's description about constraints that the dialect cannot express.

use serde_json::Value;

use super::schema::Schema;

/// The longest note about one keyword, in bytes.
const MAX_NOTE: usize = 200;

/// Appends notes to the description of a schema.
pub(super) fn add(schema: &mut Schema, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let note = notes.join("; ");
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => format!("{} ({note})", text.trim_end()),
        _ => note,
    };
    schema.insert("description".into(), text.into());
}

/// Writes the note about a keyword that a dialect does not accept. Returns `None` if the model does not need to know.
pub(super) fn about(keyword: &str, value: &Value) -> Option<String> {
    match (keyword, value) {
        // They do not restrict what the model may write.
        ("title" | "readOnly" | "writeOnly" | "additionalProperties", Value::Bool(_) | Value::String(_)) => None,
        ("uniqueItems" | "deprecated", Value::Bool(false)) => None,
        ("uniqueItems", _) => Some("no item twice".to_owned()),
        ("deprecated", _) => Some("deprecated".to_owned()),
        ("then" | "else" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(_)) => None,
        (keyword, Value::String(text)) => Some(shorten(&format!("{keyword}: {text}"))),
        (keyword, value) => Some(shorten(&format!("{keyword}: {value}"))),
    }
}

/// Truncates a text to the length of a note.
pub(super) fn shorten(text: &str) -> String {
    if text.len() <= MAX_NOTE {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_NOTE)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn remarks_follow_the_description_in_brackets() {
        let check = |mut schema: Value, notes: &[&str], expected: &str| {
            let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
            add(schema.as_object_mut().unwrap(), &notes);
            assert_eq!(schema["description"], expected);
        };
        check(json!({"description": "A name. "}), &["a", "b"], "A name. (a; b)");
        check(json!({}), &["a"], "a");
        check(json!({"description": "A name."}), &[], "A name.");
    }

    #[test]
    fn a_keyword_is_told_with_its_value_unless_it_says_nothing() {
        let check = |keyword: &str, value: Value, expected: Option<&str>| {
            assert_eq!(about(keyword, &value).as_deref(), expected);
        };
        check("pattern", json!("^a$"), Some("pattern: ^a$"));
        check("minimum", json!(3), Some("minimum: 3"));
        check("default", json!(null), Some("default: null"));
        check("title", json!("T"), None);
        check("additionalProperties", json!(false), None);
        check("uniqueItems", json!(true), Some("no item twice"));
        let long = about("not", &json!({"enum": "x".repeat(999)})).unwrap();
        assert!(long.len() < 210 && long.ends_with('…'));
    }
}
