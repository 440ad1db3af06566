//! The transports: they carry messages between clients and an [`Endpoint`](crate::protocol::Endpoint), and know no more of MCP than
//! that requires.
//!
//! A response leaves as the parts that its [`Outgoing`](crate::protocol::Outgoing) has, so that a long result is never copied.

mod accepts;
mod access_log;
mod body_limit;
mod counted_body;
mod event_body;
mod event_frame;
mod in_memory;
mod lines;
mod open_connections;
mod replay;
mod response;
mod response_body;
mod secret_id;
mod session;
mod session_id;
mod session_store;
mod sessions;
mod sse;
mod stdio;
mod streamable_http;
mod target;
mod websocket;

pub(crate) use access_log::AccessEntry;
pub use access_log::{AccessLog, AccessRecord, Peer};
pub(crate) use body_limit::BodyLimit;
pub(crate) use counted_body::CountedBody;
pub use in_memory::InMemory;
pub(crate) use lines::{LinesWire, is_lines_upgrade};
pub(crate) use response::{HttpResponse, empty, json_bytes, keep_entry, method_not_allowed, problem};
pub use response_body::AnswersCall;
pub(crate) use response_body::ResponseBody;
pub(crate) use sse::SseWire;
pub use stdio::serve_stdio;
pub(crate) use streamable_http::{HttpWire, Limits};
pub(crate) use target::{Endpoints, NoEndpoint, PathTarget};
pub(crate) use websocket::{WebSocketWire, is_upgrade};
