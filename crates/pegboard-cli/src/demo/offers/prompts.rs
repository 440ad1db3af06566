//! Prompts: a greeting and a review.

use pegboard_gateway::RpcError;
use serde_json::{Map, Value, json};

use super::require_text;
use crate::demo::fields::object;

pub(in crate::demo) fn list() -> Vec<Value> {
    vec![
        json!({
            "name": "greet",
            "title": "Greeting",
            "description": "Asks for a short greeting",
            "arguments": [{"name": "name", "description": "Who is greeted", "required": true}],
        }),
        json!({
            "name": "review",
            "title": "Text review",
            "description": "Asks for a review of a text",
            "arguments": [{"name": "text", "description": "The text to review", "required": true}],
        }),
    ]
}

pub(in crate::demo) fn get(params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    let arguments = match params.get("arguments") {
        None => &Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    let (description, text) = match require_text(params, "name")? {
        "greet" => {
            let name = require_text(arguments, "name")?;
            ("A greeting", format!("Greet {name} in one friendly sentence."))
        }
        "review" => {
            let text = require_text(arguments, "text")?;
            (
                "A review",
                format!("Review the following text. Name its best point and what to improve.\n\n{text}"),
            )
        }
        other => return Err(RpcError::invalid_params(format!("unknown prompt `{other}`"))),
    };
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(object([
        ("description", json!(description)),
        ("messages", json!([message])),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_needs_its_argument() {
        for (params, code) in [
            (json!({"name": "greet", "arguments": {"name": "Ada"}}), None),
            (json!({"name": "review", "arguments": {"text": ""}}), None),
            (json!({"name": "greet"}), Some(-32602)),
            (json!({"name": "greet", "arguments": {"name": 1}}), Some(-32602)),
            (json!({"name": "greet", "arguments": []}), Some(-32602)),
            (json!({"name": "other", "arguments": {}}), Some(-32602)),
            (json!({}), Some(-32602)),
        ] {
            let got = get(params.as_object().unwrap());
            assert_eq!(got.err().map(|fault| fault.code), code, "{params}");
        }
    }
}
