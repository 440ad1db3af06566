//! Secrets in stored values: hidden unless they are written through [`WithSecrets`]. A hidden one cannot be read back, so that no program
//! goes on with stars in place of a token.

use std::{cell::Cell, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use url::Url;

use super::{HIDDEN, SafeUrl, Secret};

/// The end of the error for a value that was stored hidden.
const STORE: &str = "store the config with `with_secrets()`, encrypted, or set the secret again";

thread_local! {
    /// Whether this thread is inside the `serialize` of a [`WithSecrets`]. Serialisation is synchronous, so no other value is written then.
    static EXPOSES: Cell<bool> = const { Cell::new(false) };
}

/// A value that is serialised with its secrets, for a program that encrypts what it stores. Everything else serialises them as `****`.
///
/// `Config::with_secrets` has an example.
#[derive(Debug, Clone, Copy)]
pub struct WithSecrets<'a, T>(&'a T);

impl<'a, T> WithSecrets<'a, T> {
    /// Wraps a value.
    pub fn new(value: &'a T) -> Self {
        Self(value)
    }
}

impl<T: Serialize> Serialize for WithSecrets<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let _exposing = Exposing::begin();
        self.0.serialize(serializer)
    }
}

/// Exposes secrets on this thread until it is dropped, also by a panic.
struct Exposing {
    before: bool,
}

impl Exposing {
    fn begin() -> Self {
        Self {
            before: EXPOSES.replace(true),
        }
    }
}

impl Drop for Exposing {
    fn drop(&mut self) {
        EXPOSES.set(self.before);
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if EXPOSES.get() { self.expose() } else { HIDDEN })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = String::deserialize(deserializer)?;
        if value == HIDDEN {
            return Err(D::Error::custom(format!(
                "the secret was stored as `{HIDDEN}`; {STORE}"
            )));
        }
        Ok(Self::new(value))
    }
}

/// A URL is a string. One that is printed differently is an object: `url` and `shown`, or only `hidden` if its secrets are not exposed.
impl Serialize for SafeUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = self.to_string();
        if Url::parse(&shown).is_ok_and(|shown| shown == self.url) {
            return serializer.serialize_str(self.url.as_str());
        }
        let exposes = EXPOSES.get();
        if exposes && self.shown.is_none() {
            return serializer.serialize_str(self.url.as_str());
        }
        let mut map = serializer.serialize_map(Some(1 + usize::from(exposes)))?;
        if exposes {
            map.serialize_entry("url", self.url.as_str())?;
            map.serialize_entry("shown", &shown)?;
        } else {
            map.serialize_entry("hidden", &shown)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SafeUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlVisitor)
    }
}

struct UrlVisitor;

impl<'de> Visitor<'de> for UrlVisitor {
    type Value = SafeUrl;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SafeUrl, E> {
        SafeUrl::parse(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<SafeUrl, A::Error> {
        let (mut url, mut shown) = (None, None);
        while let Some(key) = access.next_key::<String>()? {
            match key.as_str() {
                "url" => url = Some(access.next_value::<String>()?),
                "shown" => shown = Some(access.next_value::<String>()?),
                "hidden" => {
                    let hidden = access.next_value::<String>()?;
                    return Err(A::Error::custom(format!(
                        "the URL `{}` was stored without its secrets; {STORE}",
                        hidden.escape_debug()
                    )));
                }
                _ => {
                    access.next_value::<serde::de::IgnoredAny>()?;
                }
            }
        }
        let url = url.ok_or_else(|| A::Error::missing_field("url"))?;
        let url = SafeUrl::parse(&url).map_err(A::Error::custom)?;
        Ok(match shown {
            Some(shown) => url.shown_as(shown),
            None => url,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(value: &impl Serialize) -> String {
        serde_json::to_string(&WithSecrets::new(value)).unwrap()
    }

    #[test]
    fn a_secret_is_stored_hidden_and_only_inside_the_wrapper_exposed() {
        let secret = Secret::new("hunter2");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"****\"");
        assert_eq!(exposed(&secret), "\"hunter2\"");
        assert_eq!(serde_json::from_str::<Secret>(&exposed(&secret)).unwrap(), secret);
        assert_eq!(
            serde_json::to_string(&secret).unwrap(),
            "\"****\"",
            "the wrapper has ended"
        );
        let refused = serde_json::from_str::<Secret>("\"****\"").unwrap_err().to_string();
        assert!(refused.contains("with_secrets()"), "{refused}");
    }

    #[test]
    fn a_failed_or_nested_write_does_not_leave_secrets_exposed() {
        struct Fails;
        impl Serialize for Fails {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no"))
            }
        }
        assert!(serde_json::to_string(&WithSecrets::new(&Fails)).is_err());
        let secret = Secret::new("hunter2");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"****\"");
        let pair = (WithSecrets::new(&secret), secret.clone());
        assert_eq!(serde_json::to_string(&pair).unwrap(), "[\"hunter2\",\"****\"]");
    }

    #[test]
    fn a_url_without_secrets_is_a_string_and_one_with_secrets_is_read_only_if_they_were_exposed() {
        let plain = SafeUrl::parse("https://example.com/mcp").unwrap();
        assert_eq!(serde_json::to_string(&plain).unwrap(), "\"https://example.com/mcp\"");
        let by_query = SafeUrl::parse("https://example.com/mcp?key=hunter2").unwrap();
        let by_variable = SafeUrl::parse("https://example.com/hunter2/mcp").unwrap();
        let by_variable = by_variable.shown_as("https://example.com/${KEY}/mcp");
        for url in [by_query, by_variable] {
            let hidden = serde_json::to_string(&url).unwrap();
            assert!(!hidden.contains("hunter2"), "{hidden}");
            let refused = serde_json::from_str::<SafeUrl>(&hidden).unwrap_err().to_string();
            assert!(refused.contains("without its secrets"), "{refused}");
            let read: SafeUrl = serde_json::from_str(&exposed(&url)).unwrap();
            assert_eq!((read.to_string(), &read), (url.to_string(), &url));
        }
    }
}
