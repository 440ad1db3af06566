//! Spellings that servers use, and their canonical form.

use serde_json::json;

use super::*;

fn read(schema: &Value) -> Value {
    match Normalizer::default().schema(schema) {
        Ok(schema) => schema.into(),
        Err(bad) => panic!("{}: {}", bad.path, bad.problem),
    }
}

#[test]
fn every_way_to_allow_null_is_read_alike() {
    let expected = json!({"type": ["string", "null"], "enum": ["a", null]});
    for written in [
        json!({"type": ["string", "null"], "enum": ["a"]}),
        json!({"type": ["string", "null"], "enum": ["a", null]}),
        json!({"type": "string", "nullable": true, "enum": ["a"]}),
        json!({"type": "string", "enum": ["a", null]}),
        json!({"enum": ["a", null]}),
        json!({"type": ["string", null], "enum": ["a", "a"]}),
        json!({"allOf": [{"type": "string", "enum": ["a"]}], "nullable": true}),
    ] {
        assert_eq!(read(&written), expected, "{written}");
    }
    assert_eq!(
        read(&json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": true})),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]})
    );
}

#[test]
fn old_and_sloppy_schemas_become_todays() {
    for (written, expected) in [
        (json!({"const": 5}), json!({"type": "integer", "enum": [5]})),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": true, "type": "number"}),
            json!({"exclusiveMinimum": 1, "type": "number"}),
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": false, "type": "number"}),
            json!({"minimum": 1, "type": "number"}),
        ),
        (
            json!({"type": "int", "minLength": "3", "maxLength": 4.0, "minItems": -1}),
            json!({"type": "integer", "minLength": 3, "maxLength": 4}),
        ),
        (json!({"type": "any"}), json!({})),
        (
            json!({"items": [{"type": "string"}, {}]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}, {}]}),
        ),
        (
            json!({"properties": {"a": {"type": "string", "required": true}, "b": "string", "c": null, "d": false}, "required": true}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {}}, "required": ["a"]}),
        ),
        (
            json!({"type": "string", "x-order": 1, "example": "e", "description": 7, "enum": []}),
            json!({"type": "string", "examples": ["e"]}),
        ),
        (
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
            json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"type": "object", "required": ["d"]}}}),
        ),
    ] {
        assert_eq!(read(&written), expected, "{written}");
    }
}

#[test]
fn an_invalid_schema_is_reported_with_its_path() {
    let check = |schema: Value, path: &str, problem: &str| match root(&schema) {
        Ok(_) => panic!("{schema} was taken"),
        Err(bad) => assert_eq!((bad.path.as_str(), bad.problem.as_str()), (path, problem)),
    };
    check(json!({"properties": {"x": 7}}), "x", "7 is no schema");
    check(
        json!({"properties": {"x": "hello world"}}),
        "x",
        "`hello world` is no schema",
    );
    check(
        json!({"properties": {"x": {"properties": {"y": [1]}}}}),
        "x.y",
        "[1] is no schema",
    );
    check(
        json!({"properties": {"x": {"type": {"a": 1}}}}),
        "x",
        "{\"a\":1} is no type",
    );
    check(
        json!({"properties": {"x": {"type": "strnig"}}}),
        "x",
        "`strnig` is no type",
    );
    check(
        json!({"properties": {"x": {"properties": []}}}),
        "x",
        "its properties are [], not an object",
    );
}

#[test]
fn the_root_is_always_an_object_with_properties() {
    for written in [
        json!({}),
        json!(true),
        json!(null),
        json!({"type": "object"}),
        json!({"enum": [1]}),
        json!({"type": ["object", "null"]}),
    ] {
        let Ok(root) = root(&written) else {
            panic!("{written} was refused")
        };
        assert_eq!(root["type"], "object");
        assert_eq!(root["properties"], json!({}));
    }
}
