//! One content block of an answer, stored unchanged.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use pegboard_base::json_scan::Scan;

/// One content block of an answer. Further fields (annotations, `_meta`, unknown ones) are kept in `rest`.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
        /// The other fields of the block.
        rest: Map<String, Value>,
    },
    /// An image.
    Image {
        /// The data in base64.
        data: String,
        /// Its media type.
        mime_type: String,
        /// The other fields of the block.
        rest: Map<String, Value>,
    },
    /// Audio.
    Audio {
        /// The data in base64.
        data: String,
        /// Its media type.
        mime_type: String,
        /// The other fields of the block.
        rest: Map<String, Value>,
    },
    /// An embedded resource.
    Resource {
        /// The contents as sent: `uri`, `mimeType`, `text` or `blob`.
        resource: Map<String, Value>,
        /// The other fields of the block.
        rest: Map<String, Value>,
    },
    /// A link to a resource.
    Link {
        /// The URI.
        uri: String,
        /// The other fields of the block, such as its name.
        rest: Map<String, Value>,
    },
    /// A block of an unknown type, or one that lacks fields of its type.
    Other(Value),
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            rest: Map::new(),
        }
    }

    /// The block as text: a binary block is described by its type, media type and size.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text { text, .. } => text.into(),
            Self::Image { data, mime_type, .. } => format!("[image {mime_type}, {} bytes]", decoded_len(data)).into(),
            Self::Audio { data, mime_type, .. } => format!("[audio {mime_type}, {} bytes]", decoded_len(data)).into(),
            Self::Resource { resource, .. } => resource_text(resource),
            Self::Link { uri, rest } => match rest.get("name").and_then(Value::as_str) {
                Some(name) => format!("[link {name}: {uri}]").into(),
                None => format!("[link {uri}]").into(),
            },
            Self::Other(value) => {
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("unknown");
                format!("[{kind} block, {} bytes]", value.to_string().len()).into()
            }
        }
    }

    /// Parses a block at nesting level `depth` without copying its text twice: it may be megabytes long. `None` if it is not an object or
    /// has duplicate fields; the deserializer handles those.
    #[doc(hidden)]
    pub fn read_plain(scan: &mut Scan<'_>, depth: usize) -> Option<Self> {
        let (mut kind, mut text, mut rest) = (None, None, Map::new());
        scan.fields(|scan, key| {
            let is_text = scan.peek() == Some(b'"');
            let is_first = match key {
                "type" if is_text => kind.replace(scan.text()?).is_none(),
                "text" if is_text => text.replace(scan.text()?).is_none(),
                _ if is_text => rest.insert(key.to_owned(), scan.text()?.into()).is_none(),
                _ => rest.insert(key.to_owned(), scan.value(depth + 1)?).is_none(),
            };
            is_first.then_some(())
        })?;
        let is_twice = |key, found: &Option<_>| found.is_some() && rest.contains_key(key);
        if is_twice("type", &kind) || is_twice("text", &text) {
            return None;
        }
        match (kind, text) {
            (Some(kind), Some(text)) if kind == "text" => {
                let text = text.into_owned();
                return Some(Self::Text { text, rest });
            }
            (kind, text) => {
                rest.extend(kind.map(|kind| ("type".to_owned(), kind.into())));
                rest.extend(text.map(|text| ("text".to_owned(), text.into())));
            }
        }
        Some(from_fields(rest))
    }

    /// Returns whether it is binary: an image, audio, or a binary resource.
    pub(crate) fn is_binary(&self) -> bool {
        match self {
            Self::Image { .. } | Self::Audio { .. } => true,
            Self::Resource { resource, .. } => resource.contains_key("blob"),
            Self::Text { .. } | Self::Link { .. } | Self::Other(_) => false,
        }
    }

    /// The size of the block's payload as sent, in bytes.
    #[doc(hidden)]
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Resource { resource, .. } => ["text", "blob"]
                .iter()
                .filter_map(|key| resource.get(*key).and_then(Value::as_str))
                .map(str::len)
                .sum(),
            Self::Link { uri, .. } => uri.len(),
            Self::Other(value) => value.to_string().len(),
        }
    }
}

fn resource_text(resource: &Map<String, Value>) -> Cow<'_, str> {
    if let Some(text) = resource.get("text").and_then(Value::as_str) {
        return text.into();
    }
    let field = |key| resource.get(key).and_then(Value::as_str);
    let uri = field("uri").unwrap_or("without an address");
    let kind = field("mimeType").unwrap_or("unknown type");
    format!(
        "[resource {uri}, {kind}, {} bytes]",
        decoded_len(field("blob").unwrap_or(""))
    )
    .into()
}

