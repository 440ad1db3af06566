//! `fail`: a tool that fails with a given message.

use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Failure, Output, at_most, harmless};

const MAX_MESSAGE: usize = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    message: Option<String>,
}

pub(super) fn definition() -> Value {
    json!({
        "name": "fail",
        "title": "Failing tool",
        "description": "Always fails, with the message it is given. Use it to see how a failed call is shown.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": {
                    "type": "string",
                    "description": "What the failure says",
                    "maxLength": MAX_MESSAGE,
                    "default": "this tool always fails",
                }
            },
            "additionalProperties": false,
        },
        "annotations": harmless(),
    })
}

pub(super) fn run(arguments: Arguments) -> Result<Output, Failure> {
    let message = arguments.message.unwrap_or_else(|| "this tool always fails".into());
    at_most("message", &message, MAX_MESSAGE)?;
    Err(Failure(message))
}
