//! Limits of a board: servers, processes and buffered bytes.

use serde::{Deserialize, Serialize};

use super::{
    key::{count, size},
    settings::settings,
};

settings! {
    /// The limits of a board.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct BoardLimits in board_limit_keys of top {
        /// The most servers; further ones are refused.
        max_servers: usize = count((1, 1000), 100).lowers();
        /// The most child processes at once.
        max_processes: usize = count((1, 65_536), 256).lowers();
        /// The most servers that start at once; the others wait.
        max_starts: usize = count((1, 1000), 64).aka(&["start_concurrency"]).lowers();
        /// The most bytes that the messages of all servers may buffer together; one connection may use a quarter of them in each direction, and
        /// messages of up to 64KiB do not count.
        max_buffered: usize = size((1 << 20, 1 << 40), 256 << 20).lowers();
    }
}
