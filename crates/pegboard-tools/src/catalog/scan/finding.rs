//! One suspicious text in a definition.

use std::fmt;

use serde::Serialize;

use super::{rules::Rule, severity::FindingSeverity};
use crate::catalog::sanitize::{one_line, truncate};

/// The longest excerpt, in bytes.
const MAX_EXCERPT: usize = 120;
/// The longest place, in bytes: property names are the server's choice.
const MAX_PLACE: usize = 120;

/// One suspicious text in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Where it stands, such as `description` or `inputSchema.properties.path.description`.
    #[serde(rename = "where")]
    pub at: String,
    /// The rule that found it, such as `concealment`.
    pub rule: &'static str,
    /// How surely it is an attack.
    pub severity: FindingSeverity,
    /// What was found, in one line and without invisible characters.
    pub excerpt: String,
}

impl Finding {
    pub(super) fn new(rule: Rule, at: &str, excerpt: &str) -> Self {
        let short = |text: &str, limit: usize| {
            let mut line = one_line(text);
            truncate(&mut line, limit);
            line
        };
        Self {
            at: short(at, MAX_PLACE),
            rule: rule.name,
            severity: rule.severity,
            excerpt: short(excerpt, MAX_EXCERPT),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}: {:?}", self.rule, self.at, self.excerpt)
    }
}
