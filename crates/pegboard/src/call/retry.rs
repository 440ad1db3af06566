//! Whether a failed call is made again: a table from what is known about it to what comes next.
//!
//! The one rule behind every row: a call that may have been carried out is repeated only when repeating it is harmless.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    args::Arguments,
    catalog::Tool,
    config::{Policy, Retry, RetryClass},
    filter,
    server::{RetryBudget, backoff::Noise},
    session::{Fault, FaultKind},
    transport::{ConnectFault, DialError, EndReason, FailureKind, Sent, WireFailure},
};

/// The shortest and the longest pause between two attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The server's headers and ours do not agree about the arguments, so our copy of the tool's schema is old.
const HEADER_MISMATCH: i64 = -32020;

/// How harmless it is to run a tool twice. Requests that only read, such as listings, are `Safe`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ToolClass {
    /// It may not be, as far as we know.
    #[default]
    Never,
    /// It only reads.
    Safe,
    /// The second time changes nothing more.
    Idempotent,
    /// The server knows a repeated call by the argument of this name.
    Keyed(String),
    /// The operator wants it repeated, whatever it does.
    Anyway,
}

impl ToolClass {
    /// The class of a tool under a policy: what it says about the tool, then what it says about the server.
    pub(crate) fn under(policy: &Policy, tool: &Tool) -> Self {
        let of_server = || match &policy.retries {
            Retry { even_if_run: true, .. } => Some(Self::Anyway),
            Retry { mode, .. } => mode.as_ref().map(Self::from),
        };
        let said = Self::by_operator(tool, &policy.retry).or_else(of_server);
        Self::of(tool, said.as_ref(), policy.trust)
    }

    /// The class of a tool: what the operator says, then what a trusted server says, then `Never`. Its name says nothing.
    pub(crate) fn of(tool: &Tool, operator: Option<&Self>, trusted: bool) -> Self {
        if let Some(class) = operator {
            return class.clone();
        }
        let hint = |name: &str| tool.annotations.as_ref().and_then(|hints| hints.get(name)?.as_bool());
        let (reads, destroys) = (hint("readOnlyHint"), hint("destructiveHint"));
        match (trusted, reads, destroys) {
            (false, _, _) => Self::Never,
            // Whoever says both has not thought about it.
            (true, Some(true), Some(true)) => Self::Never,
            (true, Some(true), _) => Self::Safe,
            (true, _, _) if hint("idempotentHint") == Some(true) => Self::Idempotent,
            (true, _, _) => Self::Never,
        }
    }

    /// What the operator says about a tool: under its name, else under the first glob that fits it.
    pub(crate) fn by_operator(tool: &Tool, said: &BTreeMap<String, RetryClass>) -> Option<Self> {
        let fits = |(glob, _): &(&String, &RetryClass)| filter::fits(glob, &tool.name);
        let class = said
            .get(&tool.name)
            .or_else(|| said.iter().find(fits).map(|(_, class)| class))?;
        Some(class.into())
    }

    /// The class of a call with these arguments. A key that is not among them protects nothing.
    pub(crate) fn with_arguments(self, arguments: &Arguments) -> Self {
        let Self::Keyed(key) = &self else { return self };
        let arguments: Value = serde_json::from_str(arguments.as_raw().get()).unwrap_or_default();
        match arguments.get(key) {
            Some(Value::String(value)) if !value.is_empty() => self,
            Some(Value::Number(_)) => self,
            _ => Self::Never,
        }
    }

    /// Whether a call that may have been carried out can be made again, after `times` such repetitions.
    fn may_repeat(&self, times: u32) -> bool {
        match self {
            Self::Never => false,
            Self::Idempotent => times < 1,
            // Bounded by the attempts altogether.
            Self::Safe | Self::Keyed(_) | Self::Anyway => true,
        }
    }
}

impl From<&RetryClass> for ToolClass {
    fn from(class: &RetryClass) -> Self {
        match class {
            RetryClass::Never => Self::Never,
            RetryClass::Safe => Self::Safe,
            RetryClass::Idempotent => Self::Idempotent,
            RetryClass::Key(argument) => Self::Keyed(argument.clone()),
        }
    }
}

/// What comes after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The failure is the caller's.
    Stop,
    /// Another attempt on the same session.
    AgainSameSession { after: Duration },
    /// Another attempt on a new session.
    AgainNewSession { after: Duration },
    /// The server is listed again, then another attempt on the same session with the tool as it is now.
    AgainRefreshed { after: Duration },
}

