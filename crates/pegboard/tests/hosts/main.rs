//! Who is asked: which host gets a server's question, what callbacks know about the call, and which questions reach no host.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

mod callbacks;
mod fixtures;
mod offers;
mod wires;
