//! The gateway from the side of its clients: in memory with paused time, and over real sockets in both eras.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod era_matrix;
mod http;
#[cfg(target_os = "linux")]
mod idle_connections;
mod in_memory;
