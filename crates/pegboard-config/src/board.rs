//! The resolved configuration of a board.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    audit::AuditConfig, board_limits::BoardLimits, misconfigured::Misconfigured, policy::Queue, preset::Preset,
    serve::ServeConfig, server::ServerConfig, view::ViewConfig,
};
use pegboard_base::{
    name::{NameStyle, ServerName},
    secret::Secret,
};
use pegboard_mask::Masking;

/// The resolved configuration of a board.
///
/// ```
/// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
/// use pegboard::{Config, Env, Format};
///
/// let text = "[servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']\n";
/// let loaded = Config::from_text(text, Format::Toml, &Env::process());
/// assert!(loaded.problems.is_empty());
/// assert_eq!(loaded.config.servers.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Config {
    /// The servers that can be used, by name.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// The servers whose config has errors, by name.
    pub misconfigured: BTreeMap<ServerName, Misconfigured>,
    /// The queues that calls wait in, by name.
    pub queues: BTreeMap<String, Queue>,
    /// The preset that provides the defaults of the servers.
    pub preset: Preset,
    /// The limits of the board.
    pub limits: BoardLimits,
    /// How tools are named for models. Toolsets that are open when this changes keep their names; clients of a gateway get the new ones.
    pub naming: NameStyle,
    /// The audit log of all calls. It is opened with the board; `Pegboard::apply` does not change it.
    pub audit: Option<AuditConfig>,
    /// What is masked in the output of servers that do not override it.
    pub masking: Masking,
    /// The named views, by name.
    pub views: BTreeMap<String, ViewConfig>,
    /// The settings of the gateway.
    pub serve: ServeConfig,
    /// Whether the commands and hosts of `pegboard` start a daemon in the background, in which the servers run once for all of them.
    pub daemon: bool,
    /// The secrets of servers that [`Config::select`] removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[doc(hidden)]
    pub removed_secrets: Vec<Secret>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            servers: BTreeMap::new(),
            misconfigured: BTreeMap::new(),
            queues: BTreeMap::new(),
            preset: Preset::default(),
            limits: BoardLimits::default(),
            naming: NameStyle::default(),
            audit: None,
            masking: Masking::default(),
            views: BTreeMap::new(),
            serve: ServeConfig::default(),
            daemon: true,
            removed_secrets: Vec::new(),
        }
    }
}
