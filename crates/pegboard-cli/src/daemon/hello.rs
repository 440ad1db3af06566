//! What a daemon says of itself to the commands that may use it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use pegboard::Timestamp;
use pegboard_base::sync::Mutex;
use serde::{Deserialize, Serialize};

use super::{identity::config_digest, program_file::ProgramFile};
use crate::settings::{Settings, here};

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
    /// When that config was read: files that were changed later are not in effect yet.
    #[serde(default)]
    pub(crate) read_at: Option<Timestamp>,
    /// The program that it runs, as it was at its start.
    #[serde(default)]
    pub(super) program: Option<ProgramFile>,
    /// Whether a command or a host started it, in the background.
    #[serde(default)]
    pub(crate) background: bool,
    /// How long it stays without a client.
    #[serde(default)]
    pub(crate) idle_ms: Option<u64>,
    /// The working folder of its servers.
    #[serde(default)]
    pub(crate) folder: PathBuf,
    #[serde(default)]
    pub(crate) since: Option<Timestamp>,
    /// Its config files.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    #[serde(default)]
    pub(crate) log: Option<PathBuf>,
}

/// How a daemon was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Started {
    /// The log of one in the background.
    pub(crate) log: Option<PathBuf>,
    /// How long it stays without a client.
    pub(crate) idle: Option<Duration>,
}

/// What this daemon knows of itself. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Identified {
    hello: Arc<Mutex<Hello>>,
}

impl Identified {
    /// A daemon that has applied these settings, which were read at that time.
    pub(crate) fn new(settings: &Settings, read_at: Timestamp, started: Started) -> Self {
        let hello = Hello {
            version: VERSION.to_owned(),
            pid: std::process::id(),
            config: config_digest(&settings.loaded.config),
            read_at: Some(read_at),
            program: ProgramFile::current(),
            background: started.log.is_some(),
            idle_ms: started
                .idle
                .map(|idle| u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)),
            folder: here(),
            since: Some(read_at),
            files: settings.loaded.sources.clone(),
            log: started.log,
        };
        Self {
            hello: Arc::new(Mutex::new(hello)),
        }
    }

    /// Notes that another config is applied, which was read at that time.
    pub(crate) fn applied(&self, config: String, read_at: Timestamp) {
        let mut hello = self.hello.lock();
        (hello.config, hello.read_at) = (config, Some(read_at));
    }

    pub(super) fn hello(&self) -> Hello {
        self.hello.lock().clone()
    }
}
