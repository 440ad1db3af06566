//! Validation of arguments and structured output against a server's schema.

use std::time::{Duration, Instant};

use pegboard::{
    Arguments,
    config::Check,
    fuzz::{validate, validate_output},
};
use serde_json::{Value, value::RawValue};

/// Far more than any bounded validation of a short input takes, even on a busy machine.
const SLOW: Duration = Duration::from_secs(5);

/// The first line is a schema, the rest are arguments. Whatever the schema, validation ends soon, says the same twice, and what coercion
/// makes of the arguments is valid.
pub fn schema(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (schema, arguments) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return;
    };
    let started = Instant::now();
    if let Ok(arguments) = Arguments::parse(arguments) {
        for mode in [
            Check::Off,
            Check::Required,
            Check::Relaxed,
            Check::Coerce,
            Check::Strict,
        ] {
            check(&schema, &arguments, mode);
        }
        let unknown = arguments.unknown(&schema);
        assert!(unknown.len() <= 10);
    }
    if let Ok(output) = serde_json::from_str(arguments) {
        let problems = validate_output(&schema, &output);
        assert!(problems.len() <= 20, "{} problems are reported", problems.len());
    }
    assert!(started.elapsed() < SLOW, "validation took {:?}", started.elapsed());
}

/// Whether the text is a JSON object. A number out of range and half of a surrogate pair are kept as the model wrote them.
pub(super) fn is_object(arguments: &Arguments) -> bool {
    arguments.as_str().starts_with('{') && serde_json::from_str::<&RawValue>(arguments.as_str()).is_ok()
}

/// Whether parsers may differ in what they make of the arguments: a key is given twice, or a value cannot be represented.
fn is_ambiguous(arguments: &Arguments, problems: &[String]) -> bool {
    problems[0].contains("given twice") || serde_json::from_str::<Value>(arguments.as_str()).is_err()
}

fn check(schema: &Value, arguments: &Arguments, mode: Check) {
    match validate(schema, arguments, mode) {
        Ok((sent, notes)) => {
            let is_changed = sent.as_str() != arguments.as_str();
            assert!(
                !is_changed || matches!(mode, Check::Relaxed | Check::Coerce),
                "{mode:?} changes arguments"
            );
            assert!(mode != Check::Off || notes.is_empty());
            assert!(is_object(&sent), "no object: {}", sent.as_str());
            if mode == Check::Coerce && is_changed {
                assert!(
                    validate(schema, &sent, Check::Strict).is_ok(),
                    "coerced to {}, which is invalid",
                    sent.as_str()
                );
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(mode != Check::Off || is_ambiguous(arguments, &problems), "{problems:?}");
            assert!(problems.len() <= 20, "{} problems are reported", problems.len());
            let again = validate(schema, arguments, mode).expect_err("it was refused before");
            assert_eq!(problems, again);
        }
    }
}
