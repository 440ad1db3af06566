//! The MCP headers of one HTTP request: session id, protocol version, and the method, name and arguments that the modern era repeats in headers.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use pegboard_protocol::header;

use crate::transport::outgoing::Envelope;

/// The MCP headers of one message.
pub(in crate::transport) fn mcp_headers(envelope: &Envelope, session: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(id) = session {
        headers.insert(header::SESSION_ID, id.clone());
    }
    if let Some(version) = envelope
        .version
        .as_deref()
        .and_then(|version| HeaderValue::from_str(version).ok())
    {
        headers.insert(header::PROTOCOL_VERSION, version);
    }
    if let Some(modern) = &envelope.modern {
        headers.insert(header::METHOD, method(modern.method.clone()));
        if let Some(name) = &modern.name {
            headers.insert(header::NAME, encode(name));
        }
        for (name, value) in &modern.params {
            // The catalogue admits only names that are header tokens, so this does not fail.
            if let Ok(name) = HeaderName::try_from(format!("{}{name}", header::PARAM_PREFIX)) {
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

fn encode(text: &str) -> HeaderValue {
    HeaderValue::from_str(&header::encode_value(text)).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use pegboard_protocol::{Version, method};

    use super::*;

    fn check(headers: &HeaderMap, name: &str, expected: &str) {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        assert_eq!(values.len(), 1, "{name}");
        let bytes = values[0].as_bytes();
        assert!(bytes.iter().all(|byte| (0x20..=0x7e).contains(byte)), "{bytes:?}");
        // Surrounding spaces would be trimmed on the way.
        assert_eq!(bytes.trim_ascii(), bytes);
        assert_eq!(
            header::decode_value(std::str::from_utf8(bytes).unwrap()).unwrap(),
            expected
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_survives_encoding_in_a_header(
            name in ".*|[ -~]*|=\\?base64\\?.*|\\PC*",
            value in proptest::string::string_regex("(?s).*").unwrap(),
        ) {
            let envelope = Envelope {
                version: Some(Version::LATEST_MODERN.as_str().into()),
                modern: Some(crate::transport::ModernEnvelope {
                    method: method::TOOLS_CALL.into(),
                    name: Some(name.clone()),
                    params: vec![("Region".to_owned(), value.clone()), ("Host".to_owned(), name.clone())],
                }),
            };
            let headers = mcp_headers(&envelope, None);
            check(&headers, header::NAME, &name);
            check(&headers, "mcp-param-region", &value);
            check(&headers, "mcp-param-host", &name);
            proptest::prop_assert!(headers.get("host").is_none());
            proptest::prop_assert_eq!(headers.len(), 5);
        }
    }
}
