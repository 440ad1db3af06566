//! The path of a tool call, top to bottom: prepare the arguments, ask whether it may be made, wait for a turn, reach the server, exchange,
//! present.

mod permit;
mod prepare;
mod present;
mod record;
mod recover;
mod route;
mod stop;
mod view;

pub(crate) use route::{Route, RouteTable, Routed, ambiguous, may_be_of};
pub(crate) use stop::{failure_of, unavailable};
pub use view::View;

use record::Record;
use recover::{Next, Pauses, Recovery, ToolClass};
use stop::{Stop, after_a_lost_attempt};

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    args::Arguments,
    catalog::Tool,
    deadline::Deadline,
    mask::Counts as MaskCounts,
    outcome::{Failure, Outcome, Reply, mask_answer},
    server::{Live, Server},
    session::{Call, CallResult, Fault, FaultKind, Patience, Progress},
    transport::Sent,
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
pub(crate) async fn run(view: &View, route: &Route, call: ToolCall, started: Instant) -> Reply {
    let mut record = Record::open(route, &call, started);
    let masker = route.server.veil().masker();
    let outcome = match attempt(view, route, &call, &mut record).await {
        Ok(mut result) => {
            // Before anything is made of it, so that no summary and no file ever holds a secret.
            mask_answer(
                &mut result.content,
                &mut result.structured,
                &mut result.meta,
                &masker,
                &mut record.masked,
            );
            present::present(result)
        }
        Err(stop) => {
            stop.count_masked(&mut record.masked);
            stop.into_outcome(route).masked(&masker, &mut record.masked)
        }
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
        masked: 0,
        masked_by: MaskCounts::default(),
    }
}

/// Hands the call to its server, and again where that is safe: see [`recover`].
async fn attempt(view: &View, route: &Route, call: &ToolCall, record: &mut Record) -> Result<CallResult, Stop> {
    let arguments = prepare::arguments(route, call, view)?;
    permit::ask(route, call, view).await?;
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
    let class = ToolClass::of(&route.tool, said.as_ref(), config.policy.trust).with_arguments(&arguments);
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
        let fault = match exchange(&tool, &arguments, call, server, &live, patience).await? {
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
    arguments: &Arguments,
    call: &ToolCall,
    server: &Server,
    live: &Live,
    patience: Patience,
) -> Result<Result<CallResult, Fault>, Stop> {
    let breaker = server.breaker();
    let ticket = breaker.allow(Instant::now())?;
    let exchange = live.session.call(Call {
        tool,
        arguments: arguments.as_raw(),
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
