//! Secret values: a string that is never printed, a URL that is printed without its credentials, and what counts as a secret.

mod decide;
mod forms;
mod names;
mod stored;
mod userinfo;

pub use decide::is_secret;
pub use forms::{is_random, is_token_like};
pub use names::{USER_SECRETS, is_secret_name, mentions_secret, names_secret};
pub use stored::WithSecrets;
pub use userinfo::take_userinfo;

use std::{convert::Infallible, fmt, sync::Arc};

use url::Url;

/// Printed in place of a secret.
pub const HIDDEN: &str = "****";

/// A string that is never printed. Only [`Secret::expose`] returns its value.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value itself, for code that sends it to a server.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

/// A URL that is printed without user, password, query values, and parts of its path that look like tokens.
#[derive(Clone)]
pub struct SafeUrl {
    url: Url,
    /// Printed in place of the URL, if other parts of it are secret too.
    shown: Option<Arc<str>>,
}

impl PartialEq for SafeUrl {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for SafeUrl {}

impl SafeUrl {
    /// Parses an absolute URL that has a host.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let bad = |error: url::ParseError| BadUrl::new(error.to_string());
        let url = Url::parse(text).map_err(bad)?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad(url::ParseError::EmptyHost));
        }
        Ok(Self { url, shown: None })
    }

    /// Sets the printed form, for URLs with secrets in other parts.
    #[must_use]
    pub fn shown_as(mut self, shown: impl Into<Arc<str>>) -> Self {
        self.shown = Some(shown.into());
        self
    }

    /// The complete URL, for code that connects to it.
    pub fn expose(&self) -> &Url {
        &self.url
    }
}

/// The error for a URL that cannot be used. It does not contain the URL, which may have secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the URL cannot be used: {reason}")]
pub struct BadUrl {
    reason: String,
}

impl BadUrl {
    /// Creates the error. `reason` must not contain the URL.
    #[doc(hidden)]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// What is wrong with it.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl From<Infallible> for BadUrl {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shown) = &self.shown {
            return f.write_str(shown);
        }
        let mut shown = self.url.clone();
        if !shown.username().is_empty() || shown.password().is_some() {
            // A URL with a host takes a user name and a password, so these cannot fail.
            let _ = shown.set_username(HIDDEN);
            let _ = shown.set_password(None);
        }
        if shown.query().is_some() {
            let keys: Vec<String> = self
                .url
                .query_pairs()
                .map(|(key, _)| format!("{key}={HIDDEN}"))
                .collect();
            shown.set_query(Some(&keys.join("&")));
        }
        if shown.fragment().is_some() {
            shown.set_fragment(Some(HIDDEN));
        }
        if self.url.path().split('/').any(is_random) {
            let hide = |segment| if is_random(segment) { HIDDEN } else { segment };
            let path: Vec<&str> = self.url.path().split('/').map(hide).collect();
            shown.set_path(&path.join("/"));
        }
        f.write_str(shown.as_str())
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars_in_every_form() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "**** ****");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"****\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_url_prints_without_credentials_and_query_values() {
        let url = SafeUrl::parse("https://me:pw@example.com/mcp?key=abc&x=1").unwrap();
        assert_eq!(url.to_string(), "https://****@example.com/mcp?key=****&x=****");
    }

    #[test]
    fn a_url_prints_without_tokens_in_its_path() {
        let url = SafeUrl::parse("https://example.com/s/c4nary-7f3a9b1e/mcp#x").unwrap();
        assert_eq!(url.to_string(), "https://example.com/s/****/mcp#****");
    }

    #[test]
    fn a_url_can_have_another_printed_form() {
        let url = SafeUrl::parse("https://example.com/s3cr3t/mcp").unwrap();
        let url = url.shown_as("https://example.com/${KEY}/mcp");
        assert_eq!(format!("{url} {url:?}").matches("${KEY}").count(), 2);
        assert_eq!(url.expose().path(), "/s3cr3t/mcp");
    }

    #[test]
    fn a_url_needs_a_host() {
        assert!(SafeUrl::parse("file:///etc/passwd").is_err());
        assert!(SafeUrl::parse("example.com/mcp").is_err());
    }
}
