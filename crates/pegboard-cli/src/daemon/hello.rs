//! What a daemon says of itself to the commands that may use it.

use std::sync::Arc;

use pegboard_base::sync::Mutex;
use serde::{Deserialize, Serialize};

/// The version that a command and its daemon must share.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A daemon's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    // Another version may leave out what follows, and its user is told which version it is.
    #[serde(default)]
    pub(crate) pid: u32,
    /// The digest of the config that is applied now.
    #[serde(default)]
    pub(crate) config: String,
}

/// What this daemon knows of itself. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Identified {
    config: Arc<Mutex<String>>,
}

impl Identified {
    /// A daemon with a config of this digest.
    pub(crate) fn new(config: String) -> Self {
        Self {
            config: Arc::new(Mutex::new(config)),
        }
    }

    /// Notes that another config is applied.
    pub(crate) fn applied(&self, config: String) {
        *self.config.lock() = config;
    }

    pub(super) fn hello(&self) -> Hello {
        Hello {
            version: VERSION.to_owned(),
            pid: std::process::id(),
            config: self.config.lock().clone(),
        }
    }
}
