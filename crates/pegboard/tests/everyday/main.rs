//! What a Rust program expects of the public types: traits, words, stored values, builders and names.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod labels;
mod names;
mod stored;
