//! [`Era`]: the two ways in which MCP begins, and the versions of each.

use serde::Serialize;

/// The versions with a handshake, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The version without a handshake.
pub(super) const MODERN: &str = "2026-07-28";

/// A protocol era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Without a handshake.
    Modern,
    /// With `initialize`.
    Legacy,
}

impl Era {
    /// Its name in reports and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }

    /// The newest version of the era.
    pub fn version(self) -> &'static str {
        match self {
            Self::Modern => MODERN,
            Self::Legacy => LEGACY[0],
        }
    }
}
