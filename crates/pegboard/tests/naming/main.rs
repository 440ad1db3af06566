//! What tools are called, and what they look like to a model: whole boards over fake servers in this process.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

#[path = "../support/mod.rs"]
mod support;

mod names;
mod offered;
mod words;
