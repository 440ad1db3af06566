//! Finds secrets by the names beside them, in config files, source code, logs, tables and the output of commands.
//!
//! One pass finds the words that occur in such names. At each of them the name is read, then what joins it to its value, then the value. A
//! value is read in one form only, so the cost is linear in the text.

mod literals;
mod names;
mod pairs;
mod scanner;
mod value;

pub(super) use literals::{Form, is_no_literal, is_secret};
pub(super) use names::{Strength, strength, strength_of_list};
pub(super) use scanner::find;

use std::ops::Range;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedValue {
    /// From the start of the name to the end of the secret.
    pub(super) whole: Range<usize>,
    /// The secret.
    pub(super) value: Range<usize>,
    /// Whether the secret is a JSON object or list, whose replacement needs quotes.
    pub(super) is_nested: bool,
}
