//! Sessions with in-process servers: everything about messages and time, on a paused clock.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/line_server.rs"]
mod line_server;
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod by_hand;
mod cancel;
mod drops;
mod inputs;
mod listing;
mod notifications;
mod reading;
mod scripted;
mod server_requests;
mod task_updates;
mod tasks;
mod time;
