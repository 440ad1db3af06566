//! JSON Schemas as people read them: rows of fields, and the controls of a form.

use serde_json::{Map, Value};

use crate::json::brief;

/// How deep fields within fields are listed.
const MAX_DEPTH: usize = 5;
/// The most fields that are listed.
const MAX_FIELDS: usize = 300;
/// The most choices of a list, and the most bytes of them together. A field with more is written as JSON: references repeat them for each field.
const MAX_CHOICES: usize = 100;
const MAX_CHOICE_BYTES: usize = 4 << 10;
/// The longest description of a field, in bytes.
const MAX_DESCRIPTION: usize = 2 << 10;

/// A field of a schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Its path from the root, such as `filter.states[]`.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Its type, with what limits its values.
    pub(crate) type_text: String,
    pub(crate) is_required: bool,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<String>,
}

/// The control with which a person writes a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Text,
    Number {
        is_integer: bool,
    },
    Flag,
    Choice(Vec<Value>),
    /// Anything else, as JSON.
    Json,
}

/// All fields of a schema, also those within others.
pub(crate) fn all_fields(schema: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    collect(schema, schema, "", 0, &mut found);
    found
}

/// The fields of the root, for a form.
pub(crate) fn form_fields(schema: &Value) -> Vec<Field> {
    let fields = properties(schema, resolve(schema, schema));
    fields
        .into_iter()
        .take(MAX_FIELDS)
        .map(|(name, value, is_required)| field(schema, name, value, is_required))
        .collect()
}

fn collect(root: &Value, schema: &Value, prefix: &str, depth: usize, found: &mut Vec<Field>) {
    if depth >= MAX_DEPTH {
        return;
    }
    for (name, value, is_required) in properties(root, resolve(root, schema)) {
        if found.len() >= MAX_FIELDS {
            return;
        }
        let path = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        };
        let mut one = field(root, name, value, is_required);
        one.path.clone_from(&path);
        found.push(one);
        let inner = main_variant(root, value);
        match inner.get("items") {
            Some(items) => collect(root, main_variant(root, items), &format!("{path}[]"), depth + 1, found),
            None => collect(root, inner, &path, depth + 1, found),
        }
    }
}

fn properties<'a>(_root: &'a Value, schema: &'a Value) -> Vec<(&'a str, &'a Value, bool)> {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut listed: Vec<_> = properties
        .map(|(name, value)| (name.as_str(), value, required.contains(&name.as_str())))
        .collect();
    listed.sort_by_key(|(_, _, is_required)| !is_required);
    listed
}

fn field(root: &Value, name: &str, schema: &Value, is_required: bool) -> Field {
    let main = main_variant(root, schema);
    let text = |key: &str| schema[key].as_str().or_else(|| main[key].as_str());
    Field {
        path: name.to_owned(),
        kind: kind(main),
        type_text: type_text(root, main, 0),
        is_required,
        description: text("description")
            .or_else(|| text("title"))
            .map(|text| text[..text.floor_char_boundary(MAX_DESCRIPTION)].to_owned()),
        default: schema.get("default").or_else(|| main.get("default")).map(brief),
    }
}

/// Follows references within the document, a few times.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut at = schema;
    for _ in 0..8 {
        let Some(reference) = at["$ref"].as_str() else {
            return at;
        };
        let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        match found {
            Some(found) => at = found,
            None => return at,
        }
    }
    at
}

/// The schema itself, or of several alternatives the first one that is not `null`.
fn main_variant<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = resolve(root, schema);
    for key in ["anyOf", "oneOf", "allOf"] {
        let variants = schema[key].as_array().into_iter().flatten();
        if let Some(found) = variants
            .map(|variant| resolve(root, variant))
            .find(|variant| variant["type"] != "null")
        {
            return found;
        }
    }
    schema
}

fn kind(schema: &Value) -> Kind {
    if let Some(choices) = schema["enum"].as_array() {
        return match is_short(choices) {
            true => Kind::Choice(choices.clone()),
            false => Kind::Json,
        };
    }
    match type_name(schema) {
        "string" => Kind::Text,
        "integer" => Kind::Number { is_integer: true },
        "number" => Kind::Number { is_integer: false },
        "boolean" => Kind::Flag,
        _ => Kind::Json,
    }
}

fn is_short(choices: &[Value]) -> bool {
    let bytes = |choice: &Value| match choice {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => MAX_CHOICE_BYTES,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    };
    choices.len() <= MAX_CHOICES && choices.iter().map(bytes).sum::<usize>() < MAX_CHOICE_BYTES
}

