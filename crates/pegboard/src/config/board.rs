//! The configuration of a whole board, after everything is resolved.

use std::collections::BTreeMap;

use super::{
    board_limits::BoardLimits, misconfigured::Misconfigured, policy::Queue, preset::Preset, server::ServerConfig,
};
use crate::{
    mask::Masking,
    name::{NameStyle, ServerName},
};

/// Everything a board needs to know: the servers, by name.
///
/// ```
/// use pegboard::{Config, Env, Format};
///
/// let text = "[servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']\n";
/// let loaded = Config::from_text(text, Format::Toml, &Env::process());
/// assert!(loaded.problems.is_empty());
/// assert_eq!(loaded.config.servers.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The configured servers that can be used.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// The configured servers that cannot be used as they are written.
    pub misconfigured: BTreeMap<ServerName, Misconfigured>,
    /// The queues that calls wait in, by name.
    pub queues: BTreeMap<String, Queue>,
    /// The design whose defaults the servers start from.
    pub preset: Preset,
    /// How much the board takes on.
    pub limits: BoardLimits,
    /// How tools are named for models. Views that were made before a change keep their names.
    pub naming: NameStyle,
    /// What is hidden in the words of servers whose own settings say nothing else.
    pub masking: Masking,
}
