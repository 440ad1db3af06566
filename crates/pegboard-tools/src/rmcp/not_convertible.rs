//! [`NotConvertible`]: why a value cannot be converted from or to a type of rmcp.

/// Why a value cannot be converted from or to a type of rmcp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be converted: {problem}")]
#[non_exhaustive]
pub struct NotConvertible {
    /// The value, such as `tool "read"`.
    pub what: String,
    /// The reason.
    pub problem: String,
}

impl NotConvertible {
    pub(super) fn new(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            problem: problem.into(),
        }
    }
}
