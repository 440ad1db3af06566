//! A circuit breaker: after enough failures callers are turned away at once, and a few probes find out when that can end.
//!
//! It looks at a clock only where it is asked about this very moment; otherwise whoever asks says what time it is.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    config::{BreakerPolicy, BreakerRule as Rule},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// What callers are told to wait when all probes are under way and none has come back.
const PROBING: Duration = Duration::from_secs(1);

/// The breaker of one server. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Breaker(Arc<BreakerInner>);

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
        let circuit = Circuit {
            rule: rule(policy),
            period: 0,
            state: CircuitState::default(),
        };
        Self(Arc::new(BreakerInner {
            calm: AtomicU64::new(circuit.calm()),
            circuit: Mutex::new(circuit),
        }))
    }

    /// Follows another policy from now on, and forgets what was.
    pub(crate) fn follow(&self, policy: BreakerPolicy) {
        self.0.change(|circuit| {
            circuit.rule = rule(policy);
            circuit.enter(CircuitState::default());
        });
    }

    /// Asks to make an attempt. Its outcome is told with the ticket; a ticket that is dropped instead says nothing.
    pub(crate) fn allow(&self, now: Instant) -> Result<Ticket, Open> {
        if let Some(period) = self.0.calm_period() {
            return Ok(Ticket(Admission::Passed { period }));
        }
        let given = self.0.change(|circuit| circuit.allow(now));
        given.map(|(period, is_probe)| {
            Ticket(if is_probe {
                let breaker = self.0.clone();
                Admission::Probe(Some(ProbePermit { period, breaker }))
            } else {
                Admission::Passed { period }
            })
        })
    }

    /// Asks to make an attempt at this moment. While all is well nobody looks at a clock.
    pub(crate) fn allow_now(&self) -> Result<Ticket, Open> {
        match self.0.calm_period() {
            Some(period) => Ok(Ticket(Admission::Passed { period })),
            None => self.allow(Instant::now()),
        }
    }

    /// The attempt came through.
    pub(crate) fn success(&self, ticket: Ticket) {
        self.settle(ticket, None);
    }

    /// The attempt failed.
    pub(crate) fn failure(&self, ticket: Ticket, now: Instant) {
        self.settle(ticket, Some(now));
    }

    /// Gives the verdict: failed at that time, or not.
    fn settle(&self, mut ticket: Ticket, failed: Option<Instant>) {
        let period = match &mut ticket.0 {
            // One more success changes nothing.
            Admission::Passed { period } if failed.is_none() && self.0.calm_period() == Some(*period) => return,
            Admission::Passed { period } => *period,
            Admission::Probe(probe) => match probe.take() {
                Some(probe) => probe.period,
                None => return,
            },
        };
        self.0.change(|circuit| {
            if circuit.period == period {
                circuit.verdict(failed);
            }
        });
    }

    /// What it looks like now.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        self.0.change(|circuit| {
            circuit.half_open_if_due(now);
            match circuit.state {
                CircuitState::Closed { .. } => BreakerState::Closed,
                CircuitState::Open { until } => BreakerState::Open {
                    retry_after: until.saturating_duration_since(now),
                },
                CircuitState::HalfOpen { .. } => BreakerState::HalfOpen,
            }
        })
    }

    /// Closes it, because somebody has changed the server's settings or asks for it by hand.
    pub(crate) fn reset(&self) {
        self.0.change(|circuit| circuit.enter(CircuitState::default()));
    }
}

fn rule(policy: BreakerPolicy) -> Option<Rule> {
    match policy {
        BreakerPolicy::Off => None,
        BreakerPolicy::On(rule) => Some(rule.sensible()),
    }
}

/// Admission to make one attempt.
#[derive(Debug)]
#[must_use = "a ticket that is dropped says nothing about the attempt"]
pub(crate) struct Ticket(Admission);

#[derive(Debug)]
enum Admission {
    /// Given while everybody is let through.
    Passed { period: u64 },
    /// One of a few. It is gone when the verdict is given.
    Probe(Option<ProbePermit>),
}

/// A probe that is under way. What it finds out counts in no other period than that it was made in.
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
    /// One more than the period, while nothing that callers do but fail changes anything; zero when it does. Every call looks at this, and
    /// takes the lock only if it must.
    calm: AtomicU64,
    circuit: Mutex<Circuit>,
}

impl BreakerInner {
    fn calm_period(&self) -> Option<u64> {
        self.calm.load(Ordering::Acquire).checked_sub(1)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Circuit) -> T) -> T {
        let mut circuit = self.circuit.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut circuit);
        self.calm.store(circuit.calm(), Ordering::Release);
        changed
    }
}

#[derive(Debug)]
struct Circuit {
    /// None while it is switched off.
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

impl Default for CircuitState {
    fn default() -> Self {
        Self::Closed {
            failures_in_a_row: 0,
            verdicts: VecDeque::new(),
        }
    }
}

impl Circuit {
    fn enter(&mut self, state: CircuitState) {
        self.period += 1;
        self.state = state;
    }

    /// See [`BreakerInner::calm`].
    fn calm(&self) -> u64 {
        let keeps_no_verdicts = self.rule.is_none_or(|rule| rule.percent == 0);
        match self.state {
            CircuitState::Closed {
                failures_in_a_row: 0, ..
            } if keeps_no_verdicts => self.period + 1,
            CircuitState::Closed { .. } | CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => 0,
        }
    }

    /// Goes from open to half open when it is time.
    fn half_open_if_due(&mut self, now: Instant) {
        if matches!(self.state, CircuitState::Open { until } if until <= now) {
            self.enter(CircuitState::HalfOpen {
                running: 0,
                successes: 0,
            });
        }
    }

    /// The period of an attempt that may be made, and whether it is a probe.
    fn allow(&mut self, now: Instant) -> Result<(u64, bool), Open> {
        self.half_open_if_due(now);
        let Some(rule) = self.rule else {
            return Ok((self.period, false));
        };
        match &mut self.state {
            CircuitState::Closed { .. } => Ok((self.period, false)),
            CircuitState::Open { until } => Err(Open {
                retry_after: until.saturating_duration_since(now),
            }),
            CircuitState::HalfOpen { running, .. } if *running >= rule.probes => Err(Open {
                retry_after: PROBING.min(rule.open),
            }),
            CircuitState::HalfOpen { running, .. } => {
                *running += 1;
                Ok((self.period, true))
            }
        }
    }

    fn verdict(&mut self, failed: Option<Instant>) {
        let Some(rule) = self.rule else { return };
        let trips = match &mut self.state {
            CircuitState::Closed {
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
            CircuitState::HalfOpen { running, successes } => {
                *running = running.saturating_sub(1);
                if failed.is_none() {
                    *successes += 1;
                    if *successes >= rule.successes {
                        self.enter(CircuitState::default());
                    }
                    return;
                }
                true
            }
            // No ticket is given while it is open, so none of this period can come back.
            CircuitState::Open { .. } => false,
        };
        if let (true, Some(now)) = (trips, failed) {
            self.enter(CircuitState::Open { until: now + rule.open });
        }
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
