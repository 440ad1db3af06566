use super::*;
use crate::args::{CompiledSchemas, LazyValidator};
use serde_json::json;
use tokio::time::Instant;

fn arguments(
    validator: &LazyValidator,
    given: &Arguments,
    schema: &Value,
    mode: Check,
) -> Result<Checked, Vec<String>> {
    validator.arguments(given, &schema.to_string(), mode, &CompiledSchemas::default())
}

fn structured_output(value: &Value, schema: &Value) -> Vec<String> {
    LazyValidator::default().structured_output(value, &schema.to_string(), &CompiledSchemas::default())
}

/// The arguments as they are sent with their notes, or the problems.
fn checked(schema: &Value, text: &str, mode: Check) -> Result<(String, Vec<String>), Vec<String>> {
    let given = Arguments::parse(text).unwrap();
    let checked = arguments(&LazyValidator::default(), &given, schema, mode)?;
    let sent = checked.changed.unwrap_or(given);
    Ok((sent.as_raw().get().to_owned(), checked.notes))
}

fn issue() -> Value {
    json!({"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
        "title": {"type": "string", "minLength": 1},
        "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": true},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10},
        "state": {"enum": ["open", "shut"]},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "filter": {"type": "object", "required": ["by"], "properties": {"by": {"type": "string"}}},
    }})
}

