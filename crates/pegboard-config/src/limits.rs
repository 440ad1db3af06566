//! Timeouts and size limits of one server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration_text;

/// Timeouts and size limits of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The timeout from spawn or connect until the server has answered the handshake.
    #[serde(with = "duration_text")]
    pub connect_timeout: Duration,
    /// The timeout for listing the tools, all pages together, and again for listing everything else that the server offers.
    #[serde(with = "duration_text")]
    pub list_timeout: Duration,
    /// The timeout for one call; every progress notification restarts it.
    #[serde(with = "duration_text")]
    pub call_timeout: Duration,
    /// The timeout for one call regardless of progress.
    #[serde(with = "duration_text")]
    pub call_total_timeout: Duration,
    /// The timeout for writing one message.
    #[serde(with = "duration_text")]
    pub write_timeout: Duration,
    /// How long a stdio server may stay silent before it is asked in the other era, too.
    #[serde(with = "duration_text")]
    pub era_silence: Duration,
    /// How long a server has to exit after its input is closed, and again after it is sent a termination signal.
    #[serde(with = "duration_text")]
    pub stop_timeout: Duration,
    /// The largest message, in bytes.
    pub max_message: usize,
    /// The most pages of one listing.
    pub max_pages: usize,
    /// The most items of one listing.
    pub max_items: usize,
    /// The most calls in flight at once.
    pub max_in_flight: usize,
}

impl Limits {
    /// The default, also shown by the table of fields.
    pub(super) const DEFAULT: Self = Self {
        connect_timeout: Duration::from_secs(30),
        list_timeout: Duration::from_secs(30),
        call_timeout: Duration::from_secs(60),
        call_total_timeout: Duration::from_secs(600),
        write_timeout: Duration::from_secs(10),
        era_silence: Duration::from_secs(2),
        stop_timeout: Duration::from_secs(2),
        max_message: 8 << 20,
        max_pages: 100,
        max_items: 2048,
        max_in_flight: 32,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
