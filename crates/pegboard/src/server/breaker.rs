//! A circuit breaker: after enough failures callers are turned away at once, and a few probes find out when that can end.
//!
//! It never looks at a clock; whoever asks says what time it is.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    config::{BreakerPolicy, BreakerRule as Rule},
    sync::{Mutex, MutexGuard},
};

/// What callers are told to wait when all probes are under way and none has come back.
const PROBING: Duration = Duration::from_secs(1);

/// The breaker of one server. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Breaker(Option<Arc<Shared>>);

/// The breaker is open. Callers fail now and may come back later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many attempts have failed; the next one is made in {} s", .retry_after.as_secs_f64().ceil())]
pub(crate) struct Open {
    /// When it is worth asking again. Never longer than the breaker stays open.
    pub(crate) retry_after: Duration,
}

/// What a breaker looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerState {
    /// Everybody is let through.
    Closed,
    /// Nobody is.
    Open { retry_after: Duration },
    /// A few are, to see how they fare.
    HalfOpen,
}

impl BreakerState {
    /// The word for it in status.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

impl Breaker {
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self(match policy {
            BreakerPolicy::Off => None,
            BreakerPolicy::On(rule) => Some(Arc::new(Shared {
                rule: rule.sensible(),
                circuit: Mutex::default(),
            })),
        })
    }

    /// Asks to make an attempt. Its outcome is told with the ticket; a ticket that is dropped instead says nothing.
    pub(crate) fn allow(&self, now: Instant) -> Result<Ticket, Open> {
        let Some(shared) = &self.0 else {
            return Ok(Ticket(None));
        };
        let mut circuit = shared.lock();
        circuit.wake(now);
        match &mut circuit.state {
            State::Closed { .. } => {}
            State::Open { until } => {
                return Err(Open {
                    retry_after: until.saturating_duration_since(now),
                });
            }
            State::HalfOpen { running, .. } if *running >= shared.rule.probes => {
                return Err(Open {
                    retry_after: PROBING.min(shared.rule.open),
                });
            }
            State::HalfOpen { running, .. } => *running += 1,
        }
        Ok(Ticket(Some(Attempt {
            period: circuit.period,
            breaker: shared.clone(),
        })))
    }

    /// The attempt came through.
    pub(crate) fn success(&self, ticket: Ticket) {
        ticket.settle(None);
    }

    /// The attempt failed.
    pub(crate) fn failure(&self, ticket: Ticket, now: Instant) {
        ticket.settle(Some(now));
    }

    /// What it looks like now.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        let Some(shared) = &self.0 else {
            return BreakerState::Closed;
        };
        let mut circuit = shared.lock();
        circuit.wake(now);
        match circuit.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { until } => BreakerState::Open {
                retry_after: until.saturating_duration_since(now),
            },
            State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Closes it, because somebody has changed the server's settings or asks for it by hand.
    pub(crate) fn reset(&self) {
        if let Some(shared) = &self.0 {
            shared.lock().turn(State::default());
        }
    }
}

/// Leave to make one attempt.
#[derive(Debug)]
#[must_use = "a ticket that is dropped says nothing about the attempt"]
pub(crate) struct Ticket(Option<Attempt>);

#[derive(Debug)]
struct Attempt {
    /// The period it was made in. What it finds out counts in no other.
    period: u64,
    breaker: Arc<Shared>,
}

impl Ticket {
    /// Gives the verdict: failed at that time, or not.
    fn settle(mut self, failed: Option<Instant>) {
        if let Some(attempt) = self.0.take() {
            let rule = attempt.breaker.rule;
            let mut circuit = attempt.breaker.lock();
            if circuit.period == attempt.period {
                circuit.verdict(&rule, failed);
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(attempt) = self.0.take() {
            let mut circuit = attempt.breaker.lock();
            if circuit.period == attempt.period
                && let State::HalfOpen { running, .. } = &mut circuit.state
            {
                *running = running.saturating_sub(1);
            }
        }
    }
}

#[derive(Debug)]
struct Shared {
    rule: Rule,
    circuit: Mutex<Circuit>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Circuit {
    /// Counts the changes of state.
    period: u64,
    state: State,
}

/// Each state has its own counters, so that none can carry over into the next.
#[derive(Debug)]
enum State {
    Closed {
        failures_in_a_row: u32,
        /// The last verdicts, `true` for a failure. Never more than the rule looks at.
        verdicts: VecDeque<bool>,
    },
    Open {
        until: Instant,
    },
    HalfOpen {
        running: u32,
        successes: u32,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Closed {
            failures_in_a_row: 0,
            verdicts: VecDeque::new(),
        }
    }
}

impl Circuit {
    fn turn(&mut self, state: State) {
        self.period += 1;
        self.state = state;
    }

    /// Goes from open to half open when it is time.
    fn wake(&mut self, now: Instant) {
        if matches!(self.state, State::Open { until } if until <= now) {
            self.turn(State::HalfOpen {
                running: 0,
                successes: 0,
            });
        }
    }

    fn verdict(&mut self, rule: &Rule, failed: Option<Instant>) {
        let trips = match &mut self.state {
            State::Closed {
                failures_in_a_row,
                verdicts,
            } => {
                *failures_in_a_row = if failed.is_some() { *failures_in_a_row + 1 } else { 0 };
                if rule.percent > 0 {
                    verdicts.truncate(rule.of - 1);
                    verdicts.push_front(failed.is_some());
                }
                let bad = verdicts.iter().filter(|bad| **bad).count();
                *failures_in_a_row >= rule.failures
                    || (rule.percent > 0 && verdicts.len() == rule.of && 100 * bad > rule.percent as usize * rule.of)
            }
            State::HalfOpen { running, successes } => {
                *running = running.saturating_sub(1);
                if failed.is_none() {
                    *successes += 1;
                    if *successes >= rule.successes {
                        self.turn(State::default());
                    }
                    return;
                }
                true
            }
            // No ticket is given while it is open, so none of this period can come back.
            State::Open { .. } => false,
        };
        if let (true, Some(now)) = (trips, failed) {
            self.turn(State::Open { until: now + rule.open });
        }
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
