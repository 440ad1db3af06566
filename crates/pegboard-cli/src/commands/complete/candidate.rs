//! A word that the shell may insert.

use crate::output::one_line;

/// A word that may be inserted.
#[derive(Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) value: String,
    pub(super) about: String,
}

impl Candidate {
    pub(super) fn new(value: impl Into<String>, about: &str) -> Self {
        Self {
            value: value.into(),
            about: one_line(about.lines().next().unwrap_or_default()),
        }
    }
}
