//! What both eras of MCP mean on the server side: messages, versions, clients, running requests and questions to the client.
//!
//! A wire parses a [`Message`], starts a [`Request`] for a [`Client`], and sends what it yields. A [`Service`] answers.

mod capability;
mod client;
mod connection;
mod early_end;
mod endpoint;
mod events;
mod exchange;
mod handshake;
mod json_fields;
mod kept_session;
mod limits;
mod log_level;
mod message;
mod observed;
mod outgoing;
mod params;
mod parked;
mod peer;
mod questions;
mod raw_result;
mod request_info;
mod request_meta;
mod request_stream;
mod rpc_errors;
mod running;
mod scope_check;
mod sealer;
mod service;
mod subscriptions;
mod unread_room;

pub use client::Client;
pub use exchange::Exchange;
pub use log_level::LogLevel;
pub use message::{Notification, Request};
pub use params::Params;
pub use pegboard_protocol::{RequestId, RpcError, Version};
pub use raw_result::{CacheScope, RawResult};
pub use sealer::Sealer;
pub use service::{Answer, Description, Event, Filter, Service};

pub(crate) use capability::check as check_capability;
pub(crate) use connection::Connection;
pub(crate) use early_end::EarlyEnd;
pub(crate) use endpoint::{Endpoint, only_reads};
pub(crate) use kept_session::LIFETIME as SESSION_LIFETIME;
pub(crate) use limits::Limits;
pub(crate) use message::{Broken, Incoming, MAX_MESSAGE, Message, parse};
pub(crate) use observed::{TOOL_ERROR, Wire, session_text, span_in_headers};
pub(crate) use outgoing::Outgoing;
pub(crate) use peer::Peer;
pub(crate) use request_info::{RequestInfo, RequestNotes};
pub(crate) use request_meta::unsupported_version_error;
pub(crate) use running::{RunStep, Running};
pub(crate) use sealer::ReplicaId;

#[cfg(test)]
mod tests;
