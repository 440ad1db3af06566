//! The settings of the audit log.

mod target;

pub use target::{AuditTarget, SyslogAddress};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    key::{count, flag, size, text, text_or},
    setting::Text,
    settings::settings,
};

settings! {
    /// Where the audit log is written, and what happens when it cannot be written.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub struct AuditConfig in audit = "audit" {
        /// Where the log goes: `file`, which needs `file`; `stdout`, for `pegboard serve` only; `syslog`, which is the socket `/dev/log`; or the
        /// syslog at `unix:/path`, `udp://host:port` or `tcp://host:port`.
        to: AuditTarget = text_or(AuditTarget::File, "file")
            .syntax(target::problem, "write `stdout`, `syslog` or `udp://logs.example.com:514`");
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
        /// The log, if it goes to a file. `FILE.state` beside it has the lock, the key of the argument hashes and the end of the chain.
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
    /// A log that goes to another place than a file.
    pub fn to(target: AuditTarget) -> Self {
        Self {
            to: target,
            ..Self::with(PathBuf::new())
        }
    }

    /// The file of the log; `None` if it goes to another place.
    pub fn file(&self) -> Option<&Path> {
        (self.to == AuditTarget::File).then_some(self.file.as_path())
    }

    /// Where the log goes, for people.
    pub fn place(&self) -> String {
        match &self.to {
            AuditTarget::File => self.file.display().to_string(),
            AuditTarget::Stdout => "stdout".to_owned(),
            AuditTarget::Syslog(_) => format!("the syslog at {}", self.to),
        }
    }

    /// A log in this file, with the defaults.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self::with(file.into())
    }
}
