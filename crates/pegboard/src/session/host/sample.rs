//! A model for the server: what it may ask for, and what may come back.

use serde_json::{Value, json};

use super::{Refusal, Responder};

impl Responder {
    /// What we say about models that servers may ask.
    pub(super) fn sampling(&self) -> Value {
        let mut sampling = json!({});
        if self.host.offers_sampling_tools() {
            sampling["tools"] = json!({});
        }
        if self.host.offers_sampling_context() {
            sampling["context"] = json!({});
        }
        sampling
    }

    pub(super) async fn sample(&self, mut params: Value) -> Result<Value, Refusal> {
        let limits = self.host.sampling_limits();
        let Some(fields) = params.as_object_mut() else {
            return Err((-32602, "the parameters are no object".to_owned()));
        };
        if !fields.get("messages").is_some_and(Value::is_array) {
            return Err((-32602, "`messages` is missing".to_owned()));
        }
        for field in ["tools", "toolChoice"] {
            if fields.get(field).is_some_and(|value| !value.is_null()) && !self.host.offers_sampling_tools() {
                let text = format!("`{field}` needs the capability `sampling.tools`, which this client does not have");
                return Err((-32602, text));
            }
        }
        if !self.host.offers_sampling_context() {
            // A client may leave that out, and servers of older versions could not know whether it does.
            fields.remove("includeContext");
        }
        if !self.desired_state.may_sample(limits.per_minute) {
            let text = format!("only {} requests per minute are answered", limits.per_minute);
            return Err((-32603, text));
        }
        let asked = fields.get("maxTokens").and_then(Value::as_u64).unwrap_or(limits.tokens);
        fields.insert("maxTokens".to_owned(), asked.min(limits.tokens).into());
        if !self.host.approve_sampling(&self.server, &params).await {
            return Err((-1, "the user rejected the request".to_owned()));
        }
        self.count_question();
        let answer = self.host.sample(&self.server, params).await;
        let answer = answer.map_err(|problem| (-32603, problem))?;
        match problem_of(&answer) {
            None => Ok(answer),
            Some(problem) => {
                tracing::warn!(problem, "the host's answer for the model is not sent");
                Err((-32603, "the model's answer cannot be sent".to_owned()))
            }
        }
    }
}

/// What is wrong with a result of `sampling/createMessage`.
fn problem_of(answer: &Value) -> Option<&'static str> {
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    if !answer.is_object() {
        return Some("it is no object");
    }
    if !matches!(text("role"), Some("assistant" | "user")) {
        return Some("its `role` is neither `assistant` nor `user`");
    }
    if text("model").is_none() {
        return Some("its `model` is no text");
    }
    if answer.get("_meta").is_some_and(|meta| !meta.is_object()) {
        return Some("its `_meta` is no object");
    }
    let is_proper = match answer.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().all(is_block),
        Some(block) => is_block(block),
        None => false,
    };
    (!is_proper).then_some("its `content` is no block of content, nor a list of such")
}

/// Whether a block of content has what its type needs.
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
    use super::*;

    #[test]
    fn only_what_the_protocol_knows_is_sent_as_a_models_answer() {
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
