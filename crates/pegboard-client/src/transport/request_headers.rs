//! The headers and credentials that the config sets for requests to one server, over HTTP or WebSocket.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use pegboard_base::secret;
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

/// Moves user and password of a URL into an `Authorization` header.
pub(super) fn take_userinfo(url: &mut Url) -> Option<HeaderValue> {
    let (user, password) = secret::take_userinfo(url)?;
    Some(basic(&user, &password))
}
