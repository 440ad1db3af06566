//! The transports: they carry messages between clients and an [`Endpoint`](crate::protocol::Endpoint), and know no more of MCP than
//! that requires.

mod stdio;

pub use stdio::serve_stdio;
