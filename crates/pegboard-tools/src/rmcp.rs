//! Conversions from and to the types of [the crate `rmcp`](::rmcp), the official Rust SDK. The documentation of each says what is lost.

mod call_result;
mod content;
mod listing;
mod not_convertible;
mod tool;

pub use not_convertible::NotConvertible;
