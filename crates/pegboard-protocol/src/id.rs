//! [`RequestId`]: the id of a request.

use std::{borrow::Borrow, fmt, ops::Deref};

/// The limit on the length of an id, which every response repeats.
pub const MAX_LENGTH: usize = 1024;

/// The id of a request as JSON text: a string without needless escapes, or an integer. Equal ids have equal texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Takes an id as its sender wrote it.
    ///
    /// ```
    /// use pegboard_protocol::RequestId;
    ///
    /// assert_eq!(RequestId::parse(r#""\u0061""#).unwrap().as_json(), r#""a""#);
    /// assert!(RequestId::parse("1.5").is_err());
    /// ```
    pub fn parse(json: &str) -> Result<Self, InvalidId> {
        if json.len() > MAX_LENGTH {
            return Err(InvalidId(format!("`id` is longer than {MAX_LENGTH} bytes")));
        }
        if json.starts_with('"') && json.contains('\\') {
            let unescaped: Result<String, _> = serde_json::from_str(json);
            let id = unescaped.and_then(|id| serde_json::to_string(&id));
            return id
                .map(|id| Self(id.into()))
                .map_err(|error| InvalidId(format!("`id` is no valid string: {error}")));
        }
        if json.starts_with('"') || is_integer(json) {
            return Ok(Self(json.into()));
        }
        Err(InvalidId("`id` must be a string or an integer".into()))
    }

    /// The id of a response to a message whose id could not be read: `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// Whether a JSON number has neither a fraction nor an exponent.
fn is_integer(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl Deref for RequestId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RequestId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for an id that no request can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidId(String);

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_string_or_an_integer() {
        for (json, id) in [
            ("7", "7"),
            ("-7", "-7"),
            (r#""7""#, r#""7""#),
            (r#""\u0041\/""#, r#""A/""#),
            (r#""\"""#, r#""\"""#),
        ] {
            assert_eq!(RequestId::parse(json).unwrap().as_json(), id, "{json}");
        }
        for json in ["null", "1.5", "1e3", "-", "", "true", "[1]", "{}", r#""\ud800""#] {
            assert!(RequestId::parse(json).is_err(), "{json}");
        }
        assert!(RequestId::parse(&format!("\"{}\"", "a".repeat(MAX_LENGTH))).is_err());
    }
}
