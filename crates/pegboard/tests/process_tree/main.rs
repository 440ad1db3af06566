//! No process of a stdio server is ever left behind, whatever it starts and however the program ends.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod ends;
mod guard;
mod inside;
mod killed;
mod program;
