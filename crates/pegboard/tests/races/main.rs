//! Concurrent operations of one board: changes, views that open and close, waiting calls, shutdown.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod approval;
mod changes;
mod events;
mod fixtures;
mod load;
mod views;
