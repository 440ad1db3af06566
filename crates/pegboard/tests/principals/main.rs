//! Many principals on one board: none ever uses the token, the answer or the output of another.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod fixtures;
mod history;
mod isolation;
mod session_cleanup;
mod templates;
