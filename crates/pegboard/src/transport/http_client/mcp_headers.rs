//! The MCP headers of one HTTP request: session id, protocol version, and the method, name and arguments that the modern era repeats in headers.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::transport::outgoing::Envelope;

/// The MCP headers of one message.
pub(in crate::transport) fn mcp_headers(envelope: &Envelope, session: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(id) = session {
        headers.insert("mcp-session-id", id.clone());
    }
    if let Some(version) = envelope
        .version
        .as_deref()
        .and_then(|version| HeaderValue::from_str(version).ok())
    {
        headers.insert("mcp-protocol-version", version);
    }
    if let Some(modern) = &envelope.modern {
        headers.insert("mcp-method", method(modern.method.clone()));
        if let Some(name) = &modern.name {
            headers.insert("mcp-name", encode(name));
        }
        for (name, value) in &modern.params {
            // The catalogue admits only names that are header tokens, so this does not fail.
            if let Ok(name) = HeaderName::try_from(format!("mcp-param-{name}")) {
                headers.insert(name, encode(value));
            }
        }
    }
    headers
}

fn method(method: Cow<'static, str>) -> HeaderValue {
    match method {
        Cow::Borrowed(method) => HeaderValue::from_static(method),
        Cow::Owned(method) => encode(&method),
    }
}

/// Encodes a text as a header value: unchanged if it is printable ASCII without surrounding spaces, otherwise as `=?base64?…?=`.
fn encode(text: &str) -> HeaderValue {
    let is_plain =
        text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text && !text.starts_with("=?base64?");
    let value = if is_plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text)))
    };
    value.unwrap_or_else(|_| HeaderValue::from_static(""))
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
            assert_eq!(encode(text), written, "{text:?}");
        }
    }

    /// Decodes a value as a server does.
    fn decode(value: &str) -> String {
        let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
        match encoded {
            Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap(),
            None => value.to_owned(),
        }
    }

    fn check(headers: &HeaderMap, name: &str, expected: &str) {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        assert_eq!(values.len(), 1, "{name}");
        let bytes = values[0].as_bytes();
        assert!(bytes.iter().all(|byte| (0x20..=0x7e).contains(byte)), "{bytes:?}");
        // Surrounding spaces would be trimmed on the way.
        assert_eq!(bytes.trim_ascii(), bytes);
        assert_eq!(decode(std::str::from_utf8(bytes).unwrap()), expected);
    }

    proptest::proptest! {
        #[test]
        fn any_text_survives_encoding_in_a_header(
            name in ".*|[ -~]*|=\\?base64\\?.*|\\PC*",
            value in proptest::string::string_regex("(?s).*").unwrap(),
        ) {
            let envelope = Envelope {
                version: Some("2026-07-28".into()),
                modern: Some(crate::transport::ModernEnvelope {
                    method: "tools/call".into(),
                    name: Some(name.clone()),
                    params: vec![("Region".to_owned(), value.clone()), ("Host".to_owned(), name.clone())],
                }),
            };
            let headers = mcp_headers(&envelope, None);
            check(&headers, "mcp-name", &name);
            check(&headers, "mcp-param-region", &value);
            check(&headers, "mcp-param-host", &name);
            proptest::prop_assert!(headers.get("host").is_none());
            proptest::prop_assert_eq!(headers.len(), 5);
        }
    }
}
