//! Stored configs: the wrappers that expose secrets.

use super::{board::Config, server::ServerConfig};
use pegboard_base::secret::WithSecrets;

impl Config {
    /// The config with its secrets, for a program that stores it encrypted.
    ///
    /// A config can be serialised as it is. Its secrets are then written as `****`, and reading such a config fails, so that no server is
    /// started with stars in place of a token. Fields have the names of the Rust fields and durations are text (`"30s"`). A reader ignores
    /// fields that it does not know and takes the default for those that are missing, so a config can be read by a later version.
    ///
    /// Arguments and environment variables of a command may contain secrets, so they are all hidden.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::{Config, ServerConfig, serde_json, config::Endpoint};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let github = Endpoint::new("https://mcp.example.com/mcp")?.bearer("t0ken");
    /// let config = Config::new().server("github", ServerConfig::http(github)?)?;
    ///
    /// // For a log or a dashboard.
    /// let shown = serde_json::to_string(&config)?;
    /// assert!(!shown.contains("t0ken"));
    /// assert!(serde_json::from_str::<Config>(&shown).is_err());
    ///
    /// // For a store that encrypts.
    /// let stored = serde_json::to_string(&config.with_secrets())?;
    /// assert_eq!(serde_json::from_str::<Config>(&stored)?, config);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_secrets(&self) -> WithSecrets<'_, Self> {
        WithSecrets::new(self)
    }
}

impl ServerConfig {
    /// The config with its secrets, for a program that stores it encrypted. See [`Config::with_secrets`].
    pub fn with_secrets(&self) -> WithSecrets<'_, Self> {
        WithSecrets::new(self)
    }
}
