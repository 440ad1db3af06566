//! Every command that changes a running board, for every scope and under every preset, each time with two open views and a call in flight.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod applying;
mod commands;
mod ending;
mod stage;
