//! Removes invisible characters from outcomes: control characters, direction marks, zero-width characters and Unicode tags can hide text from
//! a user that a model reads.

use serde_json::{Map, Value};

use super::{Outcome, answer::Answer, content::Content};
use crate::catalog::sanitize::{has_invisible, remove_invisible};

impl Outcome {
    /// Removes invisible characters from every text of it. A text without any costs one scan of its bytes.
    #[doc(hidden)]
    pub fn sanitize(&mut self) {
        match self {
            Self::Done(answer) | Self::ToolFailed(answer) => sanitize_answer(answer),
            Self::Refused(failure) | Self::Lost(failure) => remove_invisible(&mut failure.message),
        }
    }
}

/// Removes invisible characters from the texts of an error response.
pub fn sanitize_error(message: &mut String, data: Option<&mut Value>) {
    remove_invisible(message);
    if let Some(data) = data {
        sanitize_value(data);
    }
}

fn sanitize_answer(answer: &mut Answer) {
    answer.content.iter_mut().for_each(sanitize_block);
    if let Some(structured) = &mut answer.structured {
        sanitize_value(structured);
    }
    if let Some(meta) = &mut answer.meta {
        sanitize_map(meta);
    }
}

pub(super) fn sanitize_block(block: &mut Content) {
    match block {
        Content::Text { text, rest }
        | Content::Image {
            mime_type: text, rest, ..
        }
        | Content::Audio {
            mime_type: text, rest, ..
        }
        | Content::Link { uri: text, rest } => {
            remove_invisible(text);
            sanitize_map(rest);
        }
        Content::Resource { resource, rest } => {
            sanitize_map(resource);
            sanitize_map(rest);
        }
        Content::Other(value) => sanitize_value(value),
    }
}

/// The JSON reader limits the depth to 128, so recursion is safe.
fn sanitize_value(value: &mut Value) {
    match value {
        Value::String(text) => remove_invisible(text),
        Value::Array(items) => items.iter_mut().for_each(sanitize_value),
        Value::Object(fields) => sanitize_map(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Of keys that become equal, one is kept.
pub fn sanitize_map(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(sanitize_value);
    if fields.keys().any(|key| has_invisible(key)) {
        let cleaned = std::mem::take(fields).into_iter().map(|(mut key, value)| {
            remove_invisible(&mut key);
            (key, value)
        });
        *fields = cleaned.collect();
    }
}

/// Returns whether [`sanitize_block`] would change a block.
pub(super) fn has_invisible_block(block: &Content) -> bool {
    match block {
        Content::Text { text, rest }
        | Content::Image {
            mime_type: text, rest, ..
        }
        | Content::Audio {
            mime_type: text, rest, ..
        }
        | Content::Link { uri: text, rest } => has_invisible(text) || has_invisible_map(rest),
        Content::Resource { resource, rest } => has_invisible_map(resource) || has_invisible_map(rest),
        Content::Other(value) => has_invisible_value(value),
    }
}

/// Returns whether [`sanitize_map`] would change a map.
pub(super) fn has_invisible_map(fields: &Map<String, Value>) -> bool {
    let mut fields = fields.iter();
    fields.any(|(key, value)| has_invisible(key) || has_invisible_value(value))
}

fn has_invisible_value(value: &Value) -> bool {
    match value {
        Value::String(text) => has_invisible(text),
        Value::Array(items) => items.iter().any(has_invisible_value),
        Value::Object(fields) => has_invisible_map(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        catalog::sanitize::is_invisible,
        outcome::{Failure, Kind},
    };

    /// ESC, zero width space, right-to-left override, and two Unicode tags.
    const UNSEEN: &str = "a\u{1b}\u{200b}\u{202e}\u{e0041}\u{e0042}b";

    fn has_any(value: &Value) -> bool {
        // JSON escapes control characters, so the strings themselves are examined.
        match value {
            Value::String(text) => text.chars().any(is_invisible),
            Value::Array(items) => items.iter().any(has_any),
            Value::Object(fields) => fields
                .iter()
                .any(|(key, value)| key.chars().any(is_invisible) || has_any(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    #[test]
    fn nothing_invisible_is_left_in_any_part_of_an_answer() {
        let blocks = json!([
            {"type": "text", "text": UNSEEN, "_meta": {UNSEEN: UNSEEN}},
            {"type": "image", "data": "AA==", "mimeType": UNSEEN, "annotations": {"x": UNSEEN}},
            {"type": "audio", "data": "AA==", "mimeType": UNSEEN},
            {"type": "resource", "resource": {"uri": UNSEEN, "text": UNSEEN}},
            {"type": "resource_link", "uri": UNSEEN, "name": UNSEEN},
            {"type": "hologram", "of": [UNSEEN]},
        ]);
        assert!(has_any(&blocks));
        let blocks: Vec<Content> = serde_json::from_value(blocks).unwrap();
        let mut answer = Answer::from_content(blocks);
        answer.structured = Some(json!({"k": [{UNSEEN: UNSEEN}]}));
        answer.meta = json!({UNSEEN: 1}).as_object().cloned();
        for mut outcome in [Outcome::Done(answer.clone()), Outcome::ToolFailed(answer)] {
            outcome.sanitize();
            let (Outcome::Done(answer) | Outcome::ToolFailed(answer)) = outcome else {
                unreachable!("it stays what it is")
            };
            assert!(!has_any(&serde_json::to_value(&answer.content).unwrap()));
            assert_eq!(answer.structured, Some(json!({"k": [{"ab": "ab"}]})));
            assert_eq!(answer.meta, json!({"ab": 1}).as_object().cloned());
            assert!(answer.text().starts_with("ab\n"), "{}", answer.text());
        }
        let mut lost = Outcome::Lost(Failure::new(Kind::Transport, UNSEEN));
        lost.sanitize();
        assert_eq!(lost.text(), "ab");
    }
}
