//! What HTTP repeats of a message in its headers.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::transport::Envelope;

/// The headers of one message.
pub(in crate::transport) fn of(envelope: &Envelope, session: Option<&HeaderValue>) -> HeaderMap {
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
        headers.insert("mcp-method", HeaderValue::from_static(modern.method));
        if let Some(name) = &modern.name {
            headers.insert("mcp-name", encode(name));
        }
        for (name, value) in &modern.params {
            // The catalogue has let through only names that are header tokens.
            if let Ok(name) = HeaderName::try_from(format!("mcp-param-{name}")) {
                headers.insert(name, encode(value));
            }
        }
    }
    headers
}

/// The text as a header can carry it: as it is when it is visible ASCII without spaces around it, otherwise as marked base64.
fn encode(text: &str) -> HeaderValue {
    let is_plain =
        text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text && !text.starts_with("=?base64?");
    let written = if is_plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text)))
    };
    written.unwrap_or_else(|_| HeaderValue::from_static(""))
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

    /// What a server makes of a value.
    fn decode(value: &str) -> String {
        let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
        match encoded {
            Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap(),
            None => value.to_owned(),
        }
    }

    fn check(headers: &HeaderMap, name: &str, meant: &str) {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        assert_eq!(values.len(), 1, "{name}");
        let bytes = values[0].as_bytes();
        assert!(bytes.iter().all(|byte| (0x20..=0x7e).contains(byte)), "{bytes:?}");
        // Space at the ends does not survive the way.
        assert_eq!(bytes.trim_ascii(), bytes);
        assert_eq!(decode(std::str::from_utf8(bytes).unwrap()), meant);
    }

    proptest::proptest! {
        #[test]
        fn any_text_travels_in_a_header_and_is_read_as_it_was_meant(
            name in ".*|[ -~]*|=\\?base64\\?.*|\\PC*",
            value in proptest::string::string_regex("(?s).*").unwrap(),
        ) {
            let envelope = Envelope {
                version: Some("2026-07-28".into()),
                modern: Some(crate::transport::ModernEnvelope {
                    method: "tools/call",
                    name: Some(name.clone()),
                    params: vec![("Region".to_owned(), value.clone()), ("Host".to_owned(), name.clone())],
                }),
            };
            let headers = of(&envelope, None);
            check(&headers, "mcp-name", &name);
            check(&headers, "mcp-param-region", &value);
            check(&headers, "mcp-param-host", &name);
            proptest::prop_assert!(headers.get("host").is_none());
            proptest::prop_assert_eq!(headers.len(), 5);
        }
    }
}
