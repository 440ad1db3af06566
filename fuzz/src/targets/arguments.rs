//! Arguments in a model's words or on a command line, and commands with variables.

use pegboard::{
    Arguments, Env, ServerConfig,
    config::{Check, Reading, Transport},
    fuzz::validate,
};
use serde_json::{Value, json};

use super::schema::is_object;

/// Values of a variable. None of them may split an argument or join two.
const VALUES: [&str; 4] = ["plain", "a b  c", "'\" \\\" $(id) `id` ; | & > x\n\t", ""];

/// If the first line is a JSON object, it is the schema. Every text is read in every way into one JSON object on one line, or refused;
/// variables never change the number of arguments of a command.
pub fn arguments(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (schema, text) = match text.split_once('\n') {
        Some((schema, rest)) if schema.starts_with('{') => (serde_json::from_str(schema).ok(), rest),
        _ => (None, &*text),
    };
    let schema = schema.unwrap_or_else(some_schema);
    for reading in [Reading::Json, Reading::Repair, Reading::Cascade, Reading::Guided] {
        match Arguments::read(text, reading, &schema) {
            Ok(read) => check(&read.arguments, &schema),
            Err(error) => {
                assert!(
                    matches!(reading, Reading::Json | Reading::Repair),
                    "{reading:?} refuses: {error}"
                );
                assert!(!error.to_string().is_empty());
            }
        }
    }
    let pairs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    if let Ok(arguments) = Arguments::from_pairs(pairs.iter().copied(), &schema) {
        check(&arguments, &schema);
    }
    check_command(text);
}

fn check(arguments: &Arguments, schema: &Value) {
    let text = arguments.as_str();
    assert!(!text.contains(['\n', '\r']), "more than one line: {text:?}");
    assert!(is_object(arguments), "no object: {text:?}");
    for mode in [Check::Coerce, Check::Relaxed] {
        if let Ok((sent, _)) = validate(schema, arguments, mode) {
            assert!(
                !sent.as_str().contains(['\n', '\r']),
                "more than one line: {:?}",
                sent.as_str()
            );
            assert!(is_object(&sent), "no object: {:?}", sent.as_str());
        }
    }
}

fn check_command(text: &str) {
    let argc = VALUES.map(|value| {
        let env = Env::new(|_| Some(value.to_owned()));
        let (_, server) = ServerConfig::parse(&format!("x=run {text}"), &env).ok()?;
        match server.transport {
            Transport::Stdio(command) => Some(command.args.len()),
            _ => None,
        }
    });
    let mut known = argc.iter().flatten();
    let first = known.next();
    assert!(
        known.all(|argc| Some(argc) == first),
        "a variable changes the number of arguments: {argc:?}"
    );
}

fn some_schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": ["number", "null"]},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object", "properties": {"state": {"enum": ["open", "shut"]}, "ids": {"type": "array", "items": {"type": "integer"}}}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    }})
}
