//! [`Admission`]: decides when a call may go to a server.

use std::future::Future;

use tokio::time::Instant;

use super::{
    board_shared::BoardShared,
    breaker::Breaker,
    pool::total_slots,
    queue::{Gate, Permit, QueueStats, Refused},
    retry_budget::RetryBudget,
};
use pegboard_base::{caller::QuotaOwner, deadline::Deadline, name::ServerName};
use pegboard_config::ServerConfig;

/// Decides when a call may go to a server: its queues, its circuit breaker and its retry budget.
#[derive(Debug)]
pub(crate) struct Admission {
    gate: Gate,
    breaker: Breaker,
    retries: RetryBudget,
}

impl Admission {
    pub(super) fn new(name: &ServerName, config: &ServerConfig, shared: &BoardShared) -> Self {
        Self {
            gate: shared.queues.gate(name.as_str(), total_slots(config), &config.policy),
            breaker: Breaker::new(name, config.policy.breaker.unwrap_or(shared.breaker)),
            retries: RetryBudget::new(Instant::now()),
        }
    }

    /// Applies new settings. The breaker keeps its state unless its policy changes.
    pub(super) fn retune(&self, old: &ServerConfig, new: &ServerConfig, shared: &BoardShared) {
        self.gate.resize(total_slots(new));
        self.gate.bind(&shared.queues, &new.policy);
        if old.policy.breaker != new.policy.breaker {
            self.breaker.follow(new.policy.breaker.unwrap_or(shared.breaker));
        }
    }

    /// Returns a permit to call `tool` if one is free and the deadline has not passed.
    pub(super) fn try_permit_call(&self, tool: &str, deadline: Deadline) -> Option<Permit<'_>> {
        if deadline.has_passed() {
            return None;
        }
        self.gate.try_enter(tool)
    }

    /// Waits for a permit to call `tool`, at most until the deadline. The owners of waiting calls take turns.
    pub(super) fn permit_call<'a>(
        &'a self,
        tool: &str,
        owner: &QuotaOwner,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Permit<'a>, Refused>> {
        self.gate.enter(tool, owner, deadline)
    }

    /// Waits for a permit for a request that is no tool call, at most until the deadline.
    pub(crate) fn permit_read<'a>(
        &'a self,
        owner: &QuotaOwner,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Permit<'a>, Refused>> {
        self.gate.enter_read(owner, deadline)
    }

    /// The statistics of the server's own queue.
    pub(super) fn stats(&self) -> QueueStats {
        self.gate.stats()
    }

    /// The circuit breaker.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// The retry budget of the server's calls.
    pub(crate) fn retries(&self) -> &RetryBudget {
        &self.retries
    }
}
