//! Decides whether a failed call is retried: a table from what is known about the failure to the next step.
//!
//! The rule behind every row: a call that may have been executed is retried only if repeating it is harmless.

use std::{collections::BTreeMap, time::Duration};

use pegboard_protocol::code;
use serde_json::Value;
use tokio::time::Instant;

use crate::server::{RetryBudget, backoff::Noise};
use pegboard_client::{
    session::{Fault, FaultKind},
    transport::{ConnectFault, DialError, EndReason, FailureKind, Sent, WireFailure},
};
use pegboard_config::{Policy, Retry, RetryClass};
use pegboard_tools::{args::Arguments, catalog::Tool, filter};

/// The shortest and the longest delay between two attempts.
const DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Whether it is harmless to run a tool twice. Requests that only read, such as listings, are `Safe`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ToolClass {
    /// Not known to be harmless.
    #[default]
    Never,
    /// The tool only reads.
    Safe,
    /// The tool is idempotent: the second run changes nothing more.
    Idempotent,
    /// The server recognises a repeated call by the argument of this name.
    Keyed(String),
    /// The operator enables retries even if repeating the tool is not harmless.
    Anyway,
}

impl ToolClass {
    /// The class of a tool under a policy: its entry for the tool first, then its setting for the server.
    pub(crate) fn under(policy: &Policy, tool: &Tool) -> Self {
        let of_server = || match &policy.retry {
            Retry { even_if_run: true, .. } => Some(Self::Anyway),
            Retry { mode, .. } => mode.as_ref().map(Self::from),
        };
        let operator = Self::by_operator(tool, &policy.tool_retry).or_else(of_server);
        Self::classify(tool, operator.as_ref(), policy.trust)
    }

    /// The class of a tool: the operator's setting, then a trusted server's annotations, then `Never`. Its name is not considered.
    pub(crate) fn classify(tool: &Tool, operator: Option<&Self>, trusted: bool) -> Self {
        if let Some(class) = operator {
            return class.clone();
        }
        let hint = |name: &str| tool.annotations.as_ref().and_then(|hints| hints.get(name)?.as_bool());
        let (reads, destroys) = (hint("readOnlyHint"), hint("destructiveHint"));
        match (trusted, reads, destroys) {
            (false, _, _) => Self::Never,
            // The two annotations contradict each other.
            (true, Some(true), Some(true)) => Self::Never,
            (true, Some(true), _) => Self::Safe,
            (true, _, _) if hint("idempotentHint") == Some(true) => Self::Idempotent,
            (true, _, _) => Self::Never,
        }
    }

    /// The operator's setting for a tool: under its name, else under the first glob that matches it.
    pub(crate) fn by_operator(tool: &Tool, classes: &BTreeMap<String, RetryClass>) -> Option<Self> {
        let fits = |(glob, _): &(&String, &RetryClass)| filter::fits(glob, &tool.name);
        let class = classes
            .get(&tool.name)
            .or_else(|| classes.iter().find(fits).map(|(_, class)| class))?;
        Some(class.into())
    }

    /// The class of a call with these arguments. A keyed tool that is called without its key is `Never`.
    pub(crate) fn with_arguments(self, arguments: &Arguments) -> Self {
        let Self::Keyed(key) = &self else { return self };
        let arguments: Value = serde_json::from_str(arguments.as_raw().get()).unwrap_or_default();
        match arguments.get(key) {
            Some(Value::String(value)) if !value.is_empty() => self,
            Some(Value::Number(_)) => self,
            _ => Self::Never,
        }
    }

