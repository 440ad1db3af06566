//! The transports. Each carries messages between clients and the protocol, within its own bounds.

mod dns_rebinding;
pub(super) mod http;
mod listen;
mod secret_id;
pub(super) mod sse;
pub(super) mod stdio;
pub(super) mod ws;
