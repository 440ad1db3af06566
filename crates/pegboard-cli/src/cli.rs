//! The options that every command has, and the values that options of several commands take.

mod global;
mod values;

pub(crate) use global::{Format, Global, LogFormat, hide_unless_for_files, or_raw};
pub(crate) use values::{access_log, address, duration, pair};
