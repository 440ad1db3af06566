//! Times and sizes for one server.

use std::time::Duration;

/// Times and sizes for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// From spawn or connect until the server has answered the handshake.
    pub connect: Duration,
    /// For listing the tools of a server, all pages together, and again for listing all else that it offers.
    pub list: Duration,
    /// For one call without a sign of life; progress starts it anew.
    pub call_idle: Duration,
    /// For one call altogether.
    pub call_total: Duration,
    /// For handing one message to the operating system.
    pub write: Duration,
    /// How long a silent stdio server is waited for before the other era is tried on a second process.
    pub era_silence: Duration,
    /// How long a server is waited for after its input was closed, and again after it was asked to end.
    pub stop: Duration,
    /// The largest message, in bytes.
    pub message_bytes: usize,
    /// The most pages of one listing.
    pub pages: usize,
    /// The most items of one listing.
    pub items: usize,
    /// The most calls under way at once.
    pub in_flight: usize,
}

impl Limits {
    /// The default, which the table of fields shows too.
    pub(super) const DEFAULT: Self = Self {
        connect: Duration::from_secs(30),
        list: Duration::from_secs(30),
        call_idle: Duration::from_secs(60),
        call_total: Duration::from_secs(600),
        write: Duration::from_secs(10),
        era_silence: Duration::from_secs(2),
        stop: Duration::from_secs(2),
        message_bytes: 8 << 20,
        pages: 100,
        items: 2048,
        in_flight: 32,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
