//! Decides what follows a failed start or a lost session: a restart, an outage with a next start, or a permanent outage.

use std::time::Duration;

use tokio::time::Instant;

use super::state::{Step, Supervisor};
use crate::{
    config::Probe,
    server::{
        backoff::was_healthy,
        outage::{Cause, NextStart, Outage, is_crash},
        refused_credentials,
    },
    session::ConnectError,
    transport::{EndReason, WireEnd},
};

/// The shortest wait of callers for a session that replaces an unusable one: the server itself is up.
const RENEWAL: Duration = Duration::from_secs(10);
/// The shortest time for which an outage is published if a call may end it, so that callers which waited for the start see it.
const MIN_OUTAGE: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Publishes the failure of a start and decides on the next one. There is none if a retry cannot help.
    pub(super) fn failed(&mut self, error: &ConnectError) -> Step {
        let (text, spec) = (error.to_string(), &self.plan().spec);
        let text = spec.masker.text(&text);
        // A separate target, so that a program which displays outages itself can filter it out.
        match spec.owner.is_some() && error.fault.needs_auth() {
            // Each user has to sign in once.
            true => tracing::info!(target: "pegboard::start", error = %text, "the start failed"),
            false => tracing::warn!(target: "pegboard::start", error = %text, "the start failed"),
        }
        self.holders.report(|reporter| reporter.start_failed());
        // With `start_wait`, all first starts are retried.
        let is_first = self.history.generation == 0 && self.plan().restart.start_wait.is_zero();
        let mut outage = Outage::of_start(error, is_first);
        if let Some(hint) = refused_credentials::hint(&self.plan().spec, error) {
            outage.hint = Some(hint);
        }
        self.checks.record(Some(outage.message.clone()));
        if outage.is_final() {
            let cause = outage.cause;
            // At the next call, the program may have another credential.
            let next = if cause == Cause::NeedsAuth && self.plan().spec.credentials.is_some() {
                NextStart::on_demand_in(MIN_OUTAGE)
            } else {
                NextStart::NEVER
            };
            return self.down(outage, cause, next);
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
            let pause = self.history.schedule(&restart.backoff).longest();
            return self.down(outage, cause, NextStart::on_demand_in(pause));
        }
        // Respects the server's `Retry-After`.
        let retry_after = error.retry_after().unwrap_or_default();
        let delay = self.history.next_wait(&restart.backoff).max(retry_after);
        if !restart.enabled {
            let next = match self.probe_delay() {
                Some(every) => NextStart {
                    automatic: Some(Instant::now() + every.max(retry_after)),
                    ..NextStart::on_demand_in(MIN_OUTAGE.max(retry_after))
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

    /// A session has ended. Restarts the server while callers wait, if the delay before the restart is short. Otherwise publishes an outage:
    /// in a crash loop, after a long delay, or if restarts are disabled. With `for_a_call`, a call waits for the next session.
    pub(super) fn lost(&mut self, end: &WireEnd, served: Duration, for_a_call: bool) -> Step {
        tracing::warn!(reason = %self.plan().spec.masker.text(&end.reason.to_string()), "the connection was lost");
        self.history.restarts = self.history.restarts.saturating_add(1);
        self.reset_if_healthy(served);
        self.history.was_lost = true;
        let plan = self.plan();
        let (restart, outage) = (&plan.restart, Outage::of_end(end));
        let is_crash = is_crash(end) && !plan.spec.target.is_supervised();
        if is_crash && self.history.crashes.exited(Instant::now()) {
            let delay = self.history.next_wait(&restart.backoff);
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
            // Only this session was unusable: there is no reason for a backoff.
            return self.restart(outage, Duration::ZERO, restart.wait.max(RENEWAL));
        }
        if !restart.enabled {
            let next = NextStart {
                automatic: self.probe_delay().map(|every| Instant::now() + every),
                ..NextStart::on_demand_in(Duration::ZERO)
            };
            return self.down(outage, Cause::Failed, next);
        }
        let delay = self.history.next_wait(&restart.backoff);
        if delay.is_zero() || delay < restart.wait {
            return self.restart(outage, delay, restart.wait);
        }
        self.down(outage, Cause::RestartFailed, NextStart::automatic_in(delay))
    }

    /// Restarts the server while callers wait.
    fn restart(&mut self, outage: Outage, after: Duration, patience: Duration) -> Step {
        let outage = self.in_current_outage(outage, Cause::Failed, NextStart::NEVER);
        self.history.last_outage = Some(outage);
        Step::Connect { after, patience }
    }

    /// The delay after which a health check starts a lost server whose automatic restarts are disabled; `None` if none does.
    fn probe_delay(&self) -> Option<Duration> {
        let health = self.plan().health;
        let is_probed = health.restart && health.probe != Probe::Never;
        // A server that has never been ready is started by calls only.
        health.interval.filter(|_| is_probed && self.history.generation > 0)
    }

    /// Resets the restart schedule and the crash history after a healthy session.
    pub(super) fn reset_if_healthy(&mut self, served: Duration) {
        if was_healthy(served, true) {
            self.history.reset();
        }
    }
}