/// What has been tried so far for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// Attempts that were made.
    pub(crate) made: u32,
    /// Those of them that repeated a call that may have been carried out.
    pub(crate) repeated: u32,
    /// Whether one of them was made because the server did not know our session any more.
    pub(crate) renewed: bool,
    /// Whether one of them was made after the server was listed again.
    pub(crate) refreshed: bool,
}

impl Attempts {
    /// The first attempt was made.
    pub(crate) fn first() -> Self {
        Self {
            made: 1,
            repeated: 0,
            renewed: false,
            refreshed: false,
        }
    }
}

/// The table: what comes after `fault`, when `left` is left of the caller's time. `pause` is waited where the server names no time.
pub(crate) fn decide(fault: &Fault, class: &ToolClass, tries: &Attempts, left: Duration, pause: Duration) -> Next {
    let harmless = match fault.sent {
        // Nothing was carried out. A message that was not even written in time is still left alone, for the server reads nothing.
        Sent::No | Sent::Rejected => *class != ToolClass::Never || !matches!(fault.kind, FaultKind::TimedOut { .. }),
        Sent::Maybe => class.may_repeat(tries.repeated),
    };
    let next = if harmless {
        remedy(fault, tries, pause)
    } else {
        Next::Stop
    };
    match next {
        Next::AgainSameSession { after } | Next::AgainNewSession { after } | Next::AgainRefreshed { after }
            if after >= left =>
        {
            Next::Stop
        }
        next => next,
    }
}

/// What would help against a fault, or `Stop` where the next attempt would end like this one.
fn remedy(fault: &Fault, tries: &Attempts, pause: Duration) -> Next {
    match &fault.kind {
        FaultKind::Error(error) => of_error(error.code, tries),
        FaultKind::Wire(failure) => of_wire(failure, fault.sent, tries, pause),
        // We closed it ourselves before the call was sent: the next session takes it, if there is one.
        FaultKind::Ended(end) if end.reason == EndReason::Closed && fault.sent == Sent::No => {
            Next::AgainNewSession { after: Duration::ZERO }
        }
        // We closed it ourselves, or the server reads nothing and would not read the next attempt either.
        FaultKind::Ended(end) if matches!(end.reason, EndReason::Closed | EndReason::Stalled(_)) => Next::Stop,
        FaultKind::Ended(_) => Next::AgainNewSession { after: pause },
        // A wrong setting stays wrong.
        FaultKind::Dial(DialError::Spawn(_) | DialError::Tls(_) | DialError::Setting(_) | DialError::NotBuilt(_)) => {
            Next::Stop
        }
        FaultKind::Dial(DialError::Failed(failure)) => match of_wire(failure, fault.sent, tries, pause) {
            Next::AgainSameSession { after } => Next::AgainNewSession { after },
            next => next,
        },
        // Both sides stay as they are.
        FaultKind::NoVersion(_) => Next::Stop,
        FaultKind::TimedOut { .. } | FaultKind::Unreadable(_) => Next::AgainSameSession { after: pause },
    }
}

/// An error is an answer, and answers are final, but for the one that asks us to look again.
fn of_error(code: i64, tries: &Attempts) -> Next {
    if code == HEADER_MISMATCH && !tries.refreshed {
        Next::AgainRefreshed { after: Duration::ZERO }
    } else {
        Next::Stop
    }
}

fn of_wire(failure: &WireFailure, sent: Sent, tries: &Attempts, pause: Duration) -> Next {
    let again = Next::AgainSameSession { after: pause };
    match &failure.kind {
        FailureKind::Connect(
            ConnectFault::Refused | ConnectFault::Dns | ConnectFault::Timeout | ConnectFault::Other,
        ) => again,
        FailureKind::Connect(ConnectFault::Tls | ConnectFault::Redirect) | FailureKind::NeedsAuth => Next::Stop,
        FailureKind::Busy | FailureKind::ConnectionLost | FailureKind::Protocol => again,
        // The same question has the same answer, and it is too large again.
        FailureKind::TooLarge => Next::Stop,
        // It was executed, and the next answer would need as much room.
        FailureKind::NoRoom => Next::Stop,
        FailureKind::SessionGone if tries.renewed => Next::Stop,
        FailureKind::SessionGone => Next::AgainNewSession { after: Duration::ZERO },
        FailureKind::Rpc(error) => of_error(error.code, tries),
        FailureKind::Status {
            code: 429 | 503,
            retry_after,
        } => Next::AgainSameSession {
            after: retry_after.unwrap_or(pause),
        },
        // Of the other refusals none goes away by itself. A failure of the server may.
        FailureKind::Status { .. } if sent == Sent::Maybe => again,
        FailureKind::Status { .. } => Next::Stop,
    }
}

