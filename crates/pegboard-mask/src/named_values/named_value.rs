//! A secret that was found by its name.

use std::ops::Range;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedValue {
    /// From the start of the name to the end of the secret.
    pub(crate) whole: Range<usize>,
    /// The secret.
    pub(crate) value: Range<usize>,
    /// Whether the secret is a JSON object or list, whose replacement needs quotes.
    pub(crate) is_nested: bool,
}
