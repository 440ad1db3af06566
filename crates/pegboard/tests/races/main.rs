//! Concurrent operations of one board: changes, views that open and close, waiting calls, shutdown.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

mod approval;
mod changes;
mod events;
mod fixtures;
mod load;
mod views;
