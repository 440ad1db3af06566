//! What a supervisor remembers between sessions: its schedule, its failures and the outage that they are part of.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::server::{
    backoff::{Backoff, CrashLoop},
    outage::{Outage, OutageStart},
};

/// What a supervisor remembers between sessions.
pub(in crate::server) struct History {
    /// The schedule of the board, and ours: the waits of the plan when it was last looked at.
    pub(super) board_backoff: Backoff,
    pub(super) backoff: Backoff,
    pub(super) waits: Vec<Duration>,
    pub(super) crashes: CrashLoop,
    /// The session that we had last; zero for none.
    pub(super) generation: u64,
    pub(super) restarts: u32,
    /// Starts that failed in a row.
    pub(super) failures: u32,
    pub(super) last_outage: Option<Arc<Outage>>,
    /// When the outage outage_began that lasts; `None` while the server is ready, and before its first start has failed.
    pub(super) outage_began: Option<OutageStart>,
    /// Until when callers wait while first starts fail.
    pub(super) callers_wait_until: Option<Instant>,
    /// Whether the last session was lost, so that the next start is a restart.
    pub(super) was_lost: bool,
}

impl History {
    pub(in crate::server) fn new(backoff: &Backoff) -> Self {
        Self {
            board_backoff: backoff.clone(),
            backoff: backoff.clone(),
            waits: Vec::new(),
            crashes: CrashLoop::default(),
            generation: 0,
            restarts: 0,
            failures: 0,
            last_outage: None,
            outage_began: None,
            callers_wait_until: None,
            was_lost: false,
        }
    }

    /// How long to wait now, by the waits of the plan, or without any by those of the board.
    pub(super) fn next_wait(&mut self, waits: &[Duration]) -> Duration {
        self.schedule(waits).next()
    }

    pub(super) fn schedule(&mut self, waits: &[Duration]) -> &mut Backoff {
        if self.waits != waits {
            self.waits = waits.to_vec();
            self.backoff = if waits.is_empty() {
                self.board_backoff.clone()
            } else {
                self.board_backoff.scheduled(waits)
            };
        }
        &mut self.backoff
    }

    /// What happened before does not count any more.
    pub(super) fn reset(&mut self) {
        self.backoff.reset();
        self.crashes.reset();
        self.failures = 0;
    }
}
