//! The severity levels of MCP log messages.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The severity of a server's log message, as in syslog, which defines all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Detail for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Normal operation that is worth noticing.
    Notice,
    /// A condition that may become an error.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// An operator must act at once.
    Alert,
    /// The server is unusable.
    Emergency,
}

impl LogLevel {
    /// Returns the level's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// All levels, the least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl AsRef<str> for LogLevel {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLogLevel> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == name);
        found.ok_or_else(|| UnknownLogLevel(name.to_owned()))
    }
}

/// The error for text that names no log level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no level of a log; there are {}", .0.escape_debug(), LogLevel::ALL.map(LogLevel::as_str).join(", "))]
pub struct UnknownLogLevel(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_from_its_word() {
        for level in LogLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        let unknown = "loud".parse::<LogLevel>().unwrap_err().to_string();
        assert!(unknown.contains("`loud`") && unknown.contains("emergency"), "{unknown}");
    }
}
