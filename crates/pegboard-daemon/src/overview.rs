//! [`Overview`]: what the routes for operators look at.

use jiff::Timestamp;
use pegboard::Pegboard;
use pegboard_gateway::Monitor;

use crate::reloads::Reloads;

/// A board, the reloads of its config, and the gateway in front of it. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    pub(crate) board: Pegboard,
    pub(crate) reloads: Reloads,
    /// When the daemon was started.
    pub(crate) started_at: Timestamp,
    /// What the gateway counts, if there is one.
    pub(crate) monitor: Option<Monitor>,
}

impl Overview {
    pub(crate) fn new(board: Pegboard, reloads: Reloads) -> Self {
        Self {
            board,
            reloads,
            started_at: Timestamp::now(),
            monitor: None,
        }
    }

    /// Returns `true` once the gateway stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.monitor.as_ref().is_some_and(Monitor::is_draining)
    }
}
