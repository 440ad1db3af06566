//! The call in its server's hands: a turn, a session, the exchange, and what is done after a fault.

use serde_json::{Map, Value};
use tokio::{sync::mpsc, time::Instant};

use super::{
    CallContext, ToolCall, progress,
    record::Record,
    retry::{Next, Recovery, ToolClass},
    stop::Stop,
};
use crate::{
    args::Arguments,
    catalog::Tool,
    config::Policy,
    server::Live,
    session::{Call, CallResult, Fault, FaultKind, Patience, Progress},
    transport::Sent,
};

/// Hands the call to its server, and again where that is safe.
pub(super) async fn delivered(
    job: &CallContext<'_>,
    call: &ToolCall,
    arguments: &Arguments,
    record: &mut Record,
) -> Result<CallResult, Stop> {
    let (server, deadline) = (job.server(), job.deadline);
    let turn = server.enter_queue(&job.tool().name, deadline).await?;
    record.queued = turn.waited();
    server.retries().deposit();
    let live = server.live(deadline).await?;
    record.attempts = 1;
    let order = Order {
        job,
        call,
        arguments,
        meta: job.view.hooks.meta(job.route, call)?,
    };
    match order.give(job.tool(), &live).await? {
        Ok(result) => Ok(result),
        // Boxed, because it is rare and every call would pay for the room.
        Err(fault) => Box::pin(order.again(live, fault, record)).await,
    }
}

/// A call as it is given to its server, once or more often.
struct Order<'a> {
    job: &'a CallContext<'a>,
    call: &'a ToolCall,
    arguments: &'a Arguments,
    meta: Map<String, Value>,
}

impl Order<'_> {
    /// Gives it to a server that is ready.
    async fn give(&self, tool: &Tool, live: &Live) -> Result<Result<CallResult, Fault>, Stop> {
        let events = &self.job.view.events;
        if progress::is_wanted(self.call, events) {
            // Boxed, because it is rare and every call would pay for the room.
            let given = |progress| self.exchange(tool, live, progress);
            return Box::pin(progress::passed_on(self.call, events, given)).await;
        }
        self.exchange(tool, live, None).await
    }

    /// One exchange with the server, if its breaker lets the call pass.
    async fn exchange(
        &self,
        tool: &Tool,
        live: &Live,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Result<CallResult, Fault>, Stop> {
        let breaker = self.job.server().breaker();
        let ticket = breaker.allow_now()?;
        let call = Call {
            tool,
            arguments: self.arguments.as_raw(),
            meta: &self.meta,
            patience: Patience {
                idle: self.job.config.limits.call_idle,
                total: self.job.deadline,
            },
            progress,
            as_task: self.call.as_task,
        };
        let result = live.session.call(call).await;
        match &result {
            Err(fault) if fault.is_transport() => breaker.failure(ticket, Instant::now()),
            Ok(_) | Err(_) => breaker.success(ticket),
        }
        Ok(result)
    }

    /// What is done after a fault, until there is a result or nothing more can be done.
    async fn again(&self, mut live: Live, mut fault: Fault, record: &mut Record) -> Result<CallResult, Stop> {
        let (server, deadline, policy) = (self.job.server(), self.job.deadline, &self.job.config.policy);
        let mut tool = self.job.route.tool.clone();
        let class = ToolClass::under(policy, &tool).with_arguments(self.arguments);
        let mut recovery = Recovery::new(class, &policy.retries);
        let mut old_generation = 0;
        loop {
            let has_timed_out = matches!(fault.kind, FaultKind::TimedOut { .. });
            if has_timed_out {
                server.suspect(live.generation);
            }
            let after = match recovery.after(&fault, deadline.remaining(), server.retries(), Instant::now()) {
                Next::Stop => {
                    if fault.is_transport() && !has_timed_out && is_probed_after_failures(policy) {
                        server.suspect(live.generation);
                    }
                    return Err(fault.into());
                }
                Next::AgainSameSession { after } => after,
                Next::AgainNewSession { after } => {
                    old_generation = live.generation;
                    server.replace(live.generation);
                    after
                }
                Next::AgainRefreshed { after } => {
                    server.refresh_and_wait(&live, deadline).await;
                    after
                }
            };
            record.may_have_run |= fault.sent == Sent::Maybe;
            tracing::debug!(id = %self.call.id, %fault, ?after, "the call is made again");
            tokio::time::sleep(after).await;
            // Its place is given back first: it may be the one that is taken next.
            drop(live);
            live = server.live_after(old_generation, deadline).await?;
            record.attempts = recovery.attempts();
            // It may have been listed again since.
            let listed = live.catalog().tools.iter().find(|listed| listed.name == tool.name);
            tool = listed.cloned().unwrap_or(tool);
            fault = match self.give(&tool, &live).await? {
                Ok(result) => return Ok(result),
                Err(fault) => fault,
            };
        }
    }
}

/// Whether a call that failed on its way leads to a probe: where no schedule would find out soon that the server is gone. Elsewhere calls go
/// on trying until a probe is due, because a server that is back is found by the next of them.
fn is_probed_after_failures(policy: &Policy) -> bool {
    !policy.restart.enabled || policy.health.every.is_none()
}