#[test]
fn every_problem_names_the_argument_and_what_was_expected() {
    for (text, expected) in [
        ("{}", &["`title` is missing"][..]),
        (
            r#"{"title":7}"#,
            &["`title` must be a string, and an integer was given"],
        ),
        (r#"{"title":""}"#, &["`title` must have at least 1 characters"]),
        (r#"{"title":"x","titel":"y"}"#, &["`titel` is unknown"]),
        (r#"{"title":"x","zzz":"y"}"#, &["`zzz` is unknown"]),
        (r#"{"title":"x","limit":0}"#, &["`limit` must be at least 1"]),
        (r#"{"title":"x","limit":11}"#, &["`limit` must be at most 10"]),
        (
            r#"{"title":"x","state":"secret-1"}"#,
            &[r#"`state` must be one of "open", "shut""#],
        ),
        (
            r#"{"title":"x","code":"secret-1"}"#,
            &["`code` must match the pattern `^[a-z]+$`"],
        ),
        (
            r#"{"title":"x","either":"secret-1"}"#,
            &["`either` must be an integer or null, and a string was given"],
        ),
        (
            r#"{"title":"x","labels":[1,"a"]}"#,
            &["`/labels/0` must be a string, and an integer was given"],
        ),
        (
            r#"{"title":"x","labels":["a","a"]}"#,
            &["`labels` must not have the same item twice"],
        ),
        (
            r#"{"title":"x","labels":["a","b","c"]}"#,
            &["`labels` must have at most 2 items"],
        ),
        (r#"{"title":"x","filter":{}}"#, &["`/filter/by` is missing"]),
        (r#"{"title":"x","title":"y"}"#, &["`title` is given twice"]),
        (
            r#"{"titel":"x","limit":"secret-1"}"#,
            &[
                "`titel` is unknown, did you mean `title`?",
                "`limit` must be an integer, and a string was given",
                "`title` is missing",
            ],
        ),
    ] {
        let mut problems = checked(&issue(), text, Check::Strict).unwrap_err();
        let mut expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        problems.sort();
        expected.sort();
        assert_eq!(problems, expected, "{text}");
        assert!(
            !problems.join(" ").contains("secret-1"),
            "a value is shown: {problems:?}"
        );
    }
}

#[test]
fn the_number_of_reported_problems_is_bounded() {
    let schema = json!({"type": "object", "properties": {"l": {"items": {"type": "string"}}}});
    let problems = checked(&schema, &format!("{{\"l\":{:?}}}", [1; 50]), Check::Strict).unwrap_err();
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems[MAX_PROBLEMS], "42 more problems");
}

#[test]
fn each_mode_checks_what_it_says() {
    let wrong_type = r#"{"title":"x","limit":"3"}"#;
    let unknown = r#"{"title":"x","zzz":1}"#;
    let missing = r#"{"limit":3}"#;
    let passes = |text: &str, mode| checked(&issue(), text, mode).is_ok();
    for (mode, expected) in [
        (Check::Off, [true, true, true]),
        (Check::Required, [true, true, false]),
        (Check::Relaxed, [true, true, false]),
        (Check::Coerce, [true, false, false]),
        (Check::Strict, [false, false, false]),
    ] {
        assert_eq!(
            [wrong_type, unknown, missing].map(|text| passes(text, mode)),
            expected,
            "{mode:?}"
        );
    }
    let (sent, notes) = checked(&issue(), wrong_type, Check::Coerce).unwrap();
    assert_eq!(sent, r#"{"title":"x","limit":3}"#);
    assert_eq!(notes, ["argument `limit`: string was made integer"]);
    let (sent, notes) = checked(&issue(), unknown, Check::Relaxed).unwrap();
    assert_eq!((sent.as_str(), notes), (unknown, vec!["`zzz` is unknown".to_owned()]));
    let (sent, _) = checked(&issue(), wrong_type, Check::Required).unwrap();
    assert_eq!(sent, wrong_type);
}

#[test]
fn arguments_that_fit_are_sent_as_they_were_written() {
    let text = "{ \"title\" : \"5\",  \"limit\": 3, \"labels\": [ ] }";
    assert_eq!(checked(&issue(), text, Check::Coerce), Ok((text.to_owned(), vec![])));
}

#[test]
fn an_integer_with_a_fraction_of_zero_is_accepted_and_sent_as_an_integer() {
    for draft in [
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let schema = json!({"$schema": draft, "type": "object", "properties": {
            "n": {"type": "integer", "maximum": 50}, "x": {"type": "number"}, "s": {"type": "string"}}});
        let check = |text: &str, mode: Check| checked(&schema, text, mode);
        for mode in [Check::Coerce, Check::Relaxed] {
            let sent = check(r#"{"n":41.0,"x":1.0,"s":"v1.0"}"#, mode);
            assert_eq!(
                sent,
                Ok((r#"{"n":41,"x":1.0,"s":"v1.0"}"#.to_owned(), vec![])),
                "{draft}"
            );
            assert!(check(r#"{"n":41.5}"#, mode).is_err(), "{draft}");
            assert!(check(r#"{"n":51.0}"#, mode).is_err(), "{draft}");
        }
    }
}

#[test]
fn both_drafts_are_understood() {
    let of = |draft: &str, extra: Value| {
        let mut schema = json!({"$schema": draft, "type": "object"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        schema
    };
    let tuple = |word: &str| json!({"properties": {"p": {(word): [{"type": "integer"}]}}});
    let (old, new) = (
        of("http://json-schema.org/draft-07/schema#", tuple("items")),
        of("https://json-schema.org/draft/2020-12/schema", tuple("prefixItems")),
    );
    for schema in [&old, &new] {
        assert!(checked(schema, r#"{"p":["x"]}"#, Check::Strict).is_err());
        assert!(checked(schema, r#"{"p":[1]}"#, Check::Strict).is_ok());
    }
}

#[test]
fn a_schema_that_cannot_be_used_checks_nothing_and_says_why() {
    let doubling = |levels: usize| {
        let mut defs = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        defs.insert(format!("d{levels}"), json!({"type": "integer"}));
        json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}})
    };
    let patterns: Vec<_> = (0..200).map(|n| json!({"pattern": format!("{n}")})).collect();
    let parts: Vec<_> = (0..1100).map(|_| json!({})).collect();
    for (schema, expected) in [
        (json!({"properties": {"a": {"type": "no-such-type"}}}), ""),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/none"}}}),
            "leads out of it",
        ),
        (
            json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}),
            "leads out of it",
        ),
        (
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "leads out of it",
        ),
        (json!({"properties": {"a": {"$dynamicRef": "#x"}}}), "leads out of it"),
        (json!({"properties": {"a": {"pattern": "(a+)+\\1$"}}}), ""),
        (
            json!({"properties": {"a": {"pattern": "((a{1,100}){1,100}){1,100}"}}}),
            "",
        ),
        (json!({"anyOf": vec![json!({"pattern": "^(a{1,50}){1,40}$"}); 90]}), ""),
        (json!({"anyOf": patterns}), "more than 100 patterns"),
        (json!({"anyOf": parts}), "more than 1000 schemas"),
    ] {
        let started = Instant::now();
        let validator = LazyValidator::default();
        let given = Arguments::parse(r#"{"a":1}"#).unwrap();
        assert_eq!(validator.unusable(), None, "it was not compiled yet");
        let checked = arguments(&validator, &given, &schema, Check::Strict).unwrap();
        assert!(checked.changed.is_none());
        let why = validator.unusable().unwrap_or_else(|| panic!("{schema} was compiled"));
        assert!(why.contains(expected) && why.len() < 2000, "{why}");
        assert!(
            checked.notes[0].starts_with("the arguments were not checked:"),
            "{:?}",
            checked.notes
        );
        assert!(checked.notes[0].ends_with(why), "{:?}", checked.notes);
        assert!(started.elapsed().as_secs() < 30, "{why}");
    }
    // It compiles, but a check would look at the value a million times.
    let (_, notes) = checked(&doubling(20), r#"{"a":"x"}"#, Check::Coerce).unwrap();
    assert_eq!(notes, ["the arguments were not checked: that would take too long"]);
    assert!(checked(&doubling(3), r#"{"a":"x"}"#, Check::Coerce).is_err());
    let selfish = json!({"type": "object", "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}]}},
        "properties": {"a": {"$ref": "#/$defs/x"}}});
    assert!(checked(&selfish, r#"{"a":"x"}"#, Check::Coerce).is_ok());
}

/// Structured output that a server and its own schema could make expensive together. Each small schema would take minutes.
#[test]
fn a_schema_and_a_value_cannot_make_a_validation_expensive_together() {
    let numbers = |count: usize| (0..count).map(Value::from).collect::<Vec<_>>();
    let names = |count: usize| (0..count).map(|n| json!(format!("n{n}"))).collect::<Vec<_>>();
    let fields: Value = (0..20_000).map(|n| (format!("n{n}"), Value::Null)).collect();
    let many = |part: fn(usize) -> Value| (0..900).map(part).collect::<Vec<_>>();
    let patterns: Value = (0..90).map(|n| (format!("^x{n}"), json!({"type": "string"}))).collect();
    for (bomb, schema, value) in [
        (
            "enum",
            json!({"items": {"enum": numbers(100_000)}}),
            json!(vec![-1; 100_000]),
        ),
        (
            "required",
            json!({"items": {"required": names(50_000)}}),
            json!(vec![json!({}); 50_000]),
        ),
        (
            "anyOf",
            json!({"items": {"anyOf": many(|n| json!({"const": n}))}}),
            json!(vec![-1; 500_000]),
        ),
        (
            "properties",
            json!({"items": {"properties": names(900).iter().map(|name| (name.as_str().unwrap().to_owned(), json!({}))).collect::<Value>()}}),
            json!(vec![json!({}); 500_000]),
        ),
        (
            "propertyNames",
            json!({"propertyNames": {"anyOf": many(|n| json!({"const": n}))}}),
            fields.clone(),
        ),
        (
            "patternProperties",
            json!({"items": {"patternProperties": patterns}}),
            json!(vec![fields; 4]),
        ),
        (
            "tuple",
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": doubling_definitions(25), "items": [{"$ref": "#/definitions/d0"}]}),
            json!([1]),
        ),
        (
            "dependencies",
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": doubling_definitions(25), "dependencies": {"a": {"$ref": "#/definitions/d0"}}}),
            json!({"a": 1}),
        ),
    ] {
        let size = SchemaSize {
            parts: validation_cost::parts(&schema),
            has_references: true,
        };
        assert!(!validation_cost::is_bounded(&schema, size, &value), "{bomb}");
        assert!(structured_output(&value, &schema).is_empty(), "{bomb}");
    }
}

#[test]
fn a_long_value_is_validated_by_an_ordinary_schema() {
    let row = json!({"type": "object", "required": ["id", "name"], "additionalProperties": false, "properties": {
        "id": {"type": "integer"}, "name": {"type": ["string", "null"]}, "state": {"enum": ["a", "b", "c"]},
        "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}});
    let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": row}}});
    let mut rows = vec![json!({"id": 1, "name": "x", "state": "b", "tags": ["t", null]}); 20_000];
    rows.push(json!({"id": "1", "name": "x"}));
    let problems = structured_output(&json!({"rows": rows}), &schema);
    assert_eq!(
        problems,
        ["`/rows/20000/id` must be an integer, and a string was given"]
    );
}

fn doubling_definitions(levels: usize) -> Value {
    let next = |level: usize| json!({"$ref": format!("#/definitions/d{}", level + 1)});
    let doubled = (0..levels).map(|level| (format!("d{level}"), json!({"allOf": [next(level), next(level)]})));
    doubled
        .chain([(format!("d{levels}"), json!({"type": "integer"}))])
        .collect()
}

#[test]
fn a_schema_may_refer_to_itself() {
    let schema = json!({"type": "object", "$defs": {"tree": {"type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}},
        "properties": {"tree": {"$ref": "#/$defs/tree"}}});
    let text = r#"{"tree":{"n":1,"kids":[{"n":2,"kids":[{"n":"3"}]}]}}"#;
    let (sent, notes) = checked(&schema, text, Check::Coerce).unwrap();
    assert_eq!(sent, r#"{"tree":{"n":1,"kids":[{"n":2,"kids":[{"n":3}]}]}}"#);
    assert_eq!(notes, ["argument `/tree/kids/0/kids/0/n`: string was made integer"]);
    let problems = checked(&schema, r#"{"tree":{"n":1,"kids":[{}]}}"#, Check::Coerce).unwrap_err();
    assert_eq!(problems, ["`/tree/kids/0/n` is missing"]);
}

#[test]
fn a_structured_answer_is_compared_with_what_was_promised() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    assert!(structured_output(&json!({"n": 1}), &schema).is_empty());
    assert_eq!(structured_output(&json!({}), &schema), ["`n` is missing"]);
    assert_eq!(
        structured_output(&json!([1]), &schema),
        ["the whole must be an object, and a list was given"]
    );
}
