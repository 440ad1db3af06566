//! A circuit breaker: after enough failures callers are turned away at once, and a few probes find out when that can end.
//!
//! It never looks at a clock; whoever asks says what time it is.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::sync::{Mutex, MutexGuard};

/// What callers are told to wait when all probes are under way and none has come back.
const PROBING: Duration = Duration::from_secs(1);

/// When a breaker opens and how it closes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerConfig {
    /// It never opens.
    Off,
    On(Rule),
}

/// The numbers of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// It opens after so many failures in a row.
    pub(crate) failures: u32,
    /// It also opens at a failure when more than half of so many last verdicts are failures; zero for never.
    pub(crate) half_of: usize,
    /// How long it stays open.
    pub(crate) open_for: Duration,
    /// How many probes may then be under way at once.
    pub(crate) probes: u32,
    /// How many of them must succeed before it closes.
    pub(crate) successes: u32,
}

impl Rule {
    /// The numbers of minion: five in a row or more than half of ten, 30 seconds, three probes, two successes.
    #[cfg(test)]
    pub(crate) fn minion() -> Self {
        Self {
            failures: 5,
            half_of: 10,
            open_for: Duration::from_secs(30),
            probes: 3,
            successes: 2,
        }
    }

    /// The nearest numbers that make sense: nothing that must happen never, nothing that takes longer than an hour.
    fn sensible(self) -> Self {
        Self {
            failures: self.failures.max(1),
            half_of: self.half_of.min(1000),
            open_for: self.open_for.min(Duration::from_secs(3600)),
            probes: self.probes.max(1),
            successes: self.successes.max(1),
        }
    }
}

impl Default for Rule {
    /// Five failures in a row, 30 seconds, one probe.
    fn default() -> Self {
        Self {
            failures: 5,
            half_of: 0,
            open_for: Duration::from_secs(30),
            probes: 1,
            successes: 1,
        }
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self::On(Rule::default())
    }
}

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
    pub(crate) fn new(config: BreakerConfig) -> Self {
        Self(match config {
            BreakerConfig::Off => None,
            BreakerConfig::On(rule) => Some(Arc::new(Shared {
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
                    retry_after: PROBING.min(shared.rule.open_for),
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
                if rule.half_of > 0 {
                    verdicts.truncate(rule.half_of - 1);
                    verdicts.push_front(failed.is_some());
                }
                let bad = verdicts.iter().filter(|bad| **bad).count();
                *failures_in_a_row >= rule.failures
                    || (rule.half_of > 0 && verdicts.len() == rule.half_of && 2 * bad > rule.half_of)
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
            self.turn(State::Open {
                until: now + rule.open_for,
            });
        }
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