    /// Returns whether a call that may have been executed can be repeated, after `times` such repetitions.
    fn may_repeat(&self, times: u32) -> bool {
        match self {
            Self::Never => false,
            Self::Idempotent => times < 1,
            // Bounded by the total number of attempts.
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

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Report the failure to the caller.
    Stop,
    /// Retry on the same session.
    AgainSameSession { after: Duration },
    /// Retry on a new session.
    AgainNewSession { after: Duration },
    /// List the server's tools again, then retry on the same session with the current definition.
    AgainRefreshed { after: Duration },
}

/// The attempts of one call so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// How many attempts were made.
    pub(crate) made: u32,
    /// How many of them repeated a call that may have been executed.
    pub(crate) repeated: u32,
    /// Whether one of them was made because the session had ended before the call.
    pub(crate) renewed: bool,
    /// Whether one of them was made after the server was listed again.
    pub(crate) refreshed: bool,
}

impl Attempts {
    /// The state after the first attempt.
    pub(crate) fn first() -> Self {
        Self {
            made: 1,
            repeated: 0,
            renewed: false,
            refreshed: false,
        }
    }
}

/// The table: what follows `fault` when `left` remains of the caller's time. `delay` applies where the server sends no `Retry-After`.
pub(crate) fn decide(fault: &Fault, class: &ToolClass, attempts: &Attempts, left: Duration, delay: Duration) -> Next {
    let harmless = match fault.sent {
        // Nothing was executed. A timeout before the message was written is still not retried for `Never`: the server reads nothing.
        Sent::No | Sent::Rejected => *class != ToolClass::Never || !matches!(fault.kind, FaultKind::TimedOut { .. }),
        Sent::Maybe => class.may_repeat(attempts.repeated),
    };
    let next = if harmless {
        remedy(fault, attempts, delay)
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

/// The retry that may help after a fault, or `Stop` if the next attempt would fail in the same way.
fn remedy(fault: &Fault, attempts: &Attempts, delay: Duration) -> Next {
    match &fault.kind {
        FaultKind::Error(error) => decide_by_error(error.code, attempts),
        FaultKind::Wire(failure) => decide_by_wire(failure, fault.sent, attempts, delay),
        // We closed the session before the call was sent: send it on the next session, if there is one.
        FaultKind::Ended(end) if end.reason == EndReason::Closed && fault.sent == Sent::No => {
            Next::AgainNewSession { after: Duration::ZERO }
        }
        // We closed it, or the server has stopped reading and would not read the next attempt either.
        FaultKind::Ended(end) if matches!(end.reason, EndReason::Closed | EndReason::Stalled(_)) => Next::Stop,
        FaultKind::Ended(_) => Next::AgainNewSession { after: delay },
        // A retry does not change the settings.
        FaultKind::Dial(
            DialError::Spawn(_)
            | DialError::Tls(_)
            | DialError::NoCryptography
            | DialError::Setting(_)
            | DialError::NotBuilt(_),
        ) => Next::Stop,
        FaultKind::Dial(DialError::Failed(failure)) => match decide_by_wire(failure, fault.sent, attempts, delay) {
            Next::AgainSameSession { after } => Next::AgainNewSession { after },
            next => next,
        },
        // A retry does not change the versions that either side supports.
        FaultKind::NoVersion(_) => Next::Stop,
        FaultKind::TimedOut { .. } | FaultKind::Unreadable(_) => Next::AgainSameSession { after: delay },
    }
}

/// An error response is final, except the one that reports an outdated tool definition.
fn decide_by_error(code: i64, attempts: &Attempts) -> Next {
    if code == code::HEADER_MISMATCH && !attempts.refreshed {
        Next::AgainRefreshed { after: Duration::ZERO }
    } else {
        Next::Stop
    }
}

fn decide_by_wire(failure: &WireFailure, sent: Sent, attempts: &Attempts, delay: Duration) -> Next {
    let again = Next::AgainSameSession { after: delay };
    match &failure.kind {
        FailureKind::Connect(
            ConnectFault::Refused
            | ConnectFault::Dns
            | ConnectFault::Timeout
            | ConnectFault::TlsClosed
            | ConnectFault::Other,
        ) => again,
        FailureKind::Connect(ConnectFault::Tls(_) | ConnectFault::Redirect)
        | FailureKind::NeedsAuth
        | FailureKind::Forbidden
        | FailureKind::NoCredential(_) => Next::Stop,
        FailureKind::Busy | FailureKind::ConnectionLost | FailureKind::Protocol => again,
        // The same request gets the same response, which is too large again.
        FailureKind::TooLarge => Next::Stop,
        // The call was executed, and the next response would need as much space.
        FailureKind::NoRoom => Next::Stop,
        FailureKind::SessionGone if attempts.renewed => Next::Stop,
        FailureKind::SessionGone => Next::AgainNewSession { after: Duration::ZERO },
        FailureKind::Rpc(error) => decide_by_error(error.code, attempts),
        FailureKind::Status {
            code: 429 | 503,
            retry_after,
        } => Next::AgainSameSession {
            after: retry_after.unwrap_or(delay),
        },
        // Server errors are `Maybe` and can be transient. Other client errors are permanent.
        FailureKind::Status { .. } if sent == Sent::Maybe => again,
        FailureKind::Status { .. } => Next::Stop,
    }
}

/// The retry state of one call: its attempts so far, and the delays between them.
#[derive(Debug)]
pub(crate) struct RetryState<'a> {
    class: ToolClass,
    rule: &'a Retry,
    attempts: Attempts,
    backoff: RetryBackoff,
}

impl<'a> RetryState<'a> {
    /// Creates the state for the first attempt of a call of this class.
    pub(crate) fn new(class: ToolClass, rule: &'a Retry) -> Self {
        Self::with(class, rule, RetryBackoff::random())
    }

    fn with(class: ToolClass, rule: &'a Retry, backoff: RetryBackoff) -> Self {
        Self {
            class,
            rule,
            attempts: Attempts::first(),
            backoff,
        }
    }

    /// The delay before the next attempt.
    fn delay(&mut self) -> Duration {
        let at = (self.attempts.made as usize).min(self.rule.backoff.len());
        match at.checked_sub(1).and_then(|at| self.rule.backoff.get(at)) {
            Some(wait) => self.backoff.vary(*wait, self.rule.jitter),
            None => self.backoff.next(),
        }
    }

    /// Decides what follows a failed attempt. Everything but `Stop` counts as the next attempt and is paid from the server's retry budget,
    /// except the one attempt per call after an expired session, which is made even without retries: all calls in flight hit that at once, and
    /// none of them was executed.
    pub(crate) fn after(&mut self, fault: &Fault, left: Duration, budget: &RetryBudget, now: Instant) -> Next {
        let is_renewal = is_renewal(fault);
        let is_free = is_renewal && !self.attempts.renewed && fault.sent != Sent::Maybe;
        let retries = self.attempts.made - 1 - u32::from(self.attempts.renewed);
        if retries >= self.rule.attempts && !is_free {
            return Next::Stop;
        }
        let delay = self.delay();
        let next = decide(fault, &self.class, &self.attempts, left, delay);
        if next == Next::Stop || !(is_free || budget.withdraw(now)) {
            return Next::Stop;
        }
        self.attempts.made += 1;
        self.attempts.repeated += u32::from(fault.sent == Sent::Maybe);
        self.attempts.renewed |= is_renewal;
        self.attempts.refreshed |= matches!(next, Next::AgainRefreshed { .. });
        next
    }

    /// How many attempts were made, including the one in flight.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.made
    }
}

/// Whether the session had ended before the call, on either side, so that only a new one is needed.
fn is_renewal(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Wire(failure) => failure.kind == FailureKind::SessionGone,
        FaultKind::Ended(end) => end.reason == EndReason::Closed && fault.sent == Sent::No,
        _ => false,
    }
}

/// Exponential backoff with decorrelated jitter: each delay lies between the shortest one and three times the previous one.
#[derive(Debug, Clone)]
pub(crate) struct RetryBackoff {
    is_steady: bool,
    /// Created on first use: most calls never wait.
    noise: Option<Noise>,
    last: Duration,
}

impl RetryBackoff {
    /// Random delays, so that callers that failed together do not retry together.
    pub(crate) fn random() -> Self {
        Self::with(false)
    }

    /// Always the shortest delay.
    #[cfg(test)]
    pub(crate) fn steady() -> Self {
        Self::with(true)
    }

    fn with(is_steady: bool) -> Self {
        Self {
            is_steady,
            noise: None,
            last: DELAY.0,
        }
    }

    /// Varies a delay by up to `percent` of itself, in both directions.
    fn vary(&mut self, wait: Duration, percent: u32) -> Duration {
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
            let spread = (self.last * 3).saturating_sub(DELAY.0);
            self.last = (DELAY.0 + spread.mul_f64(noise.unit())).min(DELAY.1);
        }
        self.last
    }
}

#[cfg(test)]
mod tests;
