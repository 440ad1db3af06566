//! The pages.

pub(crate) mod agents;
pub(crate) mod calls;
pub(crate) mod config;
pub(crate) mod definition;
pub(crate) mod overview;
pub(crate) mod policy;
mod recent;
pub(crate) mod server;
pub(crate) mod server_changes;
mod server_rows;
pub(crate) mod servers;
pub(crate) mod sign_in;
pub(crate) mod tool;
pub(crate) mod tool_call;
mod tool_view;
pub(crate) mod tools;
