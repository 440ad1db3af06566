//! Protocol versions, and the two eras that they belong to.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A protocol version, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// The first version, with HTTP+SSE.
    V2024_11_05,
    /// Streamable HTTP, and batches.
    V2025_03_26,
    /// Elicitation and structured content; no batches.
    V2025_06_18,
    /// Tasks, sampling with tools, elicitation by URL.
    V2025_11_25,
    /// The modern era: no handshake, no sessions, no requests of servers.
    V2026_07_28,
}

impl Version {
    /// The versions without a handshake, newest first.
    pub const MODERN: [Self; 1] = [Self::V2026_07_28];

    /// The versions with a handshake, newest first.
    pub const LEGACY: [Self; 4] = [
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// All versions, newest first: the order in which clients should prefer them.
    pub const ALL: [Self; 5] = [
        Self::MODERN[0],
        Self::LEGACY[0],
        Self::LEGACY[1],
        Self::LEGACY[2],
        Self::LEGACY[3],
    ];

    /// The newest version without a handshake.
    pub const LATEST_MODERN: Self = Self::MODERN[0];

    /// The first version without a handshake. Versions that are not known yet have later dates.
    pub const FIRST_MODERN: Self = Self::MODERN[Self::MODERN.len() - 1];

    /// The newest version with a handshake.
    pub const LATEST_LEGACY: Self = Self::LEGACY[0];

    /// The date that names the version.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era that the version belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Returns `true` if requests need no handshake and no session.
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    /// Returns `true` if clients and servers may send several messages at once, as an array.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Returns the version of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == name)
    }

    /// The version that a server answers a handshake with: the requested one if it has a handshake, else the newest that does.
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested)
            .filter(|version| !version.is_modern())
            .unwrap_or(Self::LATEST_LEGACY)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A protocol era: without a handshake (2026-07-28 and later), or with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Without a handshake.
    Modern,
    /// With a handshake.
    Legacy,
}

impl Era {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }

    /// The newest version of the era.
    pub fn latest_version(self) -> Version {
        match self {
            Self::Modern => Version::LATEST_MODERN,
            Self::Legacy => Version::LATEST_LEGACY,
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl AsRef<str> for Era {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for Era {
    type Err = UnknownEra;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "modern" => Ok(Self::Modern),
            "legacy" => Ok(Self::Legacy),
            _ => Err(UnknownEra(word.to_owned())),
        }
    }
}

/// The error for a text that names no era.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEra(String);

impl fmt::Display for UnknownEra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.0.escape_debug();
        write!(f, "`{word}` is no protocol era; there are modern, legacy")
    }
}

impl std::error::Error for UnknownEra {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_have_every_version_once_newest_first_and_by_era() {
        assert!(Version::ALL.is_sorted_by(|newer, older| newer > older));
        for version in Version::ALL {
            assert_eq!(Version::parse(version.as_str()), Some(version));
            assert_eq!(Version::MODERN.contains(&version), version.is_modern(), "{version}");
            assert_eq!(Version::LEGACY.contains(&version), !version.is_modern(), "{version}");
        }
        for era in [Era::Modern, Era::Legacy] {
            assert_eq!((era.latest_version().era(), era.as_str().parse()), (era, Ok(era)));
        }
    }

    #[test]
    fn a_handshake_never_settles_on_a_version_without_one() {
        for (requested, answered) in [
            ("2025-03-26", Version::V2025_03_26),
            ("2026-07-28", Version::V2025_11_25),
            ("2031-01-01", Version::V2025_11_25),
            ("", Version::V2025_11_25),
        ] {
            assert_eq!(Version::negotiate(requested), answered, "{requested}");
        }
    }

    #[test]
    fn an_unknown_era_is_told_what_there_is() {
        let unknown = "old\n".parse::<Era>().unwrap_err().to_string();
        assert_eq!(unknown, "`old\\n` is no protocol era; there are modern, legacy");
    }
}
