//! [`SpiffeId`]: the identity of a workload in a certificate, such as `spiffe://example.org/ns/tools/sa/search`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest id.
const MAX_BYTES: usize = 2048;
/// The longest trust domain.
const MAX_DOMAIN: usize = 255;

/// A SPIFFE id: `spiffe://`, a trust domain, and a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpiffeId(String);

/// Why a text is no SPIFFE id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSpiffeId(&'static str);

impl SpiffeId {
    /// Checks that a text is the id of a workload, in the one form that certificates have.
    pub fn parse(text: &str) -> Result<Self, BadSpiffeId> {
        let rest = text
            .strip_prefix("spiffe://")
            .ok_or(BadSpiffeId("it does not start with `spiffe://`"))?;
        let (domain, path) = rest
            .split_once('/')
            .ok_or(BadSpiffeId("it has no path, so it names no workload"))?;
        let is_of_domain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'-' | b'_');
        let is_of_path = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
        if domain.is_empty() || domain.len() > MAX_DOMAIN || !domain.bytes().all(is_of_domain) {
            return Err(BadSpiffeId(
                "its trust domain may have lower-case letters, digits, `.`, `-` and `_`",
            ));
        }
        let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_of_path);
        if text.len() > MAX_BYTES || !path.split('/').all(is_segment) {
            return Err(BadSpiffeId(
                "the parts of its path may have letters, digits, `.`, `-` and `_`, and none is empty, `.` or `..`",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SpiffeId {
    type Error = BadSpiffeId;

    fn try_from(text: String) -> Result<Self, BadSpiffeId> {
        Self::parse(&text)
    }
}

impl From<SpiffeId> for String {
    fn from(id: SpiffeId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_trust_domain_and_a_path() {
        for good in ["spiffe://example.org/a", "spiffe://a_b-c.1/ns/Tools/sa/x..y"] {
            assert_eq!(SpiffeId::parse(good).map(String::from).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "example.org/a",
            "https://example.org/a",
            "SPIFFE://example.org/a",
            "spiffe://example.org",
            "spiffe://example.org/",
            "spiffe:///a",
            "spiffe://Example.org/a",
            "spiffe://user@example.org/a",
            "spiffe://example.org:8443/a",
            "spiffe://example.org/a/",
            "spiffe://example.org/a//b",
            "spiffe://example.org/a/../b",
            "spiffe://example.org/a%2fb",
            "spiffe://example.org/a?b",
            "spiffe://example.org/a#b",
        ] {
            assert!(SpiffeId::parse(bad).is_err(), "{bad}");
        }
        assert!(SpiffeId::parse(&format!("spiffe://a/{}", "x".repeat(2048))).is_err());
    }
}
