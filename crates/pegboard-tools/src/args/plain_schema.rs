//! Schemas of plain keywords, as most tools have. A value that such a schema accepts is found valid without compiling the schema, which costs more
//! than a hundred calls.

use serde_json::{Map, Value};

/// The dialects in which the plain keywords mean the same.
const DIALECTS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema#",
];
const TYPES: [&str; 7] = ["object", "string", "integer", "number", "boolean", "array", "null"];
/// Integers up to this are the same as floating-point numbers.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether a schema is valid and has only keywords that [`accepts`] knows.
pub(super) fn is_plain(schema: &Value) -> bool {
    let is_dialect = |dialect: &Value| dialect.as_str().is_some_and(|dialect| DIALECTS.contains(&dialect));
    schema.get("$schema").is_none_or(is_dialect) && is_plain_part(schema, true)
}

fn is_plain_part(schema: &Value, is_root: bool) -> bool {
    let Value::Object(fields) = schema else {
        return schema.is_boolean();
    };
    let is_part = |part: &Value| is_plain_part(part, false);
    fields.iter().all(|(key, value)| match key.as_str() {
        "$schema" => is_root,
        "title" | "description" | "$comment" | "format" => value.is_string(),
        "default" | "const" => true,
        "examples" => value.is_array(),
        "type" => match value {
            Value::Array(types) => is_list_of(types, |kind| TYPES.contains(&kind)) && !types.is_empty(),
            kind => kind.as_str().is_some_and(|kind| TYPES.contains(&kind)),
        },
        "enum" => value.as_array().is_some_and(|options| !options.is_empty()),
        "required" => value.as_array().is_some_and(|names| is_list_of(names, |_| true)),
        "properties" => value.as_object().is_some_and(|parts| parts.values().all(is_part)),
        "additionalProperties" | "items" => is_part(value),
        "anyOf" => value
            .as_array()
            .is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part)),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
        _ => false,
    })
}

/// Whether an array has strings of this kind, each once. Such arrays are short.
fn is_list_of(values: &[Value], is_allowed: impl Fn(&str) -> bool) -> bool {
    const MOST: usize = 64;
    values.len() <= MOST
        && values.iter().enumerate().all(|(at, value)| {
            let is_new = !values[..at].contains(value);
            is_new && value.as_str().is_some_and(&is_allowed)
        })
}

/// Whether a plain schema certainly accepts a value. Otherwise the compiled schema decides.
pub(super) fn accepts(schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema == &Value::Bool(true);
    };
    keywords
        .iter()
        .all(|(keyword, wanted)| accepts_keyword(keywords, keyword, wanted, value))
}

fn accepts_keyword(keywords: &Map<String, Value>, keyword: &str, wanted: &Value, value: &Value) -> bool {
    let length = |text: &str| text.chars().count() as u64;
    match (keyword, value) {
        ("type", _) => match wanted {
            Value::Array(types) => types.iter().any(|kind| has_type(value, kind)),
            kind => has_type(value, kind),
        },
        ("const", _) => value == wanted,
        ("enum", _) => wanted.as_array().is_some_and(|options| options.contains(value)),
        ("anyOf", _) => wanted
            .as_array()
            .is_some_and(|parts| parts.iter().any(|part| accepts(part, value))),
        ("required", Value::Object(fields)) => {
            let is_there = |name: &Value| name.as_str().is_some_and(|name| fields.contains_key(name));
            wanted.as_array().is_some_and(|names| names.iter().all(is_there))
        }
        ("properties", Value::Object(fields)) => wanted.as_object().is_some_and(|parts| {
            let mut given = fields
                .iter()
                .filter_map(|(name, value)| Some((parts.get(name)?, value)));
            given.all(|(part, value)| accepts(part, value))
        }),
        ("additionalProperties", Value::Object(fields)) => {
            let named = keywords.get("properties").and_then(Value::as_object);
            let is_named = |name: &String| named.is_some_and(|named| named.contains_key(name));
            fields
                .iter()
                .all(|(name, value)| is_named(name) || accepts(wanted, value))
        }
        ("items", Value::Array(items)) => items.iter().all(|item| accepts(wanted, item)),
        ("minItems", Value::Array(items)) => wanted.as_u64().is_some_and(|least| items.len() as u64 >= least),
        ("maxItems", Value::Array(items)) => wanted.as_u64().is_some_and(|most| items.len() as u64 <= most),
        ("minLength", Value::String(text)) => wanted.as_u64().is_some_and(|least| length(text) >= least),
        ("maxLength", Value::String(text)) => wanted.as_u64().is_some_and(|most| length(text) <= most),
        ("minimum", Value::Number(_)) => compare(value, wanted, |value, limit| value >= limit),
        ("maximum", Value::Number(_)) => compare(value, wanted, |value, limit| value <= limit),
        ("exclusiveMinimum", Value::Number(_)) => compare(value, wanted, |value, limit| value > limit),
        ("exclusiveMaximum", Value::Number(_)) => compare(value, wanted, |value, limit| value < limit),
        // It says nothing about values of this type, or about any.
        _ => true,
    }
}

