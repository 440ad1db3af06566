//! Limits of a board: servers, processes and buffered bytes.

use serde::{Deserialize, Serialize};

/// The limits of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BoardLimits {
    /// The most servers. In the order of their names, further ones are refused; the others work.
    pub max_servers: usize,
    /// The most child processes at once, including those of pools and of servers that one session owns.
    pub max_processes: usize,
    /// The most servers that start at once; the others wait.
    pub max_starts: usize,
    /// The most bytes that the messages of all servers may buffer together: while they are read, queued for writing, or waiting for the
    /// caller. Messages of up to 64 KiB do not count, and one connection may use a quarter for reading and a quarter for writing.
    pub max_buffered: usize,
}

impl BoardLimits {
    /// The default, also shown by the table of fields.
    pub(super) const DEFAULT: Self = Self {
        max_servers: 100,
        max_processes: 256,
        max_starts: 64,
        max_buffered: 256 << 20,
    };
}

impl Default for BoardLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
