//! Finds secrets by the names beside them, in config files, source code, logs, tables and the output of commands.
//!
//! One pass finds the words that occur in such names. At each of them the name is read, then what joins it to its value, then the value. A
//! value is read in one form only, so the cost is linear in the text.

mod arguments;
mod expressions;
mod literals;
mod named_value;
mod names;
mod pairs;
mod quotes;
mod scanner;
mod value;
mod words;

pub(super) use expressions::ValueForm;
pub use literals::{is_literal, is_secret_string};
pub(super) use literals::{is_no_literal, is_secret};
pub(super) use named_value::NamedValue;
pub(super) use names::{Strength, strength, strength_of_list};
pub(super) use scanner::{STEMS, find};
