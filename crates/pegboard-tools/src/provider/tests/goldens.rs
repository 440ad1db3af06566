//! Golden tests: one schema construct in each dialect.

use super::*;

/// Checks how the property `x` is converted for each of these providers.
#[expect(clippy::needless_pass_by_value, reason = "rows read better without references")]
fn check(x: Value, expected: &[(Provider, Value)]) {
    for (provider, expected) in expected {
        let definition = define(*provider, with_x(x.clone()));
        let shown = &definition.schema["properties"]["x"];
        assert_eq!(shown, expected, "{provider}: {shown:#}");
    }
}

use Provider::{Anthropic, Bedrock, Gemini, GeminiJson, OpenAi, OpenAiStrict};

#[test]
fn null_is_a_type_or_a_flag() {
    let kinds = json!({"type": ["string", "null"]});
    check(
        kinds.clone(),
        &[
            (OpenAi, kinds.clone()),
            (Anthropic, kinds.clone()),
            (GeminiJson, kinds.clone()),
            (OpenAiStrict, kinds),
            (Gemini, json!({"type": "string", "nullable": true})),
        ],
    );
    let union = json!({"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"});
    check(
        union.clone(),
        &[
            (OpenAi, union.clone()),
            (OpenAiStrict, union),
            (Gemini, json!({"type": "integer", "nullable": true, "description": "d"})),
        ],
    );
}

#[test]
fn several_types_are_a_union_for_gemini() {
    check(
        json!({"type": ["string", "integer", "null"], "maxLength": 5, "minimum": 1, "description": "d"}),
        &[(
            Gemini,
            json!({"anyOf": [
                {"type": "string", "maxLength": 5, "description": "d", "nullable": true},
                {"type": "integer", "minimum": 1, "nullable": true},
            ]}),
        )],
    );
}

#[test]
fn one_of_is_any_of_and_const_is_a_list_of_one() {
    let expected = json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "boolean"}]});
    check(
        json!({"oneOf": [{"const": "a"}, {"type": "boolean"}]}),
        &[
            (OpenAi, expected.clone()),
            (Anthropic, expected.clone()),
            (OpenAiStrict, expected),
            (
                Gemini,
                json!({"anyOf": [{"type": "string", "enum": ["a"], "format": "enum"}, {"type": "boolean"}]}),
            ),
        ],
    );
}

#[test]
fn values_other_than_strings_are_shown_as_strings_for_gemini() {
    check(
        json!({"type": "integer", "enum": [1, 2, null]}),
        &[
            (
                Gemini,
                json!({"type": "string", "enum": ["1", "2"], "format": "enum", "nullable": true}),
            ),
            (GeminiJson, json!({"type": ["integer", "null"], "enum": [1, 2, null]})),
        ],
    );
    let gemini = define(Gemini, with_x(json!({"enum": [1, "1", "a", 2.5, true, ""]})));
    assert_eq!(
        gemini.schema["properties"]["x"]["enum"],
        json!(["1", "a", "2.5", "true"])
    );
    for (written, own) in [
        (json!("1"), json!(1)),
        (json!("a"), json!("a")),
        (json!("2.5"), json!(2.5)),
        (json!("true"), json!(true)),
    ] {
        assert_eq!(back(&gemini, json!({"x": written})), json!({"x": own}));
    }
}

#[test]
fn keywords_that_are_not_accepted_become_notes() {
    let text = json!({"type": "string", "format": "uri", "pattern": "^h", "minLength": 3, "default": "h", "contentEncoding": "base64", "description": "An address."});
    check(
        text.clone(),
        &[
            (
                Anthropic,
                json!({"type": "string", "format": "uri", "pattern": "^h", "minLength": 3, "default": "h", "description": "An address. (contentEncoding: base64)"}),
            ),
            (
                Gemini,
                json!({"type": "string", "pattern": "^h", "minLength": 3, "description": "An address. (contentEncoding: base64; default: h; format: uri)"}),
            ),
            (
                GeminiJson,
                json!({"type": "string", "format": "uri", "description": "An address. (contentEncoding: base64; default: h; minLength: 3; pattern: ^h)"}),
            ),
            (
                OpenAiStrict,
                json!({"type": "string", "description": "An address. (contentEncoding: base64; default: h; format: uri; minLength: 3; pattern: ^h)"}),
            ),
        ],
    );
    let bounded = json!({"type": "integer", "exclusiveMinimum": 0});
    check(
        bounded.clone(),
        &[(OpenAi, bounded), (Gemini, json!({"type": "integer", "minimum": 1}))],
    );
    let not = json!({"type": "string", "not": {"enum": ["a"]}});
    check(
        not,
        &[(
            OpenAi,
            json!({"type": "string", "description": "not: {\"enum\":[\"a\"],\"type\":\"string\"}"}),
        )],
    );
}

