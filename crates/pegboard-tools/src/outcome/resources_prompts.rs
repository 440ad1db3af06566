//! Results of requests other than tool calls: resource contents, prompts, and completions.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::content::Content;
use pegboard_base::label::label;

/// The contents of one resource. Reading a URI may return several, such as the files of a folder.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Its URI.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its body.
    pub body: Body,
    /// The other fields of the contents.
    pub rest: Map<String, Value>,
}

/// The body of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Binary data, in base64 as sent.
    Blob(String),
}

/// A blob that is not valid base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bytes of `{uri}` are not written in base64: {problem}")]
#[non_exhaustive]
pub struct BadBlob {
    /// The URI of the resource.
    pub uri: String,
    /// What is wrong.
    pub problem: String,
}

/// A part of a long text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TextPage<'a> {
    /// The part.
    pub text: &'a str,
    /// The offset of the next part in bytes; `None` after the last.
    pub next: Option<usize>,
}

impl ResourceContents {
    /// Returns the text, unless it is binary.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) => Some(text),
            Body::Blob(_) => None,
        }
    }

    /// Returns about `limit` bytes of the text at `from`, cut at character boundaries. `None` if it is binary or shorter than `from`.
    pub fn page(&self, from: usize, limit: usize) -> Option<TextPage<'_>> {
        let text = self.text()?;
        if from > text.len() {
            return None;
        }
        let start = text.floor_char_boundary(from);
        let mut end = text.floor_char_boundary(start.saturating_add(limit));
        if end == start {
            // A limit shorter than the first character would never advance.
            end = text.ceil_char_boundary(start + 1).min(text.len());
        }
        Some(TextPage {
            text: &text[start..end],
            next: (end < text.len()).then_some(end),
        })
    }

    /// Returns the decoded bytes. Fails if the server's base64 is invalid.
    pub fn bytes(&self) -> Result<Vec<u8>, BadBlob> {
        match &self.body {
            Body::Text(text) => Ok(text.clone().into_bytes()),
            Body::Blob(blob) => BASE64_STANDARD.decode(blob).map_err(|error| BadBlob {
                uri: self.uri.clone(),
                problem: error.to_string(),
            }),
        }
    }

    /// The size as sent, in bytes.
    pub fn size(&self) -> usize {
        match &self.body {
            Body::Text(text) => text.len(),
            Body::Blob(blob) => blob.len(),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct ReadFields {
            uri: String,
            #[serde(default, rename = "mimeType")]
            mime_type: Option<String>,
            #[serde(default)]
            text: Option<String>,
            #[serde(default)]
            blob: Option<String>,
            #[serde(flatten)]
            rest: Map<String, Value>,
        }
        let fields = ReadFields::deserialize(deserializer)?;
        let body = match (fields.text, fields.blob) {
            (Some(text), None) => Body::Text(text),
            (None, Some(blob)) => Body::Blob(blob),
            (Some(_), Some(_)) => return Err(serde::de::Error::custom("contents are both text and blob")),
            (None, None) => return Err(serde::de::Error::custom("contents are neither text nor blob")),
        };
        Ok(Self {
            uri: fields.uri,
            mime_type: fields.mime_type,
            body,
            rest: fields.rest,
        })
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("uri", &self.uri)?;
        if let Some(mime_type) = &self.mime_type {
            map.serialize_entry("mimeType", mime_type)?;
        }
        match &self.body {
            Body::Text(text) => map.serialize_entry("text", text)?,
            Body::Blob(blob) => map.serialize_entry("blob", blob)?,
        }
        for (key, value) in &self.rest {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A prompt with its arguments filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilledPrompt {
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages for the model, in order.
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The speaker.
    pub role: Role,
    /// The message's content.
    pub content: Content,
}

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

label!(Role, "role", [User, Assistant]);

/// A server's suggestions for an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    #[serde(default)]
    pub values: Vec<String>,
    /// The total number, if the server sends it.
    #[serde(default)]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default)]
    pub has_more: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn contents(value: Value) -> Result<ResourceContents, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn contents_are_text_or_bytes_and_come_back_as_they_were() {
        for value in [
            json!({"uri": "a:b", "text": "hé"}),
            json!({"uri": "a:b", "mimeType": "x/y", "blob": "aGk=", "_meta": {"a": 1}}),
        ] {
            let read = contents(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        }
        assert_eq!(
            contents(json!({"uri": "a", "blob": "aGk="})).unwrap().bytes().unwrap(),
            b"hi"
        );
        assert!(contents(json!({"uri": "a", "blob": "*"})).unwrap().bytes().is_err());
        for wrong in [
            json!({"uri": "a"}),
            json!({"text": "a"}),
            json!({"uri": "a", "text": "", "blob": ""}),
        ] {
            assert!(contents(wrong).is_err());
        }
    }

    #[test]
    fn pages_of_a_text_join_to_the_text_and_cut_no_character() {
        let text = "aé漢🦀".repeat(20);
        let read = contents(json!({"uri": "a", "text": text})).unwrap();
        for limit in [0, 1, 2, 3, 5, 1000] {
            let (mut joined, mut at) = (String::new(), Some(0));
            while let Some(from) = at {
                let page = read.page(from, limit).unwrap();
                joined.push_str(page.text);
                at = page.next;
            }
            assert_eq!(joined, text, "{limit}");
        }
        assert_eq!(read.page(10_000, 5), None);
        assert_eq!(
            contents(json!({"uri": "a", "text": ""}))
                .unwrap()
                .page(0, 5)
                .unwrap()
                .text,
            ""
        );
    }
}
