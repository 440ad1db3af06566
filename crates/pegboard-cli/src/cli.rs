//! The options that every command has, and the values that options of several commands take.

mod global;
mod values;

pub(crate) use global::{Format, Global, hide_unless_for_files, or_raw};
pub(crate) use values::{address, duration, pair};
