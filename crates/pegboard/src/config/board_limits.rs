//! How many servers, processes and bytes a board takes on.

/// The limits of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoardLimits {
    /// The most servers. Those beyond, by name, are refused; the others work.
    pub servers: usize,
    /// The most child processes at once, those of pools and of agents' own servers included.
    pub processes: usize,
    /// The most servers that are being started at once; the others wait for their turn.
    pub starts: usize,
    /// The most bytes that messages of all servers take together while they are read, wait to be written, or wait for the callers that
    /// they answer. Messages of up to 64 KiB do not count, and one connection takes at most a
    /// quarter for what it reads and a quarter for what waits to be written.
    pub buffered: usize,
}

impl BoardLimits {
    /// The default, which the table of fields shows too.
    pub(super) const DEFAULT: Self = Self {
        servers: 100,
        processes: 256,
        starts: 64,
        buffered: 256 << 20,
    };
}

impl Default for BoardLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
