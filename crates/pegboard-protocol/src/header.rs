//! The HTTP headers of the protocol, in lower case, and the encoding of texts in their values.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// The id of a legacy session.
pub const SESSION_ID: &str = "mcp-session-id";
/// The protocol version of a request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of a modern request, repeated from its body.
pub const METHOD: &str = "mcp-method";
/// The tool, prompt or resource of a modern request, repeated from its body.
pub const NAME: &str = "mcp-name";
/// The start of the headers that repeat arguments of a tool.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The last event of a stream that the client has read.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// The headers that the protocol alone may set, because they depend on each message.
pub const OF_EACH_MESSAGE: [&str; 4] = [SESSION_ID, PROTOCOL_VERSION, METHOD, NAME];

/// All names.
pub const ALL: &[&str] = &[SESSION_ID, PROTOCOL_VERSION, METHOD, NAME, PARAM_PREFIX, LAST_EVENT_ID];

/// The names as the specification spells them, for texts that people read.
pub mod title {
    /// [`PROTOCOL_VERSION`](super::PROTOCOL_VERSION).
    pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
    /// [`METHOD`](super::METHOD).
    pub const METHOD: &str = "Mcp-Method";
    /// [`NAME`](super::NAME).
    pub const NAME: &str = "Mcp-Name";
    /// [`LAST_EVENT_ID`](super::LAST_EVENT_ID).
    pub const LAST_EVENT_ID: &str = "Last-Event-ID";
}

/// What stands around a value that is encoded.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Encodes a text as a header value: unchanged if it is printable ASCII without surrounding spaces, otherwise as `=?base64?…?=`.
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let is_printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    if is_printable && text.trim() == text && !text.starts_with(ENCODED.0) {
        return text.into();
    }
    format!("{}{}{}", ENCODED.0, BASE64_STANDARD.encode(text), ENCODED.1).into()
}

/// Decodes a header value. Returns `None` if it is encoded and not valid base64 of UTF-8.
pub fn decode_value(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    let Some(encoded) = encoded else {
        return Some(value.into());
    };
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_that_a_header_would_change_are_encoded() {
        for (text, written) in [
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("a\r\nb", "=?base64?YQ0KYg==?="),
            ("\tx", "=?base64?CXg=?="),
            ("é", "=?base64?w6k=?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encode_value(text), written, "{text:?}");
            assert_eq!(decode_value(written).as_deref(), Some(text), "{written}");
        }
    }

    #[test]
    fn a_value_that_is_no_base64_of_a_text_is_refused() {
        for value in ["=?base64?!?=", "=?base64?/w==?="] {
            assert_eq!(decode_value(value), None, "{value}");
        }
        assert_eq!(decode_value("=?base64?x").as_deref(), Some("=?base64?x"));
    }
}