#[test]
fn lists_always_have_items() {
    check(
        json!({"type": "array"}),
        &[
            (OpenAi, json!({"type": "array", "items": {}})),
            (
                Gemini,
                json!({"type": "array", "items": {"type": "string", "description": "any JSON value, written as JSON text"}}),
            ),
        ],
    );
    let tuple = json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]});
    let each = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    let told = "items in this order: [{\"type\":\"string\"},{\"type\":\"integer\"}]";
    check(
        tuple,
        &[
            (
                Anthropic,
                json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}),
            ),
            (Bedrock, json!({"type": "array", "items": each, "description": told})),
            (
                Gemini,
                json!({"type": "array", "items": each, "description": "prefixItems: [{\"type\":\"string\"},{\"type\":\"integer\"}]"}),
            ),
        ],
    );
}

#[test]
fn an_object_with_any_keys_is_a_string_for_gemini() {
    let free = json!({"type": "object", "additionalProperties": {"type": "string"}, "description": "Labels."});
    check(
        free.clone(),
        &[
            (OpenAi, free.clone()),
            (
                Gemini,
                json!({"type": "string", "description": "Labels. (additionalProperties: {\"type\":\"string\"}) (a JSON object, written as text)"}),
            ),
        ],
    );
    let gemini = define(Gemini, with_x(free.clone()));
    assert_eq!(back(&gemini, json!({"x": "{\"a\": \"b\"}"})), json!({"x": {"a": "b"}}));
    assert_eq!(back(&gemini, json!({"x": {"a": "b"}})), json!({"x": {"a": "b"}}));

    let strict = define(OpenAiStrict, with_x(free));
    assert!(!strict.strict);
    assert_eq!(strict.lost, ["`strict` is off, because an object may have any keys"]);
}

#[test]
fn strict_requires_everything_and_nulls_mean_absent() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "integer"}}},
        "c": {"type": "string", "enum": ["x", "y"]},
        "d": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    }});
    let strict = define(OpenAiStrict, schema);
    assert!(strict.strict);
    assert_eq!(
        strict.schema,
        json!({"type": "object", "additionalProperties": false, "required": ["a", "c", "d"], "properties": {
            "a": {"type": "object", "additionalProperties": false, "required": ["b"], "properties": {"b": {"type": ["integer", "null"]}}},
            "c": {"type": ["string", "null"], "enum": ["x", "y", null]},
            "d": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        }})
    );
    assert_eq!(
        back(&strict, json!({"a": {"b": null}, "c": null, "d": ["q"]})),
        json!({"a": {}, "d": ["q"]})
    );
}

#[test]
fn what_strict_does_not_take_is_offered_without_it() {
    let many: Map<String, Value> = (0..101)
        .map(|at| (format!("p{at}"), json!({"type": "string"})))
        .collect();
    let values: Vec<String> = (0..501).map(|at| format!("v{at}")).collect();
    let mut deep = json!({"type": "string"});
    for _ in 0..6 {
        deep = json!({"type": "object", "properties": {"d": deep}});
    }
    for (schema, why) in [
        (
            json!({"type": "object", "properties": many}),
            "it has 101 properties, and 100 are allowed",
        ),
        (
            with_x(json!({"enum": values})),
            "it has 501 listed values, and 500 are allowed",
        ),
        (with_x(deep), "its arguments are nested deeper than 5"),
        (with_x(json!({})), "an argument takes anything"),
        (with_x(json!({"type": "array"})), "a list may hold anything"),
        (with_x(json!({"type": "object"})), "an object may have any keys"),
        (
            json!({"required": ["y"]}),
            "an object requires a property that it does not describe",
        ),
    ] {
        let definition = define(OpenAiStrict, schema.clone());
        assert!(!definition.strict);
        assert_eq!(
            definition.lost.last().unwrap(),
            &format!("`strict` is off, because {why}"),
            "{schema}"
        );
    }
}

