use serde_json::json;

use super::*;
use crate::args::{Arguments, LazyValidator};
use pegboard_config::Check;

fn schema(number: usize) -> String {
    json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": number}}}).to_string()
}

fn is_valid(validator: &LazyValidator, number: usize, schemas: &CompiledSchemas, n: usize) -> bool {
    let given = Arguments::parse(&format!(r#"{{"n":{n}}}"#)).unwrap();
    let checked = validator.arguments(&given, &schema(number), Check::Strict, schemas);
    checked.is_ok()
}

#[test]
fn validators_that_were_dropped_because_they_were_not_used_validate_again() {
    let schemas = CompiledSchemas::default();
    let tools: Vec<LazyValidator> = (0..2 * MAX_COMPILED).map(|_| LazyValidator::default()).collect();
    for (number, tool) in tools.iter().enumerate() {
        assert!(is_valid(tool, number, &schemas, number));
        assert!(is_valid(&tools[0], 0, &schemas, 0), "the first one is in use");
    }
    assert_eq!(schemas.count(), MAX_COMPILED);
    let dropped = tools
        .iter()
        .filter(|tool| format!("{tool:?}") == "not compiled")
        .count();
    assert_eq!(dropped, MAX_COMPILED);
    assert_eq!(format!("{:?} {:?}", tools[0], tools[1]), "compiled not compiled");
    for (number, tool) in tools.iter().enumerate() {
        assert!(is_valid(tool, number, &schemas, number));
        assert!(!is_valid(tool, number, &schemas, number + 1), "{number}");
    }
    assert_eq!(schemas.count(), MAX_COMPILED);
}

#[test]
fn equal_schemas_are_compiled_once() {
    let schemas = CompiledSchemas::default();
    let (one, other) = (LazyValidator::default(), LazyValidator::default());
    assert!(is_valid(&one, 7, &schemas, 7) && !is_valid(&other, 7, &schemas, 8));
    assert_eq!(schemas.count(), 1);
    assert!(Arc::ptr_eq(&schemas.get(&schema(7)), &schemas.get(&schema(7))));
}

#[test]
fn large_schemas_are_dropped_before_there_are_many() {
    let schemas = CompiledSchemas::default();
    let large = |number: usize| {
        let fields = (0..900).map(|field| (format!("f{field}"), json!({"type": "integer", "maximum": number})));
        json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()}).to_string()
    };
    for number in 0..40 {
        let schema = schemas.get(&large(number));
        assert!(schema.bytes() > 1 << 20 && schema.check().unusable().is_none());
    }
    let most = MAX_BYTES / schemas.get(&large(39)).bytes();
    assert_eq!(schemas.count(), most);
}

#[test]
fn a_schema_that_cannot_be_used_is_known_as_such_after_it_was_dropped() {
    let schemas = CompiledSchemas::default();
    let (tool, given) = (LazyValidator::default(), Arguments::default());
    let bad = json!({"type": "nothing"}).to_string();
    let note = || tool.arguments(&given, &bad, Check::Strict, &schemas).unwrap().notes;
    let told = note();
    assert!(told[0].starts_with("the arguments were not checked"), "{told:?}");
    for number in 0..=MAX_COMPILED {
        schemas.get(&schema(number));
    }
    assert!(tool.unusable().is_some());
    assert_eq!(note(), told);
}
