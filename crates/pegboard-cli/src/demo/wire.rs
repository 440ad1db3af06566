//! The wires: each carries messages between clients and the protocol, and keeps its own bounds.

mod guard;
pub(super) mod http;
mod listen;
mod secret_id;
pub(super) mod sse;
pub(super) mod stdio;
pub(super) mod ws;
