//! The MCP endpoints of a board: the whole board, a view of the config, and one server with its own names.
//!
//! A request takes the path endpoint → [`Core`](core::Core) → a toolset of the client → the server. Whatever a server asks meanwhile goes
//! back through the host of that toolset to the exchange of the call.

mod approvals;
mod board;
mod board_service;
mod client_capabilities;
mod client_tools;
mod confirmations;
mod core;
mod definitions;
mod era_hints;
mod failures;
mod hosts;
mod listen;
mod mirrored;
mod open_exchanges;
mod options;
mod own_tasks;
mod owners;
mod pages;
mod pass_on;
mod related_tasks;
mod request_state;
mod requests;
mod resolver;
mod scope;
mod server;
mod shared_tools;
mod sign_in_offers;
mod sign_in_tools;
mod task_forms;
mod task_inputs;
mod tasks;
mod tool_call;
mod toolset_cache;
mod wanted_logs;

pub use board_service::{BoardPart, board_service};
pub use hosts::GatewayHost;
pub(crate) use options::BoardOptions;
pub use resolver::BoardEndpoints;
pub use toolset_cache::{CachedToolset, ToolsetCache};
