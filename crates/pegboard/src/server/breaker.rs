//! A circuit breaker: after enough failures calls fail at once, until a few probes succeed.
//!
//! Callers pass the time in, except to the methods that say `now` in their name.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::Instant;

use pegboard_base::{
    log_event,
    name::ServerName,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use pegboard_config::{BreakerPolicy, BreakerRule as Rule};

/// The `retry_after` of calls that are refused while all probes are in flight.
const PROBING: Duration = Duration::from_secs(1);
/// Attempts that were in flight together and fail within this time count as one failure, as do all that do not reach the server within it: a
/// server that is restarted is away for a moment.
const ONE_OUTAGE: Duration = Duration::from_millis(500);
/// How long the breaker stays open at first if the server was not reached, and the most after probes that did not reach it either. Such a
/// probe costs the server nothing, and a caller gets through within a second of the server's return.
const UNREACHABLE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(1));

/// The circuit breaker of one server. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Breaker(Arc<BreakerInner>);

/// The breaker is open: the call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many attempts have failed; the next one is made in {} s", .retry_after.as_secs_f64().ceil())]
pub(crate) struct BreakerOpen {
    /// How long to wait before a retry. Never longer than the breaker stays open.
    pub(crate) retry_after: Duration,
}

/// The state of a breaker, for status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerState {
    /// All attempts are allowed.
    Closed,
    /// No attempt is allowed.
    Open { retry_after: Duration },
    /// A few probes are allowed.
    HalfOpen,
}

impl BreakerState {
    /// The name of the state in status rows.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

impl Breaker {
    /// A closed breaker. The log names the server.
    pub(crate) fn new(server: &ServerName, policy: BreakerPolicy) -> Self {
        let circuit = Circuit {
            rule: rule(policy),
            period: 0,
            state: CircuitState::default(),
        };
        Self(Arc::new(BreakerInner {
            server: server.clone(),
            fast_path: AtomicU64::new(circuit.fast_path()),
            circuit: Mutex::new(circuit),
        }))
    }

    /// Applies another policy and closes the breaker.
    pub(crate) fn follow(&self, policy: BreakerPolicy) {
        self.0.change(|circuit| {
            circuit.rule = rule(policy);
            circuit.enter(CircuitState::default());
        });
    }

    /// Requests permission for an attempt. Report its outcome with the ticket; dropping the ticket reports nothing.
    pub(crate) fn allow(&self, now: Instant) -> Result<Ticket, BreakerOpen> {
        if let Some(period) = self.0.fast_path_period() {
            return Ok(Ticket(Admission::Passed { period, failures: 0 }));
        }
        let (period, permitted) = self
            .0
            .change(|circuit| circuit.allow(now).map(|permitted| (circuit.period, permitted)))?;
        Ok(Ticket(match permitted {
            Permitted::Probe => {
                let breaker = self.0.clone();
                Admission::Probe(Some(ProbePermit { period, breaker }))
            }
            Permitted::After { failures } => Admission::Passed { period, failures },
        }))
    }

    /// Like [`Breaker::allow`] with the current time, which is read only if failures have been counted.
    pub(crate) fn allow_now(&self) -> Result<Ticket, BreakerOpen> {
        match self.0.fast_path_period() {
            Some(period) => Ok(Ticket(Admission::Passed { period, failures: 0 })),
            None => self.allow(Instant::now()),
        }
    }

    /// Reports that the attempt succeeded.
    pub(crate) fn report_success(&self, ticket: Ticket) {
        self.report(ticket, Outcome::Succeeded);
    }

    /// Reports that the attempt failed.
    pub(crate) fn report_failure(&self, ticket: Ticket, now: Instant) {
        self.report(ticket, Outcome::Failed(now));
    }

    /// Reports that the attempt did not reach the server.
    pub(crate) fn report_unreachable(&self, ticket: Ticket, now: Instant) {
        self.report(ticket, Outcome::Unreachable(now));
    }

    fn report(&self, mut ticket: Ticket, outcome: Outcome) {
        let (period, failures) = match &mut ticket.0 {
            // A success cannot change the circuit here.
            Admission::Passed { period, .. }
                if outcome == Outcome::Succeeded && self.0.fast_path_period() == Some(*period) =>
            {
                return;
            }
            Admission::Passed { period, failures } => (*period, *failures),
            Admission::Probe(probe) => match probe.take() {
                Some(probe) => (probe.period, 0),
                None => return,
            },
        };
        self.0.change(|circuit| {
            if circuit.period == period {
                circuit.record(outcome, failures);
            }
        });
    }

