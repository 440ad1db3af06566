//! Names of servers, and how a (server, tool) pair is written for users and models.

mod conversions;
mod rules;
mod style;
mod tool_names;

pub use rules::NameRules;
pub use style::{BadNameStyle, NameStyle};
pub use tool_names::{expose, hash_suffix};

use std::{fmt, str::FromStr, sync::Arc};

use serde::Serialize;

/// The longest server name.
const MAX_SERVER_NAME: usize = 64;

/// The name of a configured server.
///
/// It starts with a letter or digit, goes on with letters, digits, `_` and `-`, and has at most 64 characters. It compares with `&str`, and
/// methods that look up a server take any text:
///
/// ```
/// # mod pegboard { pub use pegboard_base::{name, name::ServerName, secret::Secret}; }
/// use std::collections::BTreeMap;
/// use pegboard::ServerName;
///
/// let name: ServerName = "github".parse()?;
/// assert!(name == "github");
/// let owners = BTreeMap::from([(name, "tools team")]);
/// assert_eq!(owners.get("github"), Some(&"tools team"));
/// # Ok::<(), pegboard::name::BadServerName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// Validates a name.
    pub fn parse(name: &str) -> Result<Self, BadServerName> {
        let problem = match name.as_bytes() {
            [] => Some("it is empty"),
            [first, ..] if !first.is_ascii_alphanumeric() => Some("it must start with a letter or digit"),
            _ if name.len() > MAX_SERVER_NAME => Some("it is longer than 64 characters"),
            bytes
                if !bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) =>
            {
                Some("only letters, digits, `_` and `-` may be used")
            }
            _ => None,
        };
        match problem {
            None => Ok(Self(name.into())),
            Some(problem) => Err(BadServerName {
                name: name.to_owned(),
                problem,
            }),
        }
    }

    /// Returns `wish`, or `wish` with a number if `wish` is taken.
    ///
    /// `wish` must be a valid name that is short enough for a number.
    #[doc(hidden)]
    pub fn choose_free(wish: &str, is_taken: impl Fn(&str) -> bool) -> Self {
        let numbered = (2..).map(|number| format!("{wish}-{number}"));
        let mut candidates = std::iter::once(wish.to_owned()).chain(numbered);
        let free = candidates.find(|candidate| !is_taken(candidate));
        let free = free.and_then(|free| Self::parse(&free).ok());
        free.expect("there are more numbers than names, and each makes one")
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = BadServerName;

    fn from_str(name: &str) -> Result<Self, BadServerName> {
        Self::parse(name)
    }
}

impl TryFrom<&str> for ServerName {
    type Error = BadServerName;

    fn try_from(name: &str) -> Result<Self, BadServerName> {
        Self::parse(name)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The error for an invalid server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot be a server name: {problem}")]
pub struct BadServerName {
    name: String,
    problem: &'static str,
}

/// Formats `server__tool`, the default name of a tool for models.
pub fn dunder(server: &str, tool: &str) -> String {
    format!("{server}__{tool}")
}

/// Formats `server.tool`, the name of a tool for users, logs and the command line.
pub fn format_dotted(server: &str, tool: &str) -> String {
    [server, ".", tool].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_name_has_letters_digits_dashes_and_underscores() {
        for good in ["k8s", "git-hub", "a_b", "a__b", "9lives", "A", &"x".repeat(64)] {
            assert!(ServerName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "a.b", "a b", "é", "a/b", &"x".repeat(65)] {
            assert!(ServerName::parse(bad).is_err(), "{bad}");
        }
        let name: ServerName = "k8s".parse().unwrap();
        assert_eq!(ServerName::try_from("k8s"), Ok(name));
    }
}
