//! Sign-in over a real authorization server: each flow, what goes wrong, and many processes at once.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod canary;
mod dpop;
mod fixtures;
mod flows;
mod hostile;
mod listing;
mod pick_up;
mod processes;
mod refresh;
mod step_up;
