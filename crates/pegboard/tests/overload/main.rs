//! Many clients on one board: they take turns, keep to their limits, are refused at once when there is too much to do, and leave nothing behind.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod dead_clients;
mod limits;
mod turns;
