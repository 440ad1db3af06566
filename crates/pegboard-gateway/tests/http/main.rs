//! The gateway over real sockets: both eras, sessions, resumption, the door and the limits.
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod client;
mod door;
mod legacy;
mod limits;
#[cfg(unix)]
mod local;
mod modern;
mod removal;
mod resumption;
mod revocation;
mod scopes;
mod service;
mod shutdown;
mod sse;
mod starting;
mod tls;
mod websocket;
