//! [`History`]: a supervisor's restart schedule, failures and outages, kept across sessions.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::server::{
    backoff::{Backoff, CrashLoop},
    outage::{Outage, OutageStart},
};

/// A supervisor's state that outlives single sessions.
pub(in crate::server) struct History {
    /// The board's schedule.
    pub(super) board_backoff: Backoff,
    /// The schedule in use.
    pub(super) backoff: Backoff,
    /// The waits of the plan that `backoff` was created from.
    pub(super) waits: Vec<Duration>,
    pub(super) crashes: CrashLoop,
    /// The generation of the last session; zero if there was none.
    pub(super) generation: u64,
    pub(super) restarts: u32,
    /// Consecutive failed starts.
    pub(super) failures: u32,
    pub(super) last_outage: Option<Arc<Outage>>,
    /// When the current outage began; `None` while the server is ready, and before its first start has failed.
    pub(super) outage_began: Option<OutageStart>,
    /// The time until which callers wait while first starts fail.
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

    /// The next wait of the plan's schedule, or of the board's if the plan has none.
    pub(super) fn next_wait(&mut self, waits: &[Duration]) -> Duration {
        self.schedule(waits).next()
    }

    pub(super) fn schedule(&mut self, waits: &[Duration]) -> &mut Backoff {
        if self.waits != waits {
            self.waits = waits.to_vec();
            self.backoff = if waits.is_empty() {
                self.board_backoff.clone()
            } else {
                self.board_backoff.with_waits(waits)
            };
        }
        &mut self.backoff
    }

    /// Forgets earlier failures.
    pub(super) fn reset(&mut self) {
        self.backoff.reset();
        self.crashes.reset();
        self.failures = 0;
    }
}
