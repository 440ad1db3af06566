//! Boards over third-party servers, run for real. `scripts/peers` installs them.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]
#![expect(
    clippy::field_reassign_with_default,
    reason = "a test names what it changes, line by line"
)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
#[path = "../support/kernel.rs"]
mod kernel;

mod config_file;
mod corpus;
mod everything;
mod failing_starts;
mod features;
mod files_and_memory;
mod modern;
mod modern_features;
mod peer;
#[cfg(target_os = "linux")]
mod sandboxed;
#[cfg(feature = "oauth")]
mod sign_in;
mod talk;
mod time_and_git;
mod together;
mod websocket;
