//! Puts a [`Pegboard`](pegboard::Pegboard) behind one MCP endpoint, for clients of both eras on every transport.
//!
//! A message takes the path `wire` → `protocol` → a [`Service`], and its response the same way back. The endpoints of a board are
//! services; a program can serve its own with the same wires.

mod endpoints;
mod protocol;
mod wire;

pub use endpoints::GatewayHost;
pub use protocol::{
    Answer, CacheScope, Client, Description, Event, Exchange, Filter, LogLevel, Notification, Params, RawResult,
    Request, RpcError, Sealer, Service, Version,
};
pub use wire::serve_stdio;
