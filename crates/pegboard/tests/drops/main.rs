//! Every future of the API can be dropped at any time, on every wire and during a start: no queue slot, task or process is left, and the
//! next call succeeds.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod events;
mod fixtures;
mod starts;
mod wires;
