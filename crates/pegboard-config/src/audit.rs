//! The settings of the audit log.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the audit log is written, and what happens when it cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditConfig {
    /// The log. `FILE.state` beside it has the lock, the key of the argument hashes and the end of the chain.
    pub file: PathBuf,
    /// Whether a call is refused if its decision cannot be written first. Otherwise the call is made and `Event::AuditFailed` is published.
    #[serde(default)]
    pub required: bool,
    /// The size from which on a new file is begun.
    #[serde(default = "AuditConfig::default_max_size")]
    pub max_size: usize,
    /// The most files, the current one included. The oldest is removed when there are more.
    #[serde(default = "AuditConfig::default_max_files")]
    pub max_files: usize,
}

impl AuditConfig {
    /// The default of `max_size`, also shown by the table of fields.
    pub(super) const MAX_SIZE: usize = 64 << 20;
    /// The default of `max_files`.
    pub(super) const MAX_FILES: usize = 16;

    fn default_max_size() -> usize {
        Self::MAX_SIZE
    }

    fn default_max_files() -> usize {
        Self::MAX_FILES
    }

    /// A log in this file, with the defaults.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            required: false,
            max_size: Self::MAX_SIZE,
            max_files: Self::MAX_FILES,
        }
    }
}
