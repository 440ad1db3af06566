//! [`ServerSettings`]: what the config would make of a server that is added over the API.

use std::fmt;

use pegboard::{Problem, ServerConfig, ServerName};

/// Resolves the settings of servers as the config does: with its presets, its settings for all servers, and its variables.
///
/// The methods may read files; the API calls them where blocking is allowed.
pub trait ServerSettings: fmt::Debug + Send + Sync + 'static {
    /// The server as the config would have it with these settings, a JSON object, in place of its own. Without settings, as the config has it.
    fn resolve(&self, name: &ServerName, settings: Option<&str>) -> Result<ResolvedServer, UnresolvedServer>;

    /// Notes that a server with these settings was added, so that a reload keeps it.
    fn keep(&self, name: &ServerName, settings: &str);

    /// Notes that a server was removed or is as the config has it.
    fn forget(&self, name: &ServerName);
}

/// A server with complete settings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResolvedServer {
    /// Its settings.
    pub config: ServerConfig,
    /// Whether the config has the server with exactly these settings.
    pub is_of_config: bool,
}

impl ResolvedServer {
    /// A server with these settings.
    pub fn new(config: ServerConfig, is_of_config: bool) -> Self {
        Self { config, is_of_config }
    }
}

/// Why a server has no usable settings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum UnresolvedServer {
    /// The config has no such server.
    Unknown,
    /// The settings have errors.
    Invalid(Vec<Problem>),
    /// The config itself cannot be read now.
    ConfigBroken(String),
}
