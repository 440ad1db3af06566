//! What both eras of MCP mean on the server side: messages, versions, clients, running requests and questions to the client.
//!
//! A wire parses a [`Message`], starts a [`Request`] for a [`Client`], and sends what it yields. A [`Service`] answers.

mod client;
mod exchange;
mod message;
mod params;
mod raw_result;
mod rpc_error;
mod service;
mod version;

pub use client::Client;
pub use exchange::Exchange;
pub use message::{Notification, Request};
pub use raw_result::RawResult;
pub use rpc_error::RpcError;
pub use service::{Answer, Description, Event, Filter, LogLevel, Service};
pub use version::Version;
