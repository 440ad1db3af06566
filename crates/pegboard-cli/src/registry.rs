//! A registry of MCP servers: its API, its entries, and the settings that an entry becomes.

mod client;
mod entry;
mod way;

pub(crate) use client::{OFFICIAL, Registry, RegistryError};
pub(crate) use entry::{RegistryEntry, Status};
pub(crate) use way::{Given, Need, Way, ways};
