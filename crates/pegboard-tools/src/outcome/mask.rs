//! Masks secrets in every text of an outcome.

use serde_json::{Map, Value};

use super::{
    Outcome,
    answer::Answer,
    content::Content,
    failure::Failure,
    resources_prompts::{Body, FilledPrompt, ResourceContents},
};
use pegboard_mask::{Carried, Counts, Masker};

impl Outcome {
    /// Masks the secrets in it.
    #[doc(hidden)]
    pub fn mask(&mut self, masker: &Masker, counts: &mut Counts) {
        match self {
            Self::Done(answer) | Self::ToolFailed(answer) => {
                let Answer {
                    content,
                    structured,
                    meta,
                    error_code: _,
                    executed: _,
                    rendering: _,
                    raw: _,
                } = answer;
                mask_answer(content, structured, meta, masker, counts);
            }
            Self::Refused(failure) | Self::Lost(failure) => mask_failure(failure, masker, counts),
        }
    }
}

impl Outcome {
    /// Returns whether the result is unparsed.
    #[doc(hidden)]
    pub fn is_raw(&self) -> bool {
        matches!(self, Self::Done(answer) | Self::ToolFailed(answer) if answer.raw.is_some())
    }

    /// Returns whether masking would scan more than `limit` bytes. Images and audio are not scanned. Stops counting at the limit.
    #[doc(hidden)]
    pub fn is_longer_than(&self, limit: usize) -> bool {
        let mut left = BytesLeft(limit);
        let fits = match self {
            Self::Done(answer) | Self::ToolFailed(answer) => {
                answer.raw.iter().all(|raw| left.take(raw.json.len()))
                    && answer.content.iter().all(|block| left.take_block(block))
                    && answer.structured.iter().all(|value| left.take_value(value))
                    && answer.meta.iter().all(|meta| left.take_map(meta))
            }
            Self::Refused(failure) | Self::Lost(failure) => left.take(failure.message.len()),
        };
        !fits
    }
}

/// Returns whether a value has more bytes of text than `limit`.
pub fn is_longer_than(value: &Value, limit: usize) -> bool {
    !BytesLeft(limit).take_value(value)
}

/// How many bytes are left. Each method subtracts the size of its argument, and returns `false` if that is too large.
struct BytesLeft(usize);

impl BytesLeft {
    /// What a block, a number or a key counts in addition to its text.
    const OVERHEAD: usize = 8;

    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes.saturating_add(Self::OVERHEAD));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    fn take_block(&mut self, block: &Content) -> bool {
        match block {
            Content::Text { text, rest } => self.take(text.len()) && self.take_map(rest),
            Content::Image { mime_type, rest, .. } | Content::Audio { mime_type, rest, .. } => {
                self.take(mime_type.len()) && self.take_map(rest)
            }
            Content::Resource { resource, rest } => self.take_map(resource) && self.take_map(rest),
            Content::Link { uri, rest } => self.take(uri.len()) && self.take_map(rest),
            Content::Other(value) => self.take_value(value),
        }
    }

    fn take_map(&mut self, map: &Map<String, Value>) -> bool {
        map.iter()
            .all(|(key, value)| self.take(key.len()) && self.take_value(value))
    }

    fn take_value(&mut self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.take(text.len()),
            Value::Array(items) => self.take(0) && items.iter().all(|item| self.take_value(item)),
            Value::Object(map) => self.take(0) && self.take_map(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.take(0),
        }
    }
}

impl Failure {
    /// Masks the secrets in the failure.
    #[doc(hidden)]
    pub fn into_masked(mut self, masker: &Masker) -> Self {
        mask_failure(&mut self, masker, &mut Counts::default());
        self
    }
}

impl ResourceContents {
    /// Masks the secrets in it. A blob is scanned if it decodes to text.
    #[doc(hidden)]
    pub fn mask(&mut self, masker: &Masker) {
        let mut counts = Counts::default();
        masker.mask(&mut self.uri, &mut counts);
        match &mut self.body {
            Body::Text(text) => masker.mask(text, &mut counts),
            Body::Blob(bytes) => masker.mask_bytes(bytes, &mut counts),
        }
        masker.mask_map(&mut self.rest, &mut counts);
    }
}

impl FilledPrompt {
    /// Masks the secrets in it.
    #[doc(hidden)]
    pub fn mask(&mut self, masker: &Masker) {
        let mut counts = Counts::default();
        if let Some(description) = &mut self.description {
            masker.mask(description, &mut counts);
        }
        let mut carried = Carried::default();
        for message in &mut self.messages {
            mask_block(&mut message.content, masker, &mut carried, &mut counts);
        }
    }
}

