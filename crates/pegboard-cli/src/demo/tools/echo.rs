//! `echo`: returns its arguments.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::tool::{Failure, Output, at_most, harmless, text};

const MAX_TEXT: usize = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    text: Option<String>,
    /// Distinguishes `null`, which is echoed, from a missing key.
    #[serde(default, deserialize_with = "present")]
    json: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

pub(super) fn definition() -> Value {
    json!({
        "name": "echo",
        "title": "Echo",
        "description": "Gives back the text and the JSON value it is given, unchanged. At least one of the two is needed.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "Any text", "maxLength": MAX_TEXT},
                "json": {"description": "Any JSON value"},
            },
            "minProperties": 1,
            "examples": [{"text": "hello"}],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The text that was given"},
                "json": {"description": "The JSON value that was given"},
            },
            "additionalProperties": false,
        },
        "annotations": harmless(),
    })
}

pub(super) fn run(arguments: Arguments) -> Result<Output, Failure> {
    let (mut content, mut structured) = (Vec::new(), Map::new());
    if let Some(given) = arguments.text {
        at_most("text", &given, MAX_TEXT)?;
        content.push(text(given.clone()));
        structured.insert("text".into(), Value::String(given));
    }
    if let Some(given) = arguments.json {
        content.push(text(given.to_string()));
        structured.insert("json".into(), given);
    }
    if content.is_empty() {
        return Err(Failure("invalid arguments: give `text`, `json` or both".into()));
    }
    Ok(Output {
        content,
        structured: Some(Value::Object(structured)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tools::arguments_of;

    #[test]
    fn what_goes_in_comes_out() {
        for given in [
            json!({"text": "a\nb"}),
            json!({"json": null}),
            json!({"text": "", "json": {"a": [1, 2.5]}}),
        ] {
            let arguments = arguments_of(given.as_object().unwrap().clone()).unwrap();
            assert_eq!(run(arguments).unwrap().structured, Some(given));
        }
    }

    #[test]
    fn nothing_and_strangers_are_refused() {
        assert!(run(arguments_of(Map::new()).unwrap()).is_err());
        assert!(arguments_of::<Arguments>(json!({"txt": "a"}).as_object().unwrap().clone()).is_err());
    }
}
