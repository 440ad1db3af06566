//! Who makes a call: the context that hosts, hooks, approvers, summarisers and native tools get.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The identity that calls are made for: a user, a tenant, an account of a service. It is a label that the program chooses, not a credential.
///
/// Views with different principals share no connection to a remote server, and no cached answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Creates a principal with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Principal {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Principal {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Principal {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Principal {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// The command with which a person signs in to a server: for all views without a principal, or for those of one.
pub fn login_command(server: &str, principal: Option<&str>) -> String {
    match principal {
        None => format!("pegboard login {server}"),
        Some(principal) => format!("pegboard login {server} --principal {}", shell_word(principal)),
    }
}

/// A name as one word of a shell's line.
fn shell_word(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let name = name.replace(char::is_control, " ");
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// Whose turn a waiting call takes, and whose limits it counts towards: those of a principal with all its views, or of a view without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QuotaOwner {
    /// A principal; all its views share one quota.
    Principal(Principal),
    /// The number of the view.
    View(u64),
}

impl Default for QuotaOwner {
    fn default() -> Self {
        Self::View(0)
    }
}

/// The call that a callback belongs to, and for whom it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// The caller's id for the call; a generated one for reading a resource, getting a prompt and completing an argument. It is empty for a
    /// server's request that cannot be attributed to one of several calls. Hooks, approvers and summarisers always see an id.
    pub call: &'a str,
    /// The name of the view that the call was made through. It is empty for a server's request that may belong to several views of one
    /// principal.
    pub view: &'a str,
    /// The principal of that view.
    pub principal: Option<&'a Principal>,
    /// The entries that the caller added to the request's `_meta`.
    pub meta: &'a Map<String, Value>,
}

impl<'a> Caller<'a> {
    /// Creates the context of a call. Programs need this only to test their own callbacks.
    pub fn new(call: &'a str, view: &'a str, meta: &'a Map<String, Value>) -> Self {
        Self {
            call,
            view,
            principal: None,
            meta,
        }
    }

    /// Sets the principal.
    #[must_use]
    pub fn principal(mut self, principal: &'a Principal) -> Self {
        self.principal = Some(principal);
        self
    }
}

/// The view that calls are made through, and whom it calls for: what all its callers have in common.
#[derive(Debug, Clone, Copy)]
pub struct CallerView<'a> {
    /// The name of the view; empty if it has none.
    pub name: &'a str,
    /// The principal that the view calls for, if it has one.
    pub principal: Option<&'a Principal>,
}

impl<'a> CallerView<'a> {
    /// The context of a call through this view.
    pub fn caller(self, call: &'a str, meta: &'a Map<String, Value>) -> Caller<'a> {
        Caller {
            call,
            view: self.name,
            principal: self.principal,
            meta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::login_command;

    #[test]
    fn a_principal_is_one_word_of_the_login_command() {
        for (principal, command) in [
            (None, "pegboard login fx"),
            (Some("bob@example.com"), "pegboard login fx --principal bob@example.com"),
            (Some("bob's `id`"), "pegboard login fx --principal 'bob'\\''s `id`'"),
            (Some("a\nb"), "pegboard login fx --principal 'a b'"),
        ] {
            assert_eq!(login_command("fx", principal), command);
        }
    }
}
