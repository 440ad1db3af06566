//! The headers and credentials that the config sets for requests to one server, over HTTP or WebSocket.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use pegboard_protocol::header;
use url::Url;

use super::dial_error::DialError;
use pegboard_config::{Auth, Endpoint};

/// The configured headers of every request, including credentials.
pub(super) fn build_configured(endpoint: &Endpoint) -> Result<HeaderMap, DialError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| DialError::Setting(format!("`{name}` cannot be the name of a header")))?;
        if header::OF_EACH_MESSAGE.contains(&key.as_str()) {
            tracing::warn!("the header `{name}` of the config is not sent: it is part of the protocol");
            continue;
        }
        headers.insert(key, to_sensitive_value(value.expose(), name)?);
    }
    match &endpoint.auth {
        // These come with each request.
        Auth::None | Auth::Anonymous | Auth::BearerFile(_) | Auth::HeadersHelper(_) | Auth::OAuth(_) => {}
        Auth::Bearer(token) => {
            headers.insert(
                AUTHORIZATION,
                to_sensitive_value(&format!("Bearer {}", token.expose()), "auth.bearer")?,
            );
        }
        Auth::Basic { user, password } => {
            headers.insert(AUTHORIZATION, basic(user.as_bytes(), password.expose().as_bytes()));
        }
    }
    Ok(headers)
}

fn to_sensitive_value(value: &str, field: &str) -> Result<HeaderValue, DialError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        DialError::Setting(format!(
            "the value of `{field}` has characters that a header cannot carry"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn basic(user: &[u8], password: &[u8]) -> HeaderValue {
    let text = format!("Basic {}", BASE64_STANDARD.encode([user, b":", password].concat()));
    let mut value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Moves user and password of a URL into an `Authorization` header, so that they do not show up in logs.
pub(super) fn take_userinfo(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let value = basic(
        &percent_decode(url.username()),
        &percent_decode(url.password().unwrap_or_default()),
    );
    // A URL with a host takes both, so these cannot fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(value)
}

/// Percent-decodes a part of a URL. Invalid escapes are kept as they are.
fn percent_decode(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::new();
    while let [first, after @ ..] = rest {
        let byte = match after {
            [high, low, ..] if *first == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        decoded.push(byte.unwrap_or(*first));
        rest = &rest[if byte.is_some() { 3 } else { 1 }..];
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_a_url_become_a_percent_decoded_header() {
        for (url, decoded) in [
            ("http://me:pw@h/", "me:pw"),
            ("http://me@h/", "me:"),
            ("http://a%40b:p%3a%C3%A9%25@h/", "a@b:p:é%"),
            ("http://me:100%@h/", "me:100%"),
        ] {
            let mut url = Url::parse(url).unwrap();
            let expected = format!("Basic {}", BASE64_STANDARD.encode(decoded));
            assert_eq!(take_userinfo(&mut url).unwrap(), expected);
            assert_eq!(url.as_str(), "http://h/");
        }
        assert_eq!(take_userinfo(&mut Url::parse("http://h/").unwrap()), None);
    }
}
