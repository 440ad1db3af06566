//! [`Supervisor`]: its data, the steps between its states, and how it publishes phases.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use pegboard_base::timestamp::Timestamp;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{command::Command, history::History};
use crate::server::{
    connection_plan::ConnectionPlan,
    link_parts::LinkParts,
    outage::{Cause, NextStart, Outage, OutageStart},
    phase::{Attempt, Live, Phase},
    revision::Revision,
};
use pegboard_client::{
    session::ListScope,
    transport::{EndReason, WireEnd},
};
use pegboard_tools::catalog::{Catalog, store::Freshness};

/// The owner of a link's session.
pub(in crate::server) struct Supervisor {
    /// What it shares with the link.
    pub(in crate::server) parts: LinkParts,
    pub(in crate::server) list_scope: ListScope,
    pub(in crate::server) phase: watch::Sender<Phase>,
    pub(in crate::server) commands: mpsc::Receiver<Command>,
    /// Incremented with every published phase.
    pub(in crate::server) revision: Arc<Revision>,
    /// Numbers the sessions of the whole board.
    pub(in crate::server) generations: Arc<AtomicU64>,
    pub(in crate::server) stop: CancellationToken,
    /// Bounds the servers of the board that start at the same time.
    pub(in crate::server) starts: Arc<Semaphore>,
    /// Bounds the processes of the board.
    pub(in crate::server) processes: Arc<Semaphore>,
    /// The permit of this server's process.
    pub(in crate::server) process: Option<OwnedSemaphorePermit>,
    pub(in crate::server) history: History,
    /// Closes sessions that were given up before the next start. A server that is a process is not started again before they have ended.
    pub(in crate::server) closing: TaskTracker,
    /// The tasks that must end before the link counts as closed.
    pub(in crate::server) tasks: TaskTracker,
}

impl Drop for Supervisor {
    /// Corrects the phase of a supervisor that was dropped before it could stop: the runtime of its task has ended, or it panicked. Callers of
    /// another runtime would take a server for ready that nothing reads from any more. No event is published, because this may be the end of
    /// the program.
    fn drop(&mut self) {
        let last = self.phase.borrow().clone();
        if matches!(last, Phase::Closed) {
            return;
        }
        self.show(Phase::Down(Outage::runtime_ended().into()));
        if let Some(live) = last.as_live() {
            live.session.abort(WireEnd::new(EndReason::Closed));
        }
    }
}

/// The next state of a supervisor.
pub(super) enum NextState {
    /// Wait for a caller.
    Idle,
    /// Start after a delay. Callers wait, at most for `patience`.
    Connect {
        after: Duration,
        patience: Duration,
    },
    /// Start in the background while callers see an outage.
    ConnectBehindOutage,
    Serve(Live),
    /// Wait for the next start.
    Wait(NextStart),
    Stop,
}

impl Supervisor {
    pub(super) fn plan(&self) -> Arc<ConnectionPlan> {
        self.parts.plan()
    }

    /// Records the catalogue and reports how it differs from the previous one.
    pub(super) fn learn(&self, catalog: &Arc<Catalog>, freshness: Freshness) {
        if let Some(diff) = self.parts.known.learn(catalog, freshness) {
            self.parts
                .holders
                .report(|reporter| reporter.report_catalog_change(&diff));
        }
    }

    /// A start by an operator: earlier failures do not count.
    pub(super) fn reconnect(&mut self) -> NextState {
        self.history.reset();
        self.history.was_lost = false;
        self.connect()
    }

    /// A start that callers wait for.
    pub(super) fn connect(&mut self) -> NextState {
        let start_wait = self.plan().restart.start_wait;
        self.history.callers_wait_until = (!start_wait.is_zero()).then(|| Instant::now() + start_wait);
        NextState::Connect {
            after: Duration::ZERO,
            patience: self.patience().max(start_wait),
        }
    }

    /// How long callers wait for a start. Restarts have a limit of their own.
    pub(super) fn patience(&self) -> Duration {
        let plan = self.plan();
        if self.history.was_lost {
            plan.restart.wait
        } else {
            plan.spec.limits.connect_timeout
        }
    }

    /// Makes a failure part of the current outage, which begins with it if there is none.
    pub(super) fn in_current_outage(&mut self, outage: Outage, cause: Cause, next: NextStart) -> Arc<Outage> {
        let began = *self.history.outage_began.get_or_insert_with(OutageStart::now);
        Arc::new(outage.with(cause, self.history.restarts, began, next))
    }

    /// Publishes an outage.
    pub(super) fn publish_outage(&mut self, outage: Outage, cause: Cause, next: NextStart) -> NextState {
        self.history.callers_wait_until = None;
        let outage = self.in_current_outage(outage, cause, next);
        self.history.last_outage = Some(outage.clone());
        self.publish(Phase::Down(outage));
        NextState::Wait(next)
    }

    /// Publishes a phase and its events as one step: a reader of [`Link::phase`](crate::server::link::Link::phase) that sees the new phase
    /// finds its events sent, and a subscriber that receives the events finds the new phase.
    pub(super) fn publish(&self, phase: Phase) {
        let ready = phase.as_live().map(|live| live.ready.clone());
        let published = phase.clone();
        let old = {
            let mut holders = self.parts.holders.by_number.lock();
            let old = self.show(phase);
            holders
                .values_mut()
                .for_each(|holder| holder.reporter.report_phase(&published));
            self.parts.ready.store(ready);
            old
        };
        // After the lock, because a session may be dropped with it.
        drop(old);
    }

    /// Sets the phase and increments the revision as one step: a reader that sees the new phase also sees the new revision, and uses no
    /// outdated snapshot. Clears `ready`, so that calls read the phase until `ready` is set again. Returns the old phase.
    fn show(&self, mut phase: Phase) -> Phase {
        self.phase.send_modify(|shown| {
            std::mem::swap(shown, &mut phase);
            self.parts.ready.store(None);
            self.revision.bump();
        });
        phase
    }

    pub(super) fn publish_connecting(&self) {
        let since = match &*self.phase.borrow() {
            Phase::Connecting(attempt) => attempt.since,
            _ => Timestamp::now(),
        };
        self.publish(Phase::Connecting(Attempt {
            since,
            after: self.history.last_outage.clone(),
            restarts: self.history.restarts,
        }));
    }

    /// Fails the callers that wait for the start in flight. They see why the previous start failed, or that this one takes too long.
    pub(super) fn fail_waiting_callers(&mut self) {
        let failed = match self.history.callers_wait_until.take() {
            Some(_) if self.history.failures > 0 => self.history.last_outage.as_deref().cloned(),
            _ => None,
        };
        let outage = match failed {
            Some(outage) => Arc::new(outage.with_next(NextStart::NEVER)),
            None => self.in_current_outage(Outage::still_starting(), Cause::StillStarting, NextStart::NEVER),
        };
        self.publish(Phase::Down(outage));
    }
}