/// The attempts of one call: what was tried, and how long to wait between them.
#[derive(Debug)]
pub(crate) struct Recovery<'a> {
    class: ToolClass,
    rule: &'a Retry,
    tries: Attempts,
    pauses: RetryBackoff,
}

impl<'a> Recovery<'a> {
    /// The first attempt of a call of this class is about to be made.
    pub(crate) fn new(class: ToolClass, rule: &'a Retry) -> Self {
        Self::with(class, rule, RetryBackoff::random())
    }

    fn with(class: ToolClass, rule: &'a Retry, pauses: RetryBackoff) -> Self {
        Self {
            class,
            rule,
            tries: Attempts::first(),
            pauses,
        }
    }

    /// What is waited before the next attempt.
    fn pause(&mut self) -> Duration {
        let at = (self.tries.made as usize).min(self.rule.waits.len());
        match at.checked_sub(1).and_then(|at| self.rule.waits.get(at)) {
            Some(wait) => self.pauses.varied(*wait, self.rule.jitter),
            None => self.pauses.next(),
        }
    }

    /// What comes after a failed attempt. Anything but `Stop` counts as the next attempt and is paid for from the server's budget, except the
    /// one attempt per call after the server refused it for an expired session: all calls in flight meet that at once, and none has run.
    pub(crate) fn after(&mut self, fault: &Fault, left: Duration, budget: &RetryBudget, now: Instant) -> Next {
        if self.tries.made > self.rule.attempts {
            return Next::Stop;
        }
        let pause = self.pause();
        let next = decide(fault, &self.class, &self.tries, left, pause);
        let is_renewal = matches!(&fault.kind, FaultKind::Wire(failure) if failure.kind == FailureKind::SessionGone);
        let is_free = is_renewal && !self.tries.renewed && fault.sent != Sent::Maybe;
        if next == Next::Stop || !(is_free || budget.withdraw(now)) {
            return Next::Stop;
        }
        self.tries.made += 1;
        self.tries.repeated += u32::from(fault.sent == Sent::Maybe);
        self.tries.renewed |= is_renewal;
        self.tries.refreshed |= matches!(next, Next::AgainRefreshed { .. });
        next
    }

    /// How many attempts were made, the one under way included.
    pub(crate) fn attempts(&self) -> u32 {
        self.tries.made
    }
}

/// The pauses between attempts: each somewhere between the shortest and three times the one before.
#[derive(Debug, Clone)]
pub(crate) struct RetryBackoff {
    is_steady: bool,
    /// Made when it is first needed: most calls never pause.
    noise: Option<Noise>,
    last: Duration,
}

impl RetryBackoff {
    /// RetryBackoff that nobody can foretell, so that callers who failed together do not come back together.
    pub(crate) fn random() -> Self {
        Self::with(false)
    }

    /// Always the shortest pause.
    #[cfg(test)]
    pub(crate) fn steady() -> Self {
        Self::with(true)
    }

    fn with(is_steady: bool) -> Self {
        Self {
            is_steady,
            noise: None,
            last: PAUSE.0,
        }
    }

    /// A wait varied by up to `percent` of itself, both ways.
    fn varied(&mut self, wait: Duration, percent: u32) -> Duration {
        if percent == 0 || self.is_steady {
            return wait;
        }
        let noise = self.noise.get_or_insert_with(Noise::random);
        let part = f64::from(percent.min(100)) / 100.0;
        wait.mul_f64(1.0 + part * (2.0 * noise.unit() - 1.0))
    }

    fn next(&mut self) -> Duration {
        if !self.is_steady {
            let noise = self.noise.get_or_insert_with(Noise::random);
            let spread = (self.last * 3).saturating_sub(PAUSE.0);
            self.last = (PAUSE.0 + spread.mul_f64(noise.unit())).min(PAUSE.1);
        }
        self.last
    }
}

#[cfg(test)]
mod tests;
