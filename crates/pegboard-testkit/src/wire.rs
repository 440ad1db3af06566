//! The transports of a fake server.

pub(crate) mod http;
pub(crate) mod memory;
pub(crate) mod net;
mod peer;
mod sse;
pub(crate) mod stdio;
mod ws;

pub(crate) use peer::header_map;