pub(super) fn mask_answer(
    content: &mut [Content],
    structured: &mut Option<Value>,
    meta: &mut Option<Map<String, Value>>,
    masker: &Masker,
    counts: &mut Counts,
) {
    // A private key may be spread over several blocks.
    let mut carried = Carried::default();
    for block in content {
        mask_block(block, masker, &mut carried, counts);
    }
    if let Some(structured) = structured {
        masker.mask_value(structured, counts);
    }
    if let Some(meta) = meta {
        masker.mask_map(meta, counts);
    }
}

fn mask_failure(failure: &mut Failure, masker: &Masker, counts: &mut Counts) {
    masker.mask(&mut failure.message, counts);
    if let Some(hint) = &mut failure.hint {
        masker.mask(hint, counts);
    }
    // Its texts are in the message too, where they are counted.
    if let Some(cause) = &mut failure.cause {
        cause.mask(masker, &mut Counts::default());
    }
    if let Some(diagnosis) = &mut failure.diagnosis {
        for text in diagnosis.texts_mut() {
            masker.mask(text, &mut Counts::default());
        }
    }
}

/// Masks the secrets in a block. The data of images and audio is not masked, because a secret cannot be cut out of it.
pub(super) fn mask_block(block: &mut Content, masker: &Masker, carried: &mut Carried, counts: &mut Counts) {
    match block {
        Content::Text { text, rest } => {
            masker.mask_next(text, carried, counts);
            masker.mask_map(rest, counts);
        }
        Content::Image { mime_type, rest, .. } | Content::Audio { mime_type, rest, .. } => {
            masker.mask(mime_type, counts);
            masker.mask_map(rest, counts);
        }
        Content::Resource { resource, rest } => {
            masker.mask_map(resource, counts);
            masker.mask_map(rest, counts);
        }
        Content::Link { uri, rest } => {
            masker.mask(uri, counts);
            masker.mask_map(rest, counts);
        }
        Content::Other(value) => masker.mask_value(value, counts),
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde_json::json;

    use super::*;
    use crate::outcome::Kind;
    use pegboard_base::secret::Secret;
    use pegboard_mask::Masking;

    fn masker() -> Masker {
        Masker::new(&Masking::default(), [Secret::new("hunter2hunter2")]).unwrap()
    }

    fn masked(block: Value) -> Value {
        let mut block: Content = serde_json::from_value(block).unwrap();
        let mut counts = Counts::default();
        mask_block(&mut block, &masker(), &mut Carried::default(), &mut counts);
        serde_json::to_value(&block).unwrap()
    }

    #[test]
    fn every_text_of_every_block_is_masked() {
        let secret = "a hunter2hunter2";
        for block in [
            json!({"type": "text", "text": secret, "_meta": {"x": secret}}),
            json!({"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": {"x": secret}}),
            json!({"type": "resource", "resource": {"uri": "db://u:hunter2hunter2@h", "text": secret}}),
            json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "blob": STANDARD.encode(secret)}}),
            json!({"type": "resource_link", "uri": "https://x/?k=hunter2hunter2", "name": secret}),
            json!({"type": "hologram", "of": [secret]}),
        ] {
            let masked = masked(block.clone()).to_string();
            assert!(!masked.contains("hunter2") && !masked.contains("aHVudGVy"), "{masked}");
        }
    }

    #[test]
    fn a_private_key_over_several_blocks_is_masked_in_each() {
        let lines = [
            concat!("-----BEGIN PRIV", "ATE KEY-----"),
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
            "BKcwggSjAgEAAoIBAQC7xK9vT3mQz8wL",
            concat!("-----END PRIV", "ATE KEY-----"),
            "done",
        ];
        let mut content: Vec<Content> = lines
            .iter()
            .map(|line| serde_json::from_value(json!({"type": "text", "text": line})).unwrap())
            .collect();
        mask_answer(&mut content, &mut None, &mut None, &masker(), &mut Counts::default());
        let shown = serde_json::to_string(&content).unwrap();
        assert!(
            !shown.contains("MIIE") && !shown.contains("BKcw") && shown.contains("done"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_no_text_stays_as_it_is() {
        let bytes = STANDARD.encode([0xff; 64]);
        for block in [
            json!({"type": "image", "data": bytes, "mimeType": "image/png"}),
            json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "application/zip", "blob": bytes}}),
        ] {
            assert_eq!(masked(block.clone()), block);
        }
    }

    #[test]
    fn failures_are_masked_with_their_hints() {
        let failure = Failure::new(Kind::Transport, "no hunter2hunter2").hint("use hunter2hunter2");
        let mut counts = Counts::default();
        let mut outcome = Outcome::Refused(failure);
        outcome.mask(&masker(), &mut counts);
        assert_eq!(outcome.text(), "no [MASKED_SECRET]");
        assert_eq!(outcome.hint(), Some("use [MASKED_SECRET]"));
        assert_eq!(counts.total(), 2);
    }
}