#[test]
fn names_of_arguments_are_replaced_and_come_back() {
    let schema = json!({"type": "object", "required": ["$filter"], "properties": {
        "$filter": {"type": "string"}, "with-dash": {"type": "object", "properties": {"a b": {"type": "string"}}}}});
    let written = json!({"$filter": "f", "with-dash": {"a b": "c"}});
    for (provider, kept) in [(OpenAi, 2), (Anthropic, 1), (Bedrock, 1), (Gemini, 0), (GeminiJson, 0)] {
        let definition = define(provider, schema.clone());
        let properties = definition.schema["properties"].as_object().unwrap();
        assert_eq!(
            properties
                .keys()
                .filter(|name| schema["properties"].get(*name).is_some())
                .count(),
            kept
        );
        let required = definition.schema["required"][0].as_str().unwrap();
        assert!(properties.contains_key(required));
        // The model writes the shown names instead of the own ones.
        let mut shown = written.to_string();
        for (own, new) in [
            ("$filter", required),
            (
                "with-dash",
                properties.keys().find(|name| name.starts_with("with")).unwrap(),
            ),
        ] {
            shown = shown.replace(&format!("\"{own}\""), &format!("\"{new}\""));
        }
        let nested = properties
            .values()
            .find_map(|schema| schema["properties"].as_object())
            .unwrap();
        shown = shown.replace("\"a b\"", &format!("\"{}\"", nested.keys().next().unwrap()));
        assert_eq!(
            back(&definition, serde_json::from_str(&shown).unwrap()),
            written,
            "{provider}"
        );
    }
}

#[test]
fn unions_at_the_root_become_one_object() {
    let schema = json!({"oneOf": [
        {"type": "object", "properties": {"by": {"const": "id"}, "id": {"type": "integer"}}, "required": ["by", "id"]},
        {"type": "object", "properties": {"by": {"const": "name"}, "name": {"type": "string"}}, "required": ["by", "name"]},
    ]});
    for provider in Provider::ALL.into_iter().skip(1) {
        let definition = define(provider, schema.clone());
        assert_eq!(definition.schema["type"], "object");
        assert_eq!(definition.schema["properties"].as_object().unwrap().len(), 3);
        assert!(definition.schema.get("anyOf").is_none() && definition.schema.get("oneOf").is_none());
        let told = "Does it.\n\nArguments: give one of these: by = \"id\", id | by = \"name\", name";
        assert_eq!(definition.description.as_deref(), Some(told), "{provider}");
    }
    let anthropic = define(Anthropic, schema);
    assert_eq!(anthropic.schema["required"], json!(["by"]));
}

#[test]
fn the_list_has_the_form_of_each_api() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}}, "title": "Args", "$schema": "http://json-schema.org/draft-07/schema#"});
    let listed = |provider: Provider, schema: &Value| provider.list([("fx__t", &define(provider, schema.clone()))]);
    let own = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    let strict = json!({"type": "object", "properties": {"x": {"type": ["string", "null"]}}, "required": ["x"], "additionalProperties": false});
    for (provider, expected) in [
        (
            Provider::Mcp,
            json!([{"name": "fx__t", "description": "Does it.", "inputSchema": schema}]),
        ),
        (
            OpenAi,
            json!([{"type": "function", "function": {"name": "fx__t", "description": "Does it.", "parameters": own}}]),
        ),
        (
            OpenAiStrict,
            json!([{"type": "function", "function": {"name": "fx__t", "description": "Does it.", "parameters": strict, "strict": true}}]),
        ),
        (
            Provider::OpenAiResponses,
            json!([{"type": "function", "name": "fx__t", "description": "Does it.", "parameters": own, "strict": false}]),
        ),
        (
            Anthropic,
            json!([{"name": "fx__t", "description": "Does it.", "input_schema": own}]),
        ),
        (
            Gemini,
            json!([{"functionDeclarations": [{"name": "fx__t", "description": "Does it.", "parameters": own}]}]),
        ),
        (
            GeminiJson,
            json!([{"functionDeclarations": [{"name": "fx__t", "description": "Does it.", "parametersJsonSchema": own}]}]),
        ),
        (
            Bedrock,
            json!([{"toolSpec": {"name": "fx__t", "description": "Does it.", "inputSchema": {"json": own}}}]),
        ),
    ] {
        assert_eq!(Value::Array(listed(provider, &schema)), expected, "{provider}");
    }
    // A function without arguments has no parameters.
    assert_eq!(
        Value::Array(listed(Gemini, &json!({}))),
        json!([{"functionDeclarations": [{"name": "fx__t", "description": "Does it."}]}])
    );
    assert!(Gemini.list([]).is_empty());
}
