//! [`BoardLoad`]: how much of its limits a board uses at one moment.

use std::collections::BTreeMap;

use serde::Serialize;

use pegboard_base::name::ServerName;

/// How much of its limits a board uses at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BoardLoad {
    /// The servers. The instances that views and principals have of a server are added together.
    pub servers: BTreeMap<ServerName, ServerLoad>,
    /// The most bytes that may be buffered. `Metrics::buffered_bytes` has how many are.
    pub buffered_limit: u64,
    /// The processes of servers.
    pub processes: u64,
    /// The most processes.
    pub processes_limit: u64,
}

/// How busy a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerLoad {
    /// Calls that it has.
    pub in_use: u64,
    /// The most calls that it may have at once.
    pub limit: u64,
    /// Calls that wait.
    pub queued: u64,
    /// The most calls that may wait.
    pub queued_limit: u64,
    /// The states of its circuit breakers.
    pub breakers: BreakerCounts,
}

/// How many circuit breakers are in each state. A server has one for each of its instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BreakerCounts {
    /// All attempts are allowed.
    pub closed: u64,
    /// A few probes are allowed.
    pub half_open: u64,
    /// No attempt is allowed.
    pub open: u64,
}

impl ServerLoad {
    /// Adds that of another instance.
    pub(crate) fn add(&mut self, other: &Self) {
        self.in_use += other.in_use;
        self.limit += other.limit;
        self.queued += other.queued;
        self.queued_limit += other.queued_limit;
        self.breakers.closed += other.breakers.closed;
        self.breakers.half_open += other.breakers.half_open;
        self.breakers.open += other.breakers.open;
    }
}
