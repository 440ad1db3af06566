//! Sampling requests: which params reach the model, and which results reach the server.

use pegboard_protocol::code;
use serde_json::Value;

use super::{callback::ErrorResponse, offers::Offers};

/// Validates the params of `sampling/createMessage`, and removes what the host does not offer.
pub(super) fn prepare_params(offers: Offers, params: &mut Value) -> Result<(), ErrorResponse> {
    let Some(fields) = params.as_object_mut() else {
        return Err((code::INVALID_PARAMS, "the parameters are no object".to_owned()));
    };
    if !fields.get("messages").is_some_and(Value::is_array) {
        return Err((code::INVALID_PARAMS, "`messages` is missing".to_owned()));
    }
    for field in ["tools", "toolChoice"] {
        if fields.get(field).is_some_and(|value| !value.is_null()) && !offers.has(Offers::SAMPLING_TOOLS) {
            let text = format!("`{field}` needs the capability `sampling.tools`, which this client does not have");
            return Err((code::INVALID_PARAMS, text));
        }
    }
    if !offers.has(Offers::SAMPLING_CONTEXT) {
        // The protocol allows clients to ignore the field, and in older versions servers cannot know whether a client does.
        fields.remove("includeContext");
    }
    Ok(())
}

/// Lowers `maxTokens` to `limit`, and sets it if it is missing.
pub(super) fn limit_tokens(params: &mut Value, limit: u64) {
    let requested = params.get("maxTokens").and_then(Value::as_u64).unwrap_or(limit);
    params["maxTokens"] = requested.min(limit).into();
}

/// Rejects a result of `sampling/createMessage` that violates the protocol.
pub(super) fn check_result(result: Value) -> Result<Value, ErrorResponse> {
    match problem_of(&result) {
        None => Ok(result),
        Some(problem) => {
            tracing::warn!(problem, "the host's answer for the model is not sent");
            Err((code::INTERNAL_ERROR, "the model's answer cannot be sent".to_owned()))
        }
    }
}

/// Returns what is wrong with a result of `sampling/createMessage`.
fn problem_of(result: &Value) -> Option<&'static str> {
    let text = |key: &str| result.get(key).and_then(Value::as_str);
    if !result.is_object() {
        return Some("it is no object");
    }
    if !matches!(text("role"), Some("assistant" | "user")) {
        return Some("its `role` is neither `assistant` nor `user`");
    }
    if text("model").is_none() {
        return Some("its `model` is no text");
    }
    if result.get("_meta").is_some_and(|meta| !meta.is_object()) {
        return Some("its `_meta` is no object");
    }
    let is_valid = match result.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().all(is_block),
        Some(block) => is_block(block),
        None => false,
    };
    (!is_valid).then_some("its `content` is no block of content, nor a list of such")
}

/// Returns `true` if a content block has the fields of its type.
fn is_block(block: &Value) -> bool {
    let has_texts = |keys: &[&str]| keys.iter().all(|key| block.get(key).is_some_and(Value::is_string));
    match block.get("type").and_then(Value::as_str) {
        Some("text") => has_texts(&["text"]),
        Some("image" | "audio") => has_texts(&["data", "mimeType"]),
        Some("tool_use") => has_texts(&["id", "name"]) && block.get("input").is_some_and(Value::is_object),
        Some("tool_result") => has_texts(&["toolUseId"]) && block.get("content").is_some_and(Value::is_array),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_valid_sampling_results_are_sent() {
        let answer = |content: Value| json!({"role": "assistant", "model": "m", "content": content});
        for content in [
            json!({"type": "text", "text": ""}),
            json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}, {"type": "audio", "data": "", "mimeType": "a/b"}]),
            json!([{"type": "tool_use", "id": "1", "name": "t", "input": {}}]),
            json!({"type": "tool_result", "toolUseId": "1", "content": []}),
        ] {
            assert_eq!(problem_of(&answer(content.clone())), None, "{content}");
        }
        for content in [
            json!("text"),
            Value::Null,
            json!({"type": "text"}),
            json!({"text": "a"}),
            json!([{"type": "text", "text": "a"}, 5]),
            json!({"type": "image", "data": "AA=="}),
            json!({"type": "tool_use", "id": "1", "name": "t"}),
        ] {
            assert!(problem_of(&answer(content.clone())).is_some(), "{content}");
        }
        for (key, wrong) in [("role", json!("system")), ("model", Value::Null), ("_meta", json!("x"))] {
            let mut answer = answer(json!({"type": "text", "text": "a"}));
            answer[key] = wrong;
            assert!(problem_of(&answer).is_some(), "{key}");
        }
        assert!(problem_of(&json!("text")).is_some());
    }
}
