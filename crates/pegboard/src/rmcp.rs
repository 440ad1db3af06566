//! Works together with [the crate `rmcp`](::rmcp), the official Rust SDK: handlers and transports as servers, a toolset as a handler, and conversions.
//!
//! * [`in_process`] makes an in-process server of a `ServerHandler`.
//! * [`transport`] reaches a server over any client transport of rmcp.
//! * [`ToolsetHandler`] serves a [`Toolset`](crate::Toolset) to MCP clients.
//! * Tools, content blocks and results convert with `From` and `TryFrom`. The documentation of each conversion says what is lost.
//!
//! The types of rmcp are part of this module's interface, so a new major version of rmcp is a breaking change of it. [`sdk`] is the version
//! that it was built with.

mod bridge;
mod guarded;
mod handler_dialer;
mod listed_tool;
mod streams;
mod toolset_handler;
mod transport_dialer;

pub use ::rmcp as sdk;
pub use handler_dialer::{in_process, in_process_with};
#[doc(inline)]
pub use pegboard_tools::rmcp::NotConvertible;
pub use toolset_handler::ToolsetHandler;
pub use transport_dialer::transport;
