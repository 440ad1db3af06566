//! The protocol versions that clients may speak.

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
    /// All versions, newest first: the order in which clients should prefer them.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The date that names the version.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the version of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == name)
    }

    /// The version of a handshake: the requested one if it has a handshake, else the newest that does.
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested)
            .filter(|version| !version.is_modern())
            .unwrap_or(Self::V2025_11_25)
    }

    /// Returns `true` if requests need no handshake and no session.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}
