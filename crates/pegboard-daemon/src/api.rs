//! The HTTP API: servers, tools, calls, warnings and events of a board as JSON.
//!
//! A request comes from the gateway, which has admitted its caller. A handler takes the right that it needs ([`access`]), and the caller's
//! toolset ([`toolsets`]), so that views, limits and principals are those of the MCP endpoint.

mod access;
mod body;
mod calls;
mod change_records;
mod documents;
mod events;
mod listings;
mod local_api;
mod openapi;
mod paths;
mod problem;
mod reloading;
mod reply;
mod routes;
mod server_changes;
mod server_settings;
mod servers;
mod sign_in;
mod sign_ins;
mod state;
mod toolsets;

pub(crate) use documents::{NoteDocument, how_to_connect};
pub use documents::{StatusDocument, WarningDocument};
pub use local_api::{ApiReply, LocalApi};
pub(crate) use routes::{router, unknown_path, wrong_method};
pub use server_settings::{ResolvedServer, ServerSettings, UnresolvedServer};
pub(crate) use servers::{all_warnings, status};
pub(crate) use sign_ins::sign_ins;
pub(crate) use state::ApiState;
