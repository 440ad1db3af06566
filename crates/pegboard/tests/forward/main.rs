//! Calls and requests that a program passes on for its clients: results as bytes, questions and notifications unparsed.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/line_server.rs"]
#[expect(dead_code, reason = "the tests of sessions use the rest")]
mod line_server;
#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod calls;
mod questions;
mod raw_server;
mod requests;
mod rounds;
#[cfg(feature = "http")]
mod wires;
