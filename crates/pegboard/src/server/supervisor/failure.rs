//! Decides what follows a failed start or a lost session: a restart, an outage with a next start, or a permanent outage.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::state::{NextState, Supervisor};
use crate::server::{
    backoff::was_healthy,
    outage::{Before, Cause, NextStart, Outage, is_crash},
    refused_credentials,
};
use pegboard_base::log_event;
use pegboard_client::{
    session::ConnectError,
    transport::{EndReason, WireEnd},
};
use pegboard_config::Probe;

/// The shortest wait of callers for a session that replaces an unusable one: the server itself is up.
const RENEWAL: Duration = Duration::from_secs(10);
/// The shortest time for which an outage is published if a call may end it, so that callers which waited for the start see it.
const MIN_OUTAGE: Duration = Duration::from_secs(1);
/// The wait before the next start after a failure that a retry alone does not mend, such as a wrong certificate, a refused token or a missing
/// program. Whoever mends it does so at the server, where nobody can tell us.
const LASTING: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Publishes the failure of a start and decides on the next one, which is rare if a retry is unlikely to help.
    pub(super) fn handle_failed_start(&mut self, error: &ConnectError) -> NextState {
        self.log_failed_start(error);
        self.parts.holders.report(|reporter| reporter.report_failed_start());
        let before = match (self.history.generation, self.plan().restart.start_wait) {
            (0, Duration::ZERO) => Before::Nothing,
            (0, _) => Before::Awaited,
            _ => Before::Ready,
        };
        let mut outage = Outage::from_start(error, before);
        if let Some(hint) = refused_credentials::hint(&self.plan().spec, &error.fault) {
            outage.hint = Some(hint);
        }
        let code = refused_credentials::code(&self.plan().spec, &error.fault);
        outage.refine(code, self.plan().spec.target.host());
        self.parts.checks.record(Some(outage.message.clone()));
        if outage.cause == Cause::NeedsAuth {
            // Another account may sign in.
            self.parts.known.forget_stored();
        }
        // Respects the server's `Retry-After`.
        let retry_after = error.retry_after().unwrap_or_default();
        if outage.is_final() {
            let cause = outage.cause;
            let next = self.after_lasting_failure(&outage, error.behind.is_some(), retry_after);
            return self.publish_outage(outage, cause, next);
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
            // A busy agent must not start a broken server with every call.
            let pause = self.history.schedule(&restart.backoff).longest_wait().max(retry_after);
            let every = self.probe_delay();
            let outage = outage.with_spent_starts(self.history.failures, every.is_some());
            let next = NextStart {
                automatic: every.map(|every| Instant::now() + every.max(pause)),
                ..NextStart::on_demand_in(pause)
            };
            return self.publish_outage(outage, cause, next);
        }
        let delay = self.history.next_wait(&restart.backoff).max(retry_after);
        if !restart.enabled {
            let next = match self.probe_delay() {
                Some(every) => NextStart {
                    automatic: Some(Instant::now() + every.max(retry_after)),
                    ..NextStart::on_demand_in(MIN_OUTAGE.max(retry_after))
                },
                None => NextStart::on_demand_in(delay.max(MIN_OUTAGE)),
            };
            return self.publish_outage(outage, cause, next);
        }
        let next = NextStart::automatic_in(delay);
        if self
            .history
            .callers_wait_until
            .is_none_or(|until| until <= Instant::now())
        {
            return self.publish_outage(outage, cause, next);
        }
        let outage = self.in_current_outage(outage, cause, next);
        self.history.last_outage = Some(outage);
        self.publish_connecting();
        NextState::Wait(next)
    }

    fn log_failed_start(&self, error: &ConnectError) {
        let (message, plan) = (error.to_string(), self.plan());
        let text = plan.spec.masker.text(&message);
        let is_repeated = |last: &Arc<Outage>| last.is_final() && last.message == message;
        // The supervisor of a server elsewhere, such as in a daemon, logs each of its starts there, and its message says when the next one is.
        let is_known = self.history.outage_began.is_some()
            && (plan.spec.target.is_supervised() || self.history.last_outage.as_ref().is_some_and(is_repeated));
        // A separate target, so that a program which displays outages itself can filter it out.
        let needs_sign_in = error.fault.needs_auth();
        match plan.spec.owner.is_some() && needs_sign_in {
            // A lasting failure is reported once, however often the start is tried.
            _ if is_known => tracing::debug!(target: "pegboard::start", error = %text, "the start failed again"),
            _ if plan.spec.is_for_questions => {
                tracing::info!(error = %text, "it opens no session for its questions; it is used without one");
            }
            // Each user has to sign in once.
            true => {
                tracing::info!(name: log_event::SIGN_IN_NEEDED, target: "pegboard::start", error = %text, "the start failed")
            }
            false if needs_sign_in => {
                tracing::warn!(name: log_event::SIGN_IN_NEEDED, target: "pegboard::start", error = %text, "the start failed");
            }
            false => {
                tracing::warn!(name: log_event::SERVER_START_FAILED, target: "pegboard::start", error = %text, "the start failed")
            }
        }
    }

    /// The next start after a failure that somebody has to mend. Only a sign-in is waited for without further starts: it starts the server itself.
    /// Of a server that was ready, another one may have asked for it, such as a proxy.
    fn after_lasting_failure(&self, outage: &Outage, is_of_supervised: bool, retry_after: Duration) -> NextStart {
        let plan = self.plan();
        let in_time = |wait: Duration| Instant::now() + wait.max(retry_after);
        // Another supervisor knows more at the next call. So does the program, which may have another credential by then.
        let is_for_calls = is_of_supervised || (outage.cause == Cause::NeedsAuth && plan.spec.credentials.is_some());
        let is_kept = plan.restart.enabled || self.probe_delay().is_some();
        let was_ready_for_all = self.history.generation > 0 && plan.spec.owner.is_none();
        let is_automatic = is_kept && (is_of_supervised || !outage.awaits_sign_in || was_ready_for_all);
        NextStart {
            automatic: is_automatic.then(|| in_time(LASTING.max(self.probe_delay().unwrap_or_default()))),
            on_demand: match (is_for_calls, is_automatic) {
                (true, _) => Some(in_time(MIN_OUTAGE)),
                (false, true) => None,
                (false, false) => Some(in_time(LASTING)),
            },
        }
    }

    /// A session has ended. Restarts the server while callers wait, if the delay before the restart is short. Otherwise publishes an outage:
    /// in a crash loop, after a long delay, or if restarts are disabled. With `for_a_call`, a call waits for the next session.
    pub(super) fn handle_lost_session(&mut self, end: &WireEnd, served: Duration, for_a_call: bool) -> NextState {
        let (next, looping) = self.decide_after_loss(end, served, for_a_call);
        let plan = self.plan();
        let reason = end.reason.to_string();
        let last_words = end
            .stderr
            .as_deref()
            .and_then(last_line)
            .map(|line| plan.spec.masker.text(line));
        let next_start = match &next {
            NextState::Connect { after, .. } => Some(*after),
            NextState::Wait(next) => next.automatic.map(|at| at.saturating_duration_since(Instant::now())),
            NextState::Idle | NextState::ConnectBehindOutage | NextState::Serve(_) | NextState::Stop => None,
        };
        tracing::warn!(
            name: log_event::SERVER_CONNECTION_LOST,
            reason = %plan.spec.masker.text(&reason),
            stderr = last_words.as_deref().map(|line| tracing::field::display(line.escape_debug())),
            next_start_in = next_start.map(|after| tracing::field::debug(Duration::from_millis(millis_up(after)))),
            "the connection was lost"
        );
        if let Some(delay) = looping {
            tracing::warn!(name: log_event::SERVER_CRASH_LOOP, next_try_in = ?delay, "the server ends again and again");
        }
        next
    }

    /// What follows the end of a session, and how long the next start waits if the server ends again and again.
    fn decide_after_loss(
        &mut self,
        end: &WireEnd,
        served: Duration,
        for_a_call: bool,
    ) -> (NextState, Option<Duration>) {
        self.history.restarts = self.history.restarts.saturating_add(1);
        self.reset_if_healthy(served);
        self.history.was_lost = true;
        let plan = self.plan();
        let (restart, outage) = (&plan.restart, Outage::from_end(end, plan.spec.is_process()));
        let is_crash = is_crash(end) && !plan.spec.target.is_supervised();
        if is_crash && self.history.crashes.record_exit(Instant::now()) {
            let delay = self.history.next_wait(&restart.backoff);
            let delay = self.history.crashes.wait(delay);
            let next = if restart.enabled {
                NextStart::automatic_in(delay)
            } else {
                NextStart {
                    automatic: self.probe_delay().map(|every| Instant::now() + every.max(delay)),
                    ..NextStart::on_demand_in(delay)
                }
            };
            return (self.publish_outage(outage, Cause::CrashLooping, next), Some(delay));
        }
        let is_wanted = restart.enabled || for_a_call || self.probe_delay().is_some();
        if let EndReason::Replaced(_) = end.reason
            && is_wanted
        {
            // Only this session was unusable: there is no reason for a backoff.
            return (self.restart(outage, Duration::ZERO, restart.wait.max(RENEWAL)), None);
        }
        if !restart.enabled {
            let next = NextStart {
                automatic: self.probe_delay().map(|every| Instant::now() + every),
                ..NextStart::on_demand_in(Duration::ZERO)
            };
            return (self.publish_outage(outage, Cause::Failed, next), None);
        }
        let delay = self.history.next_wait(&restart.backoff);
        if delay.is_zero() || delay < restart.wait {
            return (self.restart(outage, delay, restart.wait), None);
        }
        let next = NextStart::automatic_in(delay);
        (self.publish_outage(outage, Cause::RestartFailed, next), None)
    }

    /// Restarts the server while callers wait.
    fn restart(&mut self, outage: Outage, after: Duration, patience: Duration) -> NextState {
        let outage = self.in_current_outage(outage, Cause::Failed, NextStart::NEVER);
        self.history.last_outage = Some(outage);
        NextState::Connect { after, patience }
    }

    /// The delay after which a health check starts a server that no automatic restart starts; `None` if none does.
    fn probe_delay(&self) -> Option<Duration> {
        let health = self.plan().health;
        health
            .interval
            .filter(|_| health.restart && health.probe != Probe::Never)
    }

    /// Resets the restart schedule and the crash history after a healthy session.
    pub(super) fn reset_if_healthy(&mut self, served: Duration) {
        if was_healthy(served, true) {
            self.history.reset();
        }
    }
}

/// The longest line of a server's error output in the log, in bytes.
const MAX_LAST_WORDS: usize = 300;

/// The last line that says something.
fn last_line(text: &str) -> Option<&str> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(&line[..line.floor_char_boundary(MAX_LAST_WORDS)])
}

/// Whole milliseconds, so that the log shows no fractions of them.
fn millis_up(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}
