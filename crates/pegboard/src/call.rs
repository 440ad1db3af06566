//! The path of a tool call, top to bottom: route, wait for a turn, reach the server, exchange, present.

mod recover;
mod route;

use recover::{Next, Pauses, Recovery, ToolClass};
pub(crate) use route::{Route, RouteTable, Routed, ambiguous, may_be_of};

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    args::Arguments,
    catalog::Tool,
    deadline::Deadline,
    hint::Hint,
    outcome::{Answer, Content, Failure, Kind, Outcome, Reply},
    server::{Live, Open, Outage, Refused, Server},
    session::{Call, CallResult, Fault, FaultKind, Patience, Progress},
    transport::{FailureKind, Sent},
};

/// One call as a caller asks for it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolCall {
    /// The caller's id for it, told in the reply.
    pub id: String,
    /// The tool, in any naming style.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// The limit for the whole call, besides the server's own limits.
    pub timeout: Option<Duration>,
    /// Where progress goes. When the channel is full, steps are left out.
    pub progress: Option<mpsc::Sender<Progress>>,
}

impl ToolCall {
    /// A call of `name` without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: format!("call-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            name: name.into(),
            arguments: Arguments::default(),
            timeout: None,
            progress: None,
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: Arguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// Sets the caller's id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the limit for the whole call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets where progress goes.
    #[must_use]
    pub fn progress(mut self, progress: mpsc::Sender<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// Carries a call out on the route that was found for it.
pub(crate) async fn run(route: &Route, call: ToolCall, started: Instant) -> Reply {
    let mut record = Record::open(route, &call, started);
    let outcome = match attempt(route, &call, &mut record).await {
        Ok(result) => present(result),
        Err(stop) => stop.into_outcome(route),
    };
    let outcome = if record.may_have_run {
        after_a_lost_attempt(outcome, &route.tool.dotted_name())
    } else {
        outcome
    };
    record.close(route, outcome)
}

/// The reply to a call that has no route.
pub(crate) fn refuse(call: ToolCall, failure: Failure, started: Instant) -> Reply {
    Reply {
        id: call.id,
        name: call.name,
        server: None,
        tool: None,
        outcome: Outcome::Refused(failure),
        attempts: 0,
        latency: started.elapsed(),
        queued: Duration::ZERO,
        original_bytes: 0,
    }
}

/// Hands the call to its server, and again where that is safe: see [`recover`].
async fn attempt(route: &Route, call: &ToolCall, record: &mut Record) -> Result<CallResult, Stop> {
    let (server, config) = (&route.server, route.server.config());
    let total = call
        .timeout
        .unwrap_or(config.limits.call_total)
        .min(config.limits.call_total);
    let deadline = Deadline::within(total);
    let waiting = Instant::now();
    let _turn = server.turn(deadline).await?;
    record.queued = waiting.elapsed();
    server.retries().deposit();
    let said = ToolClass::by_operator(&route.tool, &config.policy.retry);
    let class = ToolClass::of(&route.tool, said.as_ref(), config.policy.trust).with_arguments(&call.arguments);
    let mut recovery = Recovery::new(class, Pauses::random());
    let (mut tool, mut left_behind) = (route.tool.clone(), 0);
    loop {
        let live = server.live_after(left_behind, deadline).await?;
        record.attempts = recovery.attempts();
        if record.attempts > 1 {
            // It may have been listed again since.
            let listed = live.catalog.tools.iter().find(|listed| listed.name == tool.name);
            tool = listed.cloned().unwrap_or(tool);
        }
        let patience = Patience {
            idle: config.limits.call_idle,
            total: deadline,
        };
        let fault = match exchange(&tool, call, server, &live, patience).await? {
            Ok(result) => return Ok(result),
            Err(fault) => fault,
        };
        if matches!(fault.kind, FaultKind::TimedOut { .. }) {
            server.suspect(live.generation);
        }
        let after = match recovery.after(&fault, deadline.remaining(), server.retries(), Instant::now()) {
            Next::Stop => return Err(fault.into()),
            Next::AgainSameSession { after } => after,
            Next::AgainNewSession { after } => {
                left_behind = live.generation;
                server.replace(live.generation);
                after
            }
            Next::AgainRefreshed { after } => {
                server.relisted(&live, deadline).await;
                after
            }
        };
        record.may_have_run |= fault.sent == Sent::Maybe;
        tracing::debug!(id = %call.id, %fault, ?after, "the call is made again");
        tokio::time::sleep(after).await;
    }
}

/// One exchange with a server that is ready, if its breaker lets the call pass.
async fn exchange(
    tool: &Tool,
    call: &ToolCall,
    server: &Server,
    live: &Live,
    patience: Patience,
) -> Result<Result<CallResult, Fault>, Stop> {
    let breaker = server.breaker();
    let ticket = breaker.allow(Instant::now())?;
    let exchange = live.session.call(Call {
        tool,
        arguments: call.arguments.as_raw(),
        patience,
        progress: call.progress.clone(),
    });
    let result = exchange.await;
    match &result {
        Err(fault) if fault.is_of_the_way() => breaker.failure(ticket, Instant::now()),
        Ok(_) | Err(_) => breaker.success(ticket),
    }
    Ok(result)
}

fn present(result: CallResult) -> Outcome {
    let answer = Answer {
        content: result.content,
        structured: result.structured,
        meta: result.meta,
        executed: true,
    };
    if result.is_error {
        Outcome::ToolFailed(answer)
    } else {
        Outcome::Done(answer)
    }
}

/// What is written down about a call while it runs.
struct Record {
    id: String,
    started: Instant,
    queued: Duration,
    attempts: u32,
    /// Whether an attempt that was repeated may have been carried out.
    may_have_run: bool,
}

impl Record {
    fn open(route: &Route, call: &ToolCall, started: Instant) -> Self {
        tracing::debug!(id = %call.id, server = %route.server.name(), tool = %route.tool.name, "call");
        Self {
            id: call.id.clone(),
            started,
            queued: Duration::ZERO,
            attempts: 0,
            may_have_run: false,
        }
    }

    fn close(self, route: &Route, outcome: Outcome) -> Reply {
        let latency = self.started.elapsed();
        route.server.count(outcome.kind(), latency);
        tracing::debug!(id = %self.id, kind = ?outcome.kind(), ?latency, "call ended");
        Reply {
            id: self.id,
            name: route.tool.dotted_name(),
            server: Some(route.server.name().clone()),
            tool: Some(route.tool.name.clone()),
            original_bytes: match &outcome {
                Outcome::Done(answer) | Outcome::ToolFailed(answer) => {
                    answer.content.iter().map(Content::payload_bytes).sum()
                }
                Outcome::Refused(_) | Outcome::Lost(_) => 0,
            },
            outcome,
            attempts: self.attempts,
            latency,
            queued: self.queued,
        }
    }
}

/// Why a call did not come to a result.
enum Stop {
    Turn(Refused),
    Open(Open),
    Outage(Arc<Outage>),
    Fault(Fault),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Turn(refused)
    }
}

impl From<Open> for Stop {
    fn from(open: Open) -> Self {
        Self::Open(open)
    }
}

impl From<Arc<Outage>> for Stop {
    fn from(outage: Arc<Outage>) -> Self {
        Self::Outage(outage)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Stop {
    fn into_outcome(self, route: &Route) -> Outcome {
        let server = route.server.name();
        match self {
            Self::Turn(refused) => Outcome::Refused(Failure {
                kind: match refused {
                    Refused::Full { .. } => Kind::LimitExceeded,
                    Refused::Late { .. } => Kind::Timeout,
                },
                message: refused.to_string(),
                hint: Some(
                    "call again later, or raise `max_in_flight` of the server or the size of its queue".to_owned(),
                ),
                may_have_executed: false,
            }),
            Self::Open(open) => Outcome::Refused(Failure {
                kind: Kind::Unavailable,
                message: format!("server `{server}` has answered none of the last calls and is left alone for a while"),
                hint: Some(format!("call again in {} s", open.retry_after.as_secs().max(1))),
                may_have_executed: false,
            }),
            Self::Outage(outage) => Outcome::Refused(unavailable(server.as_str(), &outage)),
            Self::Fault(fault) => of_fault(&fault, &route.tool.dotted_name()),
        }
    }
}

/// The outcome of a call of which an earlier attempt may have been carried out: that the last one was not says nothing about it.
fn after_a_lost_attempt(outcome: Outcome, tool: &str) -> Outcome {
    match outcome {
        Outcome::Refused(failure) => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was delivered but no answer came back, and it could not be made again ({}). It may have been \
                 carried out. Check the state before repeating it.",
                failure.message
            ),
            ..failure.after_sending()
        }),
        Outcome::ToolFailed(answer) => Outcome::ToolFailed(Answer {
            executed: true,
            ..answer
        }),
        done_or_lost => done_or_lost,
    }
}

