//! A secret that was found by its name.

use std::ops::Range;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mask) struct NamedValue {
    /// From the start of the name to the end of the secret.
    pub(in crate::mask) whole: Range<usize>,
    /// The secret.
    pub(in crate::mask) value: Range<usize>,
    /// Whether the secret is a JSON object or list, whose replacement needs quotes.
    pub(in crate::mask) is_nested: bool,
}
