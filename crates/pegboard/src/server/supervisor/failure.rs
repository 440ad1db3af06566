//! What follows a failed start or a lost session: a restart, an outage with a next start, or an outage that lasts.

use std::time::Duration;

use tokio::time::Instant;

use super::state::{Step, Supervisor};
use crate::{
    config::Probe,
    server::{
        backoff::was_healthy,
        outage::{Cause, NextStart, Outage, is_crash},
    },
    session::ConnectError,
    transport::{EndReason, WireEnd},
};

/// How long callers wait at least for a session that takes the place of another: its server is there.
const RENEWAL: Duration = Duration::from_secs(10);
/// How long an outage is shown at least, where the next call starts the server: callers who waited must learn of it.
const MIN_OUTAGE: Duration = Duration::from_secs(1);

impl Supervisor {
    /// A start has failed: callers learn why, and it is tried again unless that cannot help.
    pub(super) fn failed(&mut self, error: &ConnectError) -> Step {
        // A target of its own: a program that shows outages itself can leave it out.
        tracing::warn!(
            target: "pegboard::start",
            error = %self.plan().spec.masker.text(&error.to_string()),
            "the start failed"
        );
        self.holders.report(|reporter| reporter.start_failed());
        // Where callers wait while starts fail, all of them are repeated.
        let is_first = self.history.generation == 0 && self.plan().restart.start_wait.is_zero();
        let outage = Outage::of_start(error, is_first);
        self.checks.record(Some(outage.message.clone()));
        if outage.is_final() {
            let cause = outage.cause;
            return self.down(outage, cause, NextStart::NEVER);
        }
        let cause = if self.history.generation > 0 {
            Cause::RestartFailed
        } else {
            Cause::Failed
        };
        let plan = self.plan();
        let restart = &plan.restart;
        self.history.failures = self.history.failures.saturating_add(1);
        if restart.max_attempts.is_some_and(|most| self.history.failures >= most) {
            let outage = outage.given_up_after(self.history.failures);
            // A busy agent must not start a broken server with every call.
            let pause = self.history.schedule(&restart.waits).longest();
            return self.down(outage, cause, NextStart::on_demand_in(pause));
        }
        // A server that says when to come back is not asked before.
        let asked_for = error.retry_after().unwrap_or_default();
        let delay = self.history.next_wait(&restart.waits).max(asked_for);
        if !restart.enabled {
            let next = match self.probe_delay() {
                Some(every) => NextStart {
                    automatic: Some(Instant::now() + every.max(asked_for)),
                    ..NextStart::on_demand_in(MIN_OUTAGE.max(asked_for))
                },
                None => NextStart::on_demand_in(delay.max(MIN_OUTAGE)),
            };
            return self.down(outage, cause, next);
        }
        let next = NextStart::automatic_in(delay);
        if self
            .history
            .callers_wait_until
            .is_none_or(|until| until <= Instant::now())
        {
            return self.down(outage, cause, next);
        }
        let outage = self.in_current_outage(outage, cause, next);
        self.history.last_outage = Some(outage);
        self.publish_connecting();
        Step::Wait(next)
    }

    /// A session has ended: the server is started again at once, or rarely when it keeps closing. With `for_a_call`, a call waits for the
    /// next session.
    pub(super) fn lost(&mut self, end: &WireEnd, served: Duration, for_a_call: bool) -> Step {
        tracing::warn!(reason = %self.plan().spec.masker.text(&end.reason.to_string()), "the connection was lost");
        self.history.restarts = self.history.restarts.saturating_add(1);
        self.reset_if_healthy(served);
        self.history.was_lost = true;
        let plan = self.plan();
        let (restart, outage) = (&plan.restart, Outage::of_end(end));
        if is_crash(end) && self.history.crashes.exited(Instant::now()) {
            let delay = self.history.next_wait(&restart.waits);
            let delay = self.history.crashes.wait(delay);
            tracing::warn!(next_try_in = ?delay, "the server ends again and again");
            let next = if restart.enabled {
                NextStart::automatic_in(delay)
            } else {
                NextStart {
                    automatic: self.probe_delay().map(|every| Instant::now() + every.max(delay)),
                    ..NextStart::on_demand_in(delay)
                }
            };
            return self.down(outage, Cause::CrashLooping, next);
        }
        let is_wanted = restart.enabled || for_a_call || self.probe_delay().is_some();
        if let EndReason::Replaced(_) = end.reason
            && is_wanted
        {
            // Only this session was of no use: there is no reason to wait before the next.
            return self.restart(outage, Duration::ZERO, restart.wait.max(RENEWAL));
        }
        if !restart.enabled {
            let next = NextStart {
                automatic: self.probe_delay().map(|every| Instant::now() + every),
                ..NextStart::on_demand_in(Duration::ZERO)
            };
            return self.down(outage, Cause::Failed, next);
        }
        let delay = self.history.next_wait(&restart.waits);
        if delay.is_zero() || delay < restart.wait {
            return self.restart(outage, delay, restart.wait);
        }
        self.down(outage, Cause::RestartFailed, NextStart::automatic_in(delay))
    }

    /// Starts the server again while callers wait.
    fn restart(&mut self, outage: Outage, after: Duration, patience: Duration) -> Step {
        let outage = self.in_current_outage(outage, Cause::Failed, NextStart::NEVER);
        self.history.last_outage = Some(outage);
        Step::Connect { after, patience }
    }

    /// How long after a failure a lost server is looked for by a probe, where no restart is due.
    fn probe_delay(&self) -> Option<Duration> {
        let health = self.plan().health;
        let is_probed = health.restarts && health.probe != Probe::Never;
        // What has never been ready is left to the callers.
        health.every.filter(|_| is_probed && self.history.generation > 0)
    }

    /// A session that was healthy lets what happened before it be forgotten.
    pub(super) fn reset_if_healthy(&mut self, served: Duration) {
        if was_healthy(served, true) {
            self.history.reset();
        }
    }
}
