//! Events and metrics of a running board: nothing is missed and nothing is reported twice.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod fixtures;
mod metrics;
mod servers;