    /// The current state.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        self.0.change(|circuit| {
            circuit.half_open_if_due(now);
            match circuit.state {
                CircuitState::Closed { .. } => BreakerState::Closed,
                CircuitState::Open { until, .. } => BreakerState::Open {
                    retry_after: until.saturating_duration_since(now),
                },
                CircuitState::HalfOpen { .. } => BreakerState::HalfOpen,
            }
        })
    }

    /// Closes the breaker, because the server's settings changed or an operator reconnects it.
    pub(crate) fn reset(&self) {
        self.0.change(|circuit| circuit.enter(CircuitState::default()));
    }
}

fn rule(policy: BreakerPolicy) -> Option<Rule> {
    match policy {
        BreakerPolicy::Off => None,
        BreakerPolicy::On(rule) => Some(rule.clamped()),
    }
}

/// Permission for one attempt.
#[derive(Debug)]
#[must_use = "a ticket that is dropped says nothing about the attempt"]
pub(crate) struct Ticket(Admission);

#[derive(Debug)]
enum Admission {
    /// Given while the breaker is closed, after so many failures in a row.
    Passed { period: u64, failures: u32 },
    /// One of the few probes. `None` once its outcome is reported.
    Probe(Option<ProbePermit>),
}

/// A probe in flight. Its outcome counts only in the period in which it was permitted.
#[derive(Debug)]
struct ProbePermit {
    period: u64,
    breaker: Arc<BreakerInner>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Admission::Probe(Some(probe)) = &self.0 {
            probe.breaker.change(|circuit| {
                if circuit.period == probe.period
                    && let CircuitState::HalfOpen { running, .. } = &mut circuit.state
                {
                    *running = running.saturating_sub(1);
                }
            });
        }
    }
}

#[derive(Debug)]
struct BreakerInner {
    server: ServerName,
    /// The period plus one while only a failure could change the circuit; zero otherwise. Every call reads this, and a call that does not
    /// fail takes the lock only if it is zero.
    fast_path: AtomicU64,
    circuit: Mutex<Circuit>,
}

impl BreakerInner {
    fn fast_path_period(&self) -> Option<u64> {
        self.fast_path.load(Ordering::Acquire).checked_sub(1)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Circuit) -> T) -> T {
        let mut circuit = self.circuit.lock();
        let was_closed = circuit.is_closed();
        let changed = change(&mut circuit);
        let is_closed = circuit.is_closed();
        self.fast_path.store(circuit.fast_path(), Ordering::Release);
        drop(circuit);
        // Probes that fail open it again, which is not told: it was never closed.
        match (was_closed, is_closed) {
            (true, false) => {
                tracing::warn!(name: log_event::BREAKER_OPENED, server = %self.server, "too many calls have failed: further ones fail at once until one succeeds");
            }
            (false, true) => {
                tracing::info!(name: log_event::BREAKER_CLOSED, server = %self.server, "calls are made again");
            }
            (true, true) | (false, false) => {}
        }
        changed
    }
}

#[derive(Debug)]
struct Circuit {
    /// `None` while the breaker is disabled.
    rule: Option<Rule>,
    /// Counts the changes of state.
    period: u64,
    state: CircuitState,
}

/// Each state has its own counters, so that none can carry over into the next.
#[derive(Debug)]
enum CircuitState {
    Closed {
        failures_in_a_row: u32,
        /// When the last of the failures in a row happened.
        last_failure: Option<Instant>,
        /// The last outcomes, `true` for a failure. At most as many as the rule covers.
        outcomes: VecDeque<bool>,
    },
    Open {
        until: Instant,
        opened: Opened,
    },
    HalfOpen {
        running: u32,
        successes: u32,
        opened: Opened,
    },
}

/// Why the breaker is open.
#[derive(Debug, Clone, Copy)]
enum Opened {
    ByFailures,
    /// The server was not reached. The breaker stays open for `pause`.
    Unreachable {
        pause: Duration,
    },
}

/// The outcome of an attempt, with the time of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Succeeded,
    Failed(Instant),
    Unreachable(Instant),
}

/// A permitted attempt.
#[derive(Debug, Clone, Copy)]
enum Permitted {
    Probe,
    /// An ordinary attempt, after so many failures in a row.
    After {
        failures: u32,
    },
}

impl Default for CircuitState {
    fn default() -> Self {
        Self::Closed {
            failures_in_a_row: 0,
            last_failure: None,
            outcomes: VecDeque::new(),
        }
    }
}

