use super::*;
use proptest::prelude::*;
use serde_json::json;

fn check(reading: Reading, schema: &Value, text: &str, expected: &str) {
    let read = Arguments::read(text, reading, schema).unwrap();
    assert_eq!(read.arguments.as_str(), expected, "{text:?}");
}

#[test]
fn the_cascade_reads_every_row_of_the_table() {
    for (row, text, expected) in [
        ("empty", "", "{}"),
        ("empty", " \n ", "{}"),
        (
            "JSON object",
            r#"{"a": 1, "b": [true, null]}"#,
            r#"{"a": 1, "b": [true, null]}"#,
        ),
        ("JSON object", " {} ", "{}"),
        ("JSON non-object", r#""hello""#, r#"{"input":"hello"}"#),
        ("JSON non-object", "[1, 2]", r#"{"input":[1, 2]}"#),
        ("JSON non-object", "42", r#"{"input":42}"#),
        ("JSON non-object", "true", r#"{"input":true}"#),
        ("JSON non-object", "null", r#"{"input":null}"#),
        ("nested YAML", "items:\n  - a\n  - b", r#"{"items":["a","b"]}"#),
        ("nested YAML", "a:\n  b: 1\nc: x", r#"{"a":{"b":1},"c":"x"}"#),
        ("key: value", "namespace: default", r#"{"namespace":"default"}"#),
        ("key: value", "name: x, count: 5", r#"{"name":"x","count":5}"#),
        ("key: value", "name: x\ncount: 5", r#"{"name":"x","count":5}"#),
        ("key=value", "name=x, on=true", r#"{"name":"x","on":true}"#),
        ("key=value", "name=x\nratio=0.5", r#"{"name":"x","ratio":0.5}"#),
        ("raw text", "just some words", r#"{"input":"just some words"}"#),
        ("raw text", "  trimmed  ", r#"{"input":"trimmed"}"#),
        ("raw text", "{broken", r#"{"input":"{broken"}"#),
        (
            "raw text",
            "tags: a,b,c, name: x",
            r#"{"input":"tags: a,b,c, name: x"}"#,
        ),
        ("raw text", "007", r#"{"input":"007"}"#),
        (
            "raw text",
            "https://example.com/x?a=1",
            r#"{"input":"https://example.com/x?a=1"}"#,
        ),
    ] {
        let read = Arguments::read(text, Reading::Cascade, &Value::Null).unwrap();
        assert_eq!(read.arguments.as_str(), expected, "{row}: {text:?}");
        assert!(read.notes.is_empty(), "{row}: {:?}", read.notes);
    }
}

#[test]
fn large_numbers_are_exact_in_every_way_of_reading() {
    let digits = "123456789012345678901234567890";
    let schema = json!({"properties": {"n": {"type": "integer"}, "l": {}}});
    for (text, expected) in [
        (format!("{{\"n\":{digits}}}"), format!("{{\"n\":{digits}}}")),
        (format!("n: {digits}"), format!("{{\"n\":{digits}}}")),
        (format!("l: [{digits}]"), format!("{{\"l\":[{digits}]}}")),
        (format!("l:\n- {digits}"), format!("{{\"l\":[{digits}]}}")),
    ] {
        check(Reading::Cascade, &schema, &text, &expected);
        check(Reading::Guided, &schema, &text, &expected);
    }
}

#[test]
fn with_the_schema_commas_and_single_values_find_their_place() {
    let schema = json!({"required": ["query"], "properties": {
        "query": {"type": "string"}, "limit": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
    }});
    for (text, expected) in [
        ("", "{}"),
        (r#"{"query": "x"}"#, r#"{"query": "x"}"#),
        ("{'query': 'x', 'limit': None,}", r#"{"query":"x","limit":null}"#),
        ("tags: a,b,c, query: x", r#"{"tags":["a","b","c"],"query":"x"}"#),
        ("query: 5, limit: 5", r#"{"query":"5","limit":5}"#),
        ("query: 5", r#"{"query":"5"}"#),
        (
            "weather in Berlin, tomorrow",
            r#"{"query":"weather in Berlin, tomorrow"}"#,
        ),
        ("5", r#"{"query":5}"#),
        ("\"quoted\"", r#"{"query":"quoted"}"#),
        ("007", r#"{"query":"007"}"#),
        ("tags:\n- a\n- b", r#"{"tags":["a","b"]}"#),
    ] {
        check(Reading::Guided, &schema, text, expected);
    }
    check(Reading::Guided, &json!({}), "some words", r#"{"input":"some words"}"#);
    check(Reading::Guided, &json!({}), "a: 1", r#"{"a":1}"#);
}

#[test]
fn only_the_repairing_readings_repair_and_they_say_so() {
    let slip = "{\"a\": 1,}";
    let read = |reading| Arguments::read(slip, reading, &Value::Null);
    let error = read(Reading::Json).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the arguments are not JSON: key must be a string (line 1, column 9)"
    );
    for reading in [Reading::Repair, Reading::Guided] {
        let read = read(reading).unwrap();
        assert_eq!(read.arguments.as_str(), r#"{"a":1}"#);
        assert_eq!(read.notes, ["the arguments were mended: a trailing comma"]);
    }
    let beyond = Arguments::read("{\"a\": }", Reading::Repair, &Value::Null).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "the arguments are not JSON: expected value (line 1, column 7)"
    );
}

#[test]
fn arguments_are_one_line_however_they_were_written() {
    let inner = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call"}"#;
    let text = format!("{{\r\n\"a\":\n{inner}\n,\"b\":\"x\\ny\"}}");
    let expected = format!("{{  \"a\": {inner} ,\"b\":\"x\\ny\"}}");
    assert_eq!(Arguments::parse(&text).unwrap().as_str(), expected);
    for reading in [Reading::Json, Reading::Repair, Reading::Cascade, Reading::Guided] {
        check(reading, &json!({}), &text, &expected);
    }
    check(
        Reading::Cascade,
        &json!({}),
        &format!("[\n{inner}\n]"),
        &format!("{{\"input\":[ {inner} ]}}"),
    );
    let pairs = Arguments::from_pairs([("a", "{\n}")], &json!({})).unwrap();
    assert_eq!(pairs.as_str(), r#"{"a":{ }}"#);
    assert!(Arguments::parse("{\"a\": \"x\ny\"}").is_err());
}

#[test]
fn a_text_without_end_is_refused() {
    let long = "x".repeat(MAX_BYTES + 1);
    for reading in [Reading::Json, Reading::Repair, Reading::Cascade, Reading::Guided] {
        let error = Arguments::read(&long, reading, &Value::Null).unwrap_err();
        assert!(matches!(error, ArgumentsError::TooLong { .. }));
    }
    check(
        Reading::Cascade,
        &Value::Null,
        &long[1..1 << 20],
        &format!("{{\"input\":{:?}}}", &long[1..1 << 20]),
    );
}

/// Random text, and text made of tokens that mean something to the readers.
fn text() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "{", "}", "[", "]", ":", ": ", "=", ",", "\n", "\"", "'", "```", "\\", "a", "key", "tags", "1", "-", "- ",
        "true", "None", "&x ", "*x", "|", ">", "#", "!", "%", "\t", "é", "\u{0}", "\u{2028}", "?", "~", "<<", "---",
        "1e9", "007", " ",
    ]);
    prop_oneof![
        any::<String>(),
        prop::collection::vec(bits, 0..40).prop_map(|bits| bits.concat())
    ]
}

proptest! {
    #[test]
    fn every_text_becomes_an_object(text in text()) {
        let schema = json!({"properties": {"tags": {"type": "array", "items": {"type": "string"}}, "key": {"type": "string"}}});
        for reading in [Reading::Cascade, Reading::Guided] {
            let read = Arguments::read(&text, reading, &schema).unwrap();
            prop_assert!(serde_json::from_str::<Map<String, Value>>(read.arguments.as_str()).is_ok());
            prop_assert!(!read.arguments.as_str().contains(['\n', '\r']));
        }
        if let Ok(read) = Arguments::read(&text, Reading::Repair, &schema) {
            let is_object = read.arguments.as_str().starts_with('{');
            prop_assert!(is_object);
        }
    }

    #[test]
    fn json_objects_are_never_touched_by_reading(fields in prop::collection::btree_map(".{0,8}", any::<i64>(), 0..6)) {
        let text = serde_json::to_string(&fields).unwrap();
        for reading in [Reading::Json, Reading::Repair, Reading::Cascade, Reading::Guided] {
            let read = Arguments::read(&text, reading, &json!({})).unwrap();
            prop_assert_eq!(read.arguments.as_str(), &text);
        }
    }

    #[test]
    fn coerced_arguments_pass_strict_validation(
        n in prop_oneof![Just("\"5\"".to_owned()), Just("true".to_owned()), any::<i32>().prop_map(|n| n.to_string())],
        l in prop_oneof![Just("null".to_owned()), Just("\"[1]\"".to_owned()), Just("7".to_owned()), Just("[\"1\",2]".to_owned())],
    ) {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}}}});
        let given = Arguments::parse(&format!("{{\"n\":{n},\"l\":{l}}}")).unwrap();
        let (validator, compiled, schema) = (LazyValidator::default(), CompiledSchemas::default(), schema.to_string());
        if let Ok(checked) = validator.arguments(&given, &schema, pegboard_config::Check::Coerce, &compiled) {
            let sent = checked.changed.unwrap_or(given);
            let again = validator.arguments(&sent, &schema, pegboard_config::Check::Strict, &compiled).unwrap();
            prop_assert!(again.changed.is_none() && again.notes.is_empty());
        }
    }
}

#[test]
fn a_duplicate_key_is_refused_at_any_depth() {
    let by_name = |text: &str| Arguments::parse(text).unwrap().by_name();
    for text in [
        r#"{"a": 1, "a": 2}"#,
        r#"{"a": [{"b": null, "c": {"d": 1, "d": 1}}]}"#,
        r#"{"a": 1, "\u0061": 2}"#,
    ] {
        assert!(by_name(text).unwrap_err().contains("twice"), "{text}");
    }
    let text = r#"{"a":[1,-2,0.5,"x",null,true,{}],"b":{"a":18446744073709551615}}"#;
    assert_eq!(Value::Object(by_name(text).unwrap()).to_string(), text);
}

#[test]
fn an_argument_that_the_schema_does_not_know_is_named_with_what_was_meant() {
    let unknown = |schema: Value| {
        let arguments = Arguments::try_from(json!({"citty": "Oslo", "zzz": 1, "days": 3})).unwrap();
        arguments.unknown(&schema)
    };
    let properties = json!({"city": {"type": "string"}, "days": {"type": "integer"}});
    let expected = [
        "the tool declares no argument `citty`; did you mean `city`?",
        "the tool declares no argument `zzz`",
    ];
    assert_eq!(unknown(json!({ "properties": properties })), expected);
    for open in [
        json!({"properties": properties, "additionalProperties": true}),
        json!({"properties": properties, "patternProperties": {"^z": {}}}),
        json!({"type": "object"}),
    ] {
        assert_eq!(unknown(open), Vec::<String>::new());
    }
}

#[test]
fn a_duplicate_key_is_refused_whatever_the_schema_allows() {
    use pegboard_config::Check;

    let open = [
        json!(true),
        json!({}),
        json!({"type": "object"}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
    ];
    let compiled = CompiledSchemas::default();
    for schema in open {
        for mode in [
            Check::Off,
            Check::Required,
            Check::Relaxed,
            Check::Coerce,
            Check::Strict,
        ] {
            let check = |text: &str| {
                let given = Arguments::parse(text).unwrap();
                LazyValidator::default().arguments(&given, &schema.to_string(), mode, &compiled)
            };
            for text in [r#"{"a":1,"a":2}"#, r#"{"a":[{"b":1,"\u0062":2}]}"#] {
                let problems = check(text).unwrap_err().join(" ");
                assert!(problems.contains("is given twice"), "{schema} {mode:?}: {problems}");
            }
            assert!(check(r#"{"a":[{"b":1},{"b":1}]}"#).is_ok(), "{schema} {mode:?}");
        }
    }
}