/// The decoded length of base64 text.
fn decoded_len(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits * 3 / 4
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let rest = match self {
            Self::Text { text, rest } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
                rest
            }
            Self::Image { data, mime_type, rest } | Self::Audio { data, mime_type, rest } => {
                let kind = if matches!(self, Self::Image { .. }) {
                    "image"
                } else {
                    "audio"
                };
                map.serialize_entry("type", kind)?;
                map.serialize_entry("data", data)?;
                map.serialize_entry("mimeType", mime_type)?;
                rest
            }
            Self::Resource { resource, rest } => {
                map.serialize_entry("type", "resource")?;
                map.serialize_entry("resource", resource)?;
                rest
            }
            Self::Link { uri, rest } => {
                map.serialize_entry("type", "resource_link")?;
                map.serialize_entry("uri", uri)?;
                rest
            }
            Self::Other(Value::Object(block)) => block,
            Self::Other(value) => {
                map.serialize_entry("type", "unknown")?;
                map.serialize_entry("value", value)?;
                return map.end();
            }
        };
        for (key, value) in rest {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlockVisitor)
    }
}

/// Parses a block in one pass: strings of known fields are moved, never buffered, because they may be megabytes long.
struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            fields.insert(key, access.next_value()?);
        }
        Ok(from_fields(fields))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Other(Value::String(text.to_owned())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Other(Value::Null))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Content::Other(Value::Array(items)))
    }
}

/// Builds the block from its fields. If a required field is missing, the block is kept as `Other`.
fn from_fields(mut fields: Map<String, Value>) -> Content {
    let is_string = |key: &str| fields.get(key).is_some_and(Value::is_string);
    let kind = match fields.get("type").and_then(Value::as_str) {
        Some("text") if is_string("text") => "text",
        Some("image") if is_string("data") && is_string("mimeType") => "image",
        Some("audio") if is_string("data") && is_string("mimeType") => "audio",
        Some("resource") if fields.get("resource").is_some_and(Value::is_object) => "resource",
        Some("resource_link") if is_string("uri") => "resource_link",
        // As a block that is no object is written.
        Some("unknown") if fields.len() == 2 && fields.get("value").is_some_and(|value| !value.is_object()) => {
            return Content::Other(fields.remove("value").unwrap_or_default());
        }
        _ => return Content::Other(Value::Object(fields)),
    };
    fields.remove("type");
    let mut take = |key: &str| match fields.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    match kind {
        "text" => Content::Text {
            text: take("text"),
            rest: fields,
        },
        "image" => Content::Image {
            data: take("data"),
            mime_type: take("mimeType"),
            rest: fields,
        },
        "audio" => Content::Audio {
            data: take("data"),
            mime_type: take("mimeType"),
            rest: fields,
        },
        "resource_link" => Content::Link {
            uri: take("uri"),
            rest: fields,
        },
        _ => match fields.remove("resource") {
            Some(Value::Object(resource)) => Content::Resource { resource, rest: fields },
            _ => Content::Other(Value::Object(fields)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_block_comes_back_as_it_was_sent() {
        for block in [
            r#"{"type":"text","text":"hi","annotations":{"audience":["user"]}}"#,
            r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav","_meta":{"a":1}}"#,
            r#"{"type":"resource","resource":{"text":"t","uri":"demo://a"}}"#,
            r#"{"type":"resource_link","uri":"demo://a","name":"a"}"#,
            r#"{"type":"hologram","depth":3}"#,
            r#"{"type":"image","data":7}"#,
        ] {
            let content: Content = serde_json::from_str(block).unwrap();
            let back = serde_json::to_value(&content).unwrap();
            assert_eq!(back, serde_json::from_str::<Value>(block).unwrap());
        }
    }

    #[test]
    fn a_block_that_is_no_object_is_kept_and_named() {
        for block in ["null", "3", "-3", "0.5", "true", r#""text""#, "[1]"] {
            let content: Content = serde_json::from_str(block).unwrap();
            assert!(matches!(content, Content::Other(_)), "{block}");
            assert!(content.to_text().starts_with("[unknown block"), "{block}");
            let written = serde_json::to_string(&content).unwrap();
            assert_eq!(serde_json::from_str::<Content>(&written).unwrap(), content, "{written}");
        }
    }

    #[test]
    fn no_base64_reaches_a_reader_of_text() {
        let block = format!(
            r#"{{"type":"resource","resource":{{"uri":"a://b","blob":"{}"}}}}"#,
            "QUFB".repeat(300)
        );
        let content: Content = serde_json::from_str(&block).unwrap();
        assert_eq!(content.to_text(), "[resource a://b, unknown type, 900 bytes]");
    }
}
