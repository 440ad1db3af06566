//! Timeouts and size limits of one server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    duration_text,
    key::{count, limit, size},
    settings::settings,
};

settings! {
    /// Timeouts and size limits of one server.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Limits in limit_keys of server {
        /// The timeout from spawn or connect until the server has answered the handshake.
        connect_timeout: Duration as "duration_text" = limit(30)
            .aka(&["startup_timeout", "init_timeout", "connection_timeout", "start_timeout"])
            .for_all(&["startup_timeout", "init_timeout", "connection_timeout"])
            .common()
            .live();
        /// The timeout for listing the tools of a server, all pages together, and again for listing everything else it offers.
        list_timeout: Duration as "duration_text" = limit(30).aka(&["list_tools_timeout"]).for_all(&[]).live();
        /// The timeout for one call; every progress notification restarts it.
        call_timeout: Duration as "duration_text" = limit(60)
            .aka(&["timeout", "request_timeout", "tool_timeout", "tool_call_timeout", "read_timeout"])
            .for_all(&["default_timeout", "request_timeout", "tool_timeout"])
            .common()
            .live();
        /// The timeout for one call regardless of progress; at least `call_timeout`.
        call_total_timeout: Duration as "duration_text" = limit(600).aka(&["max_total_timeout"]).for_all(&[]).live();
        /// The timeout for writing one message.
        write_timeout: Duration as "duration_text" = limit(10).for_all(&[]);
        /// How long a stdio server may stay silent before its process is also asked in the other era. Some servers do not survive that question before
        /// their handshake, so that a slow one would have to be started again.
        era_silence: Duration as "duration_text" = limit(25).aka(&["discover_timeout"]).for_all(&[]).live();
        /// How long a server has to exit after its input is closed, and again after it is sent a termination signal.
        stop_timeout: Duration as "duration_text" = limit(2).aka(&["shutdown_timeout"]).for_all(&[]);
        /// The largest message.
        max_message: usize = size((1024, 1 << 30), 8 << 20).aka(&["max_message_bytes", "max_message_size"]).for_all(&[]);
        /// The most pages of one listing.
        max_pages: usize = count((1, 100_000), 100).for_all(&[]).live();
        /// The most items of one listing.
        max_items: usize = count((1, 1_000_000), 2048).aka(&["max_tools"]).for_all(&[]).live();
        /// The most calls in flight at once.
        max_in_flight: usize = count((1, 65_536), 32)
            .aka(&["concurrency", "concurrent", "max_concurrent", "max_concurrency"])
            .for_all(&[])
            .live();
    }
}
