//! Servers and programs as real processes: how they start, fail and stop, what they may do, and that none is left.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]
#![expect(
    clippy::field_reassign_with_default,
    reason = "a test names what it changes, line by line"
)]

#[cfg(target_os = "linux")]
#[path = "../support/kernel.rs"]
mod kernel;
#[path = "../support/mod.rs"]
mod support;

mod examples;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(target_os = "linux")]
mod sandbox;
mod soak;
mod stdio;
