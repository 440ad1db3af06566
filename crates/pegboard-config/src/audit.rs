//! The settings of the audit log.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    key::{count, flag, size, text},
    setting::Text,
    settings::settings,
};

settings! {
    /// Where the audit log is written, and what happens when it cannot be written.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub struct AuditConfig in audit = "audit" {
        /// Whether calls are refused while the log cannot be written.
        required: bool = flag(false);
        /// The size from which on a new file is begun.
        max_size: usize [default = "default_max_size"] = size((4096, 1 << 40), 64 << 20);
        /// The most files, the current one included; the oldest is removed when there are more.
        max_files: usize [default = "default_max_files"] = count((2, 100_000), 16);
    }
    keys {
        /// The file, relative to the config file; `~` is the home directory.
        file: Option<Text> = text().aka(&["path"]);
    }
    needs {
        /// The log. `FILE.state` beside it has the lock, the key of the argument hashes and the end of the chain.
        file: PathBuf;
    }
}

fn default_max_size() -> usize {
    audit::max_size.default()
}

fn default_max_files() -> usize {
    audit::max_files.default()
}

impl AuditConfig {
    /// A log in this file, with the defaults.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self::with(file.into())
    }
}
