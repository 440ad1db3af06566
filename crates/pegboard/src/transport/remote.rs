//! What HTTP and WebSocket do alike: headers and credentials that go to one server only, and failed connections told apart.

pub(super) mod fault;

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use url::Url;

use super::DialError;
use crate::config::{Auth, Endpoint};

/// How long what waits may still be sent when a connection is closed: it may be the notice that a call was cancelled.
pub(super) const FAREWELL: Duration = Duration::from_millis(500);

/// The headers that say what a message is. They follow from the message, so the config has no say in them.
const OURS: &[&str] = &["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"];

/// The headers that every request carries, credentials among them.
pub(super) fn headers(endpoint: &Endpoint) -> Result<HeaderMap, DialError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| DialError::Setting(format!("`{name}` cannot be the name of a header")))?;
        if OURS.contains(&key.as_str()) {
            tracing::warn!("the header `{name}` of the config is not sent: it is part of the protocol");
            continue;
        }
        headers.insert(key, hidden(value.expose(), name)?);
    }
    match &endpoint.auth {
        Auth::None => {}
        Auth::Bearer(token) => {
            headers.insert(
                AUTHORIZATION,
                hidden(&format!("Bearer {}", token.expose()), "auth.bearer")?,
            );
        }
        Auth::Basic { user, password } => {
            headers.insert(AUTHORIZATION, basic(user.as_bytes(), password.expose().as_bytes()));
        }
    }
    Ok(headers)
}

fn hidden(value: &str, field: &str) -> Result<HeaderValue, DialError> {
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

/// Moves user and password of a URL into a header, where no log looks for them.
pub(super) fn userinfo(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let value = basic(&decoded(url.username()), &decoded(url.password().unwrap_or_default()));
    // A URL with a host takes both, so these cannot fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(value)
}

/// A part of a URL as it was meant, without its percent signs.
fn decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut meant = Vec::new();
    while let [first, after @ ..] = rest {
        let byte = match after {
            [high, low, ..] if *first == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        meant.push(byte.unwrap_or(*first));
        rest = &rest[if byte.is_some() { 3 } else { 1 }..];
    }
    meant
}

/// A message without a byte order mark or space in front of it.
pub(super) fn trimmed(message: Bytes) -> Bytes {
    let text = message.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    match message.len() - text.len() {
        0 => message,
        skipped => message.slice(skipped..),
    }
}

/// The first 200 characters of a text, on one line.
pub(super) fn preview(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: String = line.chars().filter(|c| !c.is_control()).collect();
    let mut shown: String = printed.chars().take(200).collect();
    if shown.len() < printed.len() {
        // Half a word is left out: it may be half of a secret, which nobody would know for one.
        let end = shown
            .rfind([' ', '"', '\'', ',', ';', '<', '>', '{', '}', '=', '&'])
            .unwrap_or(0);
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_a_url_become_a_header_as_they_were_meant() {
        for (url, meant) in [
            ("http://me:pw@h/", "me:pw"),
            ("http://me@h/", "me:"),
            ("http://a%40b:p%3a%C3%A9%25@h/", "a@b:p:é%"),
            ("http://me:100%@h/", "me:100%"),
        ] {
            let mut url = Url::parse(url).unwrap();
            let expected = format!("Basic {}", BASE64_STANDARD.encode(meant));
            assert_eq!(userinfo(&mut url).unwrap(), expected);
            assert_eq!(url.as_str(), "http://h/");
        }
        assert_eq!(userinfo(&mut Url::parse("http://h/").unwrap()), None);
    }
}
