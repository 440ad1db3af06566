//! A client of one MCP server: its process or connection, and the session over it.
//!
//! The rooms, bottom to top:
//!
//! - [`credential`]: credentials that the program supplies at run time.
//! - [`shim`]: the guard process, which ends stdio servers with everything that they started, and their sandbox.
//! - [`transport`]: sends and receives whole messages as bytes, over stdio, HTTP, SSE, WebSocket or a stream in this process.
//! - [`native`]: Rust functions as tools, served over such a stream.
//! - [`session`]: what the messages mean: the handshake, requests and responses, notifications, the server's own requests.
//!
//! ```text
//! Spec ──▶ transport: dial ──▶ handshake ──▶ Session
//!                                              │ a request
//!                                              ▼
//! caller ◀── raw result ◀── Dispatcher      RpcConnection: an id, an entry in PendingRequests
//!                              ▲               │ a message
//!                              │ Inbox         ▼
//!                              └──────────── Wire ──▶ stdio (behind the guard) · http · sse · websocket · in process
//! ```
//!
//! A dropped future cancels its request at the server. A failed request says whether the server can have carried it out
//! ([`session::Fault`]). Nothing here restarts a server or retries a call, and nothing knows about agents.
//!
//! The API follows the needs of the other crates. Programs use the crate `pegboard`.

pub mod credential;
pub mod native;
pub mod session;
pub mod shim;
#[cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "some parts of a wire are for HTTP only")
)]
pub mod transport;