fn type_name(schema: &Value) -> &str {
    let several = || {
        schema["type"]
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null")
    };
    let implied = || schema.get("properties").map(|_| "object");
    schema["type"]
        .as_str()
        .or_else(several)
        .or_else(implied)
        .unwrap_or("any")
}

/// The type, with what limits the values. `depth` is that of lists within lists, which may refer to themselves.
fn type_text(root: &Value, schema: &Value, depth: usize) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let shown: Vec<String> = choices.iter().take(12).map(brief).collect();
        let more = if choices.len() > 12 { ", …" } else { "" };
        return format!("one of {}{more}", shown.join(", "));
    }
    let mut text = match type_name(schema) {
        "array" => match schema.get("items") {
            Some(items) if depth < MAX_DEPTH => {
                format!("list of {}", type_text(root, main_variant(root, items), depth + 1))
            }
            Some(_) | None => "list".to_owned(),
        },
        name => name.to_owned(),
    };
    if let Some(format) = schema["format"].as_str() {
        text.push_str(&format!(", {format}"));
    }
    let limits = limits(schema.as_object());
    if !limits.is_empty() {
        text.push_str(&format!(", {}", limits.join(", ")));
    }
    text
}

fn limits(schema: Option<&Map<String, Value>>) -> Vec<String> {
    let Some(schema) = schema else { return Vec::new() };
    let words = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "more than"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "less than"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("minItems", "items at least"),
        ("maxItems", "items at most"),
        ("pattern", "matches"),
    ];
    let known = words
        .iter()
        .filter_map(|(key, word)| schema.get(*key).map(|value| (word, value)));
    known
        .map(|(word, value)| match value.as_str() {
            Some(text) => format!("{word} {}", &text[..text.floor_char_boundary(200)]),
            None => format!("{word} {}", brief(value)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_listed_with_their_types_the_required_ones_first() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 1, "default": 10},
                "query": {"type": "string", "description": "What to find"},
                "filter": {"$ref": "#/$defs/filter"},
                "tags": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": ["string", "null"]}}}},
                "mode": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
            },
            "required": ["query"],
            "$defs": {"filter": {"type": "object", "properties": {"deep": {"type": "boolean"}}}},
        });
        let fields = all_fields(&schema);
        let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths[0], "query");
        assert!(
            paths.contains(&"filter.deep") && paths.contains(&"tags[].id"),
            "{paths:?}"
        );
        let of = |path: &str| fields.iter().find(|field| field.path == path).unwrap();
        assert_eq!(of("limit").type_text, "integer, at least 1");
        assert_eq!(of("tags").type_text, "list of object");
        assert_eq!(of("mode").kind, Kind::Choice(vec![json!("a"), json!("b")]));
        let form = form_fields(&schema);
        assert_eq!(form.len(), 5);
        assert_eq!(form[0].kind, Kind::Text);
    }

    #[test]
    fn a_list_of_itself_ends() {
        let schema = json!({"type": "object", "properties": {
            "x": {"type": "array", "items": {"$ref": "#/properties/x"}},
            "y": {"type": "array", "items": {"$ref": "#/properties/z"}},
            "z": {"type": "array", "items": {"$ref": "#/properties/y"}},
        }});
        for field in all_fields(&schema).into_iter().chain(form_fields(&schema)) {
            assert!(field.type_text.len() < 100, "{field:?}");
        }
    }

    #[test]
    fn what_fields_refer_to_is_not_repeated_for_each_of_them() {
        let long = "x".repeat(20_000);
        for shared in [
            json!({"enum": vec![1; 27_000]}),
            json!({"enum": [long]}),
            json!({"default": vec![1; 27_000], "description": long, "pattern": long, "minimum": [long]}),
        ] {
            let properties: Map<String, Value> = (0..MAX_FIELDS)
                .map(|number| (format!("p{number}"), json!({"$ref": "#/shared"})))
                .collect();
            let schema = json!({"type": "object", "properties": properties, "shared": shared});
            let fields = form_fields(&schema);
            let size: usize = fields.iter().map(|field| format!("{field:?}").len()).sum();
            assert!(size < 1 << 20, "{size} bytes for {} fields", fields.len());
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema =
            json!({"type": "object", "properties": {"next": {"$ref": "#"}, "loop": {"$ref": "#/properties/loop"}}});
        assert!(all_fields(&schema).len() <= MAX_FIELDS);
    }
}