fn has_type(value: &Value, kind: &Value) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        // Whether 1.0 is an integer depends on the dialect.
        Value::Number(number) => kind == "number" || kind == "integer" && !number.is_f64(),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

/// Compares two numbers that are exact as floating-point numbers.
fn compare(value: &Value, limit: &Value, holds: impl Fn(f64, f64) -> bool) -> bool {
    let exact = |number: &Value| number.as_f64().filter(|number| number.abs() < MAX_EXACT);
    match (exact(value), exact(limit)) {
        (Some(value), Some(limit)) => holds(value, limit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};
    use serde_json::json;

    use super::*;

    fn compiled(schema: &Value) -> jsonschema::Validator {
        let options = jsonschema::options().should_validate_formats(false).offline();
        options
            .build(schema)
            .unwrap_or_else(|error| panic!("{schema}: {error}"))
    }

    #[test]
    fn the_schemas_of_most_tools_are_plain() {
        let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "T"});
        for schema in [
            json!(true),
            json!({"type": "object", "properties": {"a": optional, "n": {"type": "integer", "minimum": 1}}, "required": ["n"],
                "additionalProperties": false, "$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"type": ["array", "null"], "items": {"enum": ["a", "b"]}, "maxItems": 3}),
        ] {
            assert!(is_plain(&schema), "{schema}");
        }
        for schema in [
            json!({"$ref": "#"}),
            json!({"pattern": "a"}),
            json!({"oneOf": [true]}),
            json!({"$schema": "https://example.com/mine"}),
            json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}),
            json!({"type": "text"}),
            json!({"type": []}),
            json!({"required": ["a", "a"]}),
            json!({"minLength": -1}),
            json!({"minLength": 1.0}),
            json!({"description": 1}),
            json!({"properties": {"a": 7}}),
            json!({"exclusiveMinimum": true}),
            json!(7),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
    }

    #[test]
    fn valid_values_need_no_compiled_schema() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "t": {"anyOf": [{"type": "null"}, {"maxLength": 2}]}},
            "required": ["n"], "additionalProperties": {"type": "boolean"}});
        for value in [
            json!({"n": 1}),
            json!({"n": 9, "t": null}),
            json!({"n": 9, "t": "äö", "x": true}),
        ] {
            assert!(accepts(&schema, &value), "{value}");
        }
        for value in [
            json!({}),
            json!({"n": 0}),
            json!({"n": 1.0}),
            json!({"n": 1, "t": "abc"}),
            json!({"n": 1, "x": 1}),
            json!([]),
        ] {
            assert!(!accepts(&schema, &value), "{value}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3..4_i64).prop_map(Value::from),
            select(vec![0.5, 1.0, -2.0, 1e300]).prop_map(Value::from),
            Just(json!(u64::MAX)),
            select(vec!["", "a", "äb", "abc"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(select(vec!["a", "b", "c"]), inner, 0..3).prop_map(|fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()),
            ]
        })
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let limit = select(vec![json!(0), json!(1), json!(2), json!(0.5), json!(-1)]);
        let keyword = prop_oneof![
            select(TYPES.to_vec()).prop_map(|kind| json!({"type": kind})),
            Just(json!({"type": ["string", "null"]})),
            (
                select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
                limit
            )
                .prop_map(|(name, limit)| json!({ name: limit })),
            (select(vec!["minLength", "maxLength", "minItems", "maxItems"]), 0..3_u64)
                .prop_map(|(name, limit)| json!({ name: limit })),
            values().prop_map(|value| json!({"const": value})),
            prop::collection::vec(values(), 1..3).prop_map(|options| json!({"enum": options})),
            Just(json!({"required": ["a", "b"]})),
            any::<bool>().prop_map(Value::from),
        ];
        keyword.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone())
                    .prop_map(|(a, rest)| json!({"properties": {"a": a}, "additionalProperties": rest})),
                inner.clone().prop_map(|items| json!({"items": items, "type": "array"})),
                prop::collection::vec(inner, 1..3).prop_map(|parts| json!({"anyOf": parts})),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_valid_in_every_dialect(schema in schemas(), value in values()) {
            prop_assert!(is_plain(&schema), "{schema}");
            for dialect in DIALECTS {
                let mut schema = schema.clone();
                if let Value::Object(fields) = &mut schema {
                    fields.insert("$schema".into(), dialect.into());
                }
                let validator = compiled(&schema);
                prop_assert!(!accepts(&schema, &value) || validator.is_valid(&value), "{schema} {value}");
            }
        }
    }
}
