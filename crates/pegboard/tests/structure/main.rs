//! How the workspace is built: its crates and rooms, the documents that describe them, and what a build without some features says.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod not_built;
mod rooms;
