//! The configuration of a whole board, after everything is resolved.

use std::collections::BTreeMap;

use super::{misconfigured::Misconfigured, policy::Queue, preset::Preset, server::ServerConfig};
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

/// How much a board takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoardLimits {
    /// The most servers. Those beyond, by name, are refused; the others work.
    pub servers: usize,
    /// The most child processes at once, those of pools and of agents' own servers included.
    pub processes: usize,
    /// The most servers that are being started at once; the others wait for their turn.
    pub starts: usize,
    /// The most bytes that messages of all servers take together while they are read, wait to be written, or wait for the callers that
    /// they answer. Messages of up to 64 KiB do not count, and one connection takes at most a
    /// quarter for what it reads and a quarter for what waits to be written.
    pub buffered: usize,
}

impl BoardLimits {
    /// The default, which the table of fields shows too.
    pub(super) const DEFAULT: Self = Self {
        servers: 100,
        processes: 256,
        starts: 64,
        buffered: 256 << 20,
    };
}

impl Default for BoardLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
