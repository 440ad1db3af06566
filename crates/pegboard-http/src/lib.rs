//! An HTTP client for one origin.
//!
//! ```text
//! Client::send ──▶ Pool: a kept connection ──▶ Connection: HTTP/1.1 or HTTP/2 ──▶ Response      client.rs, pool.rs, connection.rs
//!                        │ none is kept                     ▲
//!                        ▼                                  │
//!                     Connector ── proxy ── TCP ── TLS ─────┘                                   connector.rs
//! ```
//!
//! It follows no redirect, and its only time limit is that for connecting. A request is sent again only if it provably was not sent: on a kept
//! connection that the server has closed.

mod body;
mod client;
mod connection;
mod connector;
mod error;
mod pool;
mod resolver;
mod response;
mod target;

pub use body::{Body, Gate, NotSent};
pub use client::{Client, Settings};
pub use error::Error;
pub use response::Response;
pub use target::{InvalidTarget, Target, is_this_machine};