impl Circuit {
    fn is_closed(&self) -> bool {
        matches!(self.state, CircuitState::Closed { .. })
    }

    fn enter(&mut self, state: CircuitState) {
        self.period += 1;
        self.state = state;
    }

    /// See [`BreakerInner::fast_path`].
    fn fast_path(&self) -> u64 {
        let keeps_no_outcomes = self.rule.is_none_or(|rule| rule.percent == 0);
        match self.state {
            CircuitState::Closed {
                failures_in_a_row: 0, ..
            } if keeps_no_outcomes => self.period + 1,
            CircuitState::Closed { .. } | CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => 0,
        }
    }

    /// Changes from open to half open once the open time has passed.
    fn half_open_if_due(&mut self, now: Instant) {
        if let CircuitState::Open { until, opened } = self.state
            && until <= now
        {
            self.enter(CircuitState::HalfOpen {
                running: 0,
                successes: 0,
                opened,
            });
        }
    }

    fn allow(&mut self, now: Instant) -> Result<Permitted, BreakerOpen> {
        self.half_open_if_due(now);
        let Some(rule) = self.rule else {
            return Ok(Permitted::After { failures: 0 });
        };
        match &mut self.state {
            CircuitState::Closed { failures_in_a_row, .. } => Ok(Permitted::After {
                failures: *failures_in_a_row,
            }),
            CircuitState::Open { until, .. } => Err(BreakerOpen {
                retry_after: until.saturating_duration_since(now),
            }),
            CircuitState::HalfOpen { running, .. } if *running >= rule.probes => Err(BreakerOpen {
                retry_after: PROBING.min(rule.open),
            }),
            CircuitState::HalfOpen { running, .. } => {
                *running += 1;
                Ok(Permitted::Probe)
            }
        }
    }

    /// Records the outcome of an attempt that was permitted after `failures` failures in a row.
    fn record(&mut self, outcome: Outcome, failures: u32) {
        let Some(rule) = self.rule else { return };
        let trips = match &mut self.state {
            CircuitState::Closed {
                failures_in_a_row,
                last_failure,
                outcomes,
            } => {
                let is_recent = |now| last_failure.is_some_and(|at| now < at + ONE_OUTAGE);
                let failed_at = match outcome {
                    Outcome::Succeeded => None,
                    // Attempts that were in flight together fail together.
                    Outcome::Failed(now) if *failures_in_a_row > failures && is_recent(now) => return,
                    Outcome::Unreachable(now) if is_recent(now) => return,
                    Outcome::Failed(now) | Outcome::Unreachable(now) => Some(now),
                };
                *last_failure = failed_at;
                *failures_in_a_row = if failed_at.is_some() { *failures_in_a_row + 1 } else { 0 };
                if rule.percent > 0 {
                    outcomes.truncate(rule.of - 1);
                    outcomes.push_front(failed_at.is_some());
                }
                let bad = outcomes.iter().filter(|bad| **bad).count();
                *failures_in_a_row >= rule.failures
                    || (rule.percent > 0 && outcomes.len() == rule.of && 100 * bad > rule.percent as usize * rule.of)
            }
            CircuitState::HalfOpen { running, successes, .. } => {
                *running = running.saturating_sub(1);
                if outcome == Outcome::Succeeded {
                    *successes += 1;
                    if *successes >= rule.successes {
                        self.enter(CircuitState::default());
                    }
                    return;
                }
                true
            }
            // No ticket is given while the breaker is open, so none of this period can be reported.
            CircuitState::Open { .. } => false,
        };
        if trips {
            self.open(&rule, outcome);
        }
    }

    fn open(&mut self, rule: &Rule, outcome: Outcome) {
        let (now, pause, opened) = match (outcome, &self.state) {
            (Outcome::Succeeded, _) => return,
            (Outcome::Failed(now), _) => (now, rule.open, Opened::ByFailures),
            (Outcome::Unreachable(now), state) => {
                let pause = match state {
                    CircuitState::HalfOpen {
                        opened: Opened::Unreachable { pause },
                        ..
                    } => (*pause * 2).min(UNREACHABLE.1),
                    CircuitState::Closed { .. } | CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => {
                        UNREACHABLE.0
                    }
                };
                (now, pause.min(rule.open), Opened::Unreachable { pause })
            }
        };
        self.enter(CircuitState::Open {
            until: now + pause,
            opened,
        });
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
