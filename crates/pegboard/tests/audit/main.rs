//! The audit log of a board: what it says about calls, what it does not say, and what happens when it cannot be written.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod failures;
#[cfg(unix)]
mod processes;
mod stage;