/// The failure of a call whose server cannot be reached.
pub(crate) fn unavailable(server: &str, outage: &Outage) -> Failure {
    Failure {
        kind: outage.kind(),
        message: format!("server `{server}` is down: {}", outage.describe()),
        hint: outage.hint.clone(),
        may_have_executed: false,
    }
}

/// The outcome of a call that failed on its way, told so that a model can do the right thing next.
fn of_fault(fault: &Fault, tool: &str) -> Outcome {
    if let FaultKind::Error(error) = &fault.kind {
        let mut answer = Answer::from_text(format!(
            "the server answered with error {}: {}",
            error.code, error.message
        ));
        answer.structured.clone_from(&error.data);
        answer.executed = fault.sent == Sent::Maybe;
        return Outcome::ToolFailed(answer);
    }
    match fault.sent {
        Sent::Maybe => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was delivered but no answer came back ({fault}). It may have been carried out. Check the \
                 state before repeating it."
            ),
            ..failure_of(fault, tool)
        }),
        Sent::No | Sent::Rejected => Outcome::Refused(Failure {
            message: format!("the call to {tool} was not carried out: {fault}"),
            ..failure_of(fault, tool)
        }),
    }
}

/// A failed request as callers see it; `what` says what was asked for.
pub(crate) fn failure_of(fault: &Fault, what: &str) -> Failure {
    let kind = match &fault.kind {
        FaultKind::TimedOut { .. } => Kind::Timeout,
        FaultKind::Unreadable(_) => Kind::Internal,
        FaultKind::Error(_) => Kind::ToolError,
        FaultKind::Wire(failure) => match failure.kind {
            FailureKind::NeedsAuth => Kind::NeedsAuth,
            FailureKind::TooLarge | FailureKind::Busy => Kind::LimitExceeded,
            FailureKind::Connect(_) => Kind::Unavailable,
            FailureKind::Cut
            | FailureKind::Protocol
            | FailureKind::SessionGone
            | FailureKind::Rpc(_)
            | FailureKind::Status { .. } => Kind::Transport,
        },
        FaultKind::Ended(_) | FaultKind::Dial(_) => Kind::Transport,
    };
    Failure {
        kind,
        message: format!("{what} failed: {fault}"),
        hint: fault.hint(),
        may_have_executed: fault.sent == Sent::Maybe,
    }
}
