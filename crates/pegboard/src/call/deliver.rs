//! Sends a call to its server: waits in the queue, gets a session, exchanges the messages, and retries after faults.

use std::time::Duration;

use pegboard_protocol::method;
use serde_json::{Map, Value};
use tokio::{sync::mpsc, time::Instant};

use super::{
    context::CallContext,
    error::CallError,
    journal::{JournalEntry, Noted},
    native_caller::with_caller,
    observe::{Observer, Operation, carried},
    progress,
    record::CallRecord,
    retry::{Next, RetryState, ToolClass},
};
use crate::{pin::command_name, server::Live};
use pegboard_client::{
    session::{Call, CallResult, Fault, FaultKind, PassOn, Patience, Progress},
    transport::Sent,
};
use pegboard_config::{Policy, Probe};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    args::Arguments,
    catalog::Tool,
    outcome::{Failure, Kind},
};

/// Sends the call to its server, and retries where that is safe.
pub(super) async fn deliver(
    context: &CallContext<'_>,
    call: &ToolCall,
    arguments: &Arguments,
    record: &mut CallRecord,
    keeps_raw: bool,
) -> Result<CallResult, CallError> {
    let (server, deadline) = (context.server(), context.deadline);
    if let Some(times) = &call.times {
        times.set_prepared(context.started.elapsed());
    }
    let permit = server
        .permit_call(&context.tool().name, &context.view.owner, deadline)
        .await?;
    record.queued = permit.wait_time();
    if let Some(times) = &call.times {
        times.set_queued(record.queued);
    }
    server.admission().retries().deposit();
    let live = match server.live_now() {
        Some(live) => live,
        // Boxed, because it is rare and every call would pay for the space.
        None => Box::pin(wait_for_start(context)).await?,
    };
    let live = for_client(context, live, 0).await;
    record.attempts = 1;
    let telemetry = context.view.telemetry.as_ref();
    let prepared = PreparedCall {
        context,
        call,
        queued: record.queued,
        observer: telemetry.map(|telemetry| {
            // Boxed, because calls of programs without one would carry its size.
            Box::new(Observer::new(telemetry, &call.parent, || {
                carried(&call.meta, telemetry.propagation())
            }))
        }),
        arguments,
        pass_on: context
            .forwarded
            .map_or_else(PassOn::default, |forwarded| forwarded.pass_on(keeps_raw)),
        meta: with_caller(
            context
                .view
                .hooks
                .meta(context.route, context.view.caller_view(), call)?,
            context.view,
            context.route,
            call,
        ),
    };
    match prepared.send(context.tool(), &live).await? {
        Ok(result) => Ok(result),
        // Boxed, because it is rare and every call would pay for the space.
        Err(fault) => Box::pin(prepared.retry(live, fault, record)).await,
    }
}

/// Waits until the server is ready. Fails if the definition that the server has now is held: the caller knows one from before the start.
async fn wait_for_start(context: &CallContext<'_>) -> Result<Live, CallError> {
    let live = context.server().ensure_live(context.deadline).await?;
    refuse_held(context)?;
    Ok(live)
}

/// Fails if the tool is withheld until a person accepts its definition.
fn refuse_held(context: &CallContext<'_>) -> Result<(), Failure> {
    let (server, name) = (context.server(), &context.tool().name);
    let held = server.listing().held_tools();
    let Some(held) = held.iter().find(|held| held.tool.name == *name) else {
        return Ok(());
    };
    let message = format!(
        "tool `{}` is held: {}. A person must accept it first.",
        context.route.name, held.reason
    );
    let what = command_name(server.name(), name);
    Err(Failure::new(Kind::NotPermitted, message).hint(format!(
        "`pegboard pins diff {what}` shows the definition, `pegboard pins accept {what}` accepts it"
    )))
}

/// Returns the session for the client of a call that is passed on: one in which the server can ask it, if it answers.
async fn for_client(context: &CallContext<'_>, live: Live, old_generation: u64) -> Live {
    match context.forwarded {
        Some(forwarded) if forwarded.answers_requests() => {
            // Boxed, because it is rare and every call would pay for the space.
            Box::pin(context.server().for_questions(live, old_generation, context.deadline)).await
        }
        _ => live,
    }
}

/// A call that is ready to be sent, once or several times.
struct PreparedCall<'a> {
    context: &'a CallContext<'a>,
    call: &'a ToolCall,
    arguments: &'a Arguments,
    pass_on: PassOn<'a>,
    meta: Map<String, Value>,
    /// How long it was queued.
    queued: Duration,
    /// Who is told of its requests, if that is anyone.
    observer: Option<Box<Observer<'a>>>,
}

impl PreparedCall<'_> {
    /// Sends it to a server that is ready, and forwards progress.
    async fn send(&self, tool: &Tool, live: &Live) -> Result<Result<CallResult, Fault>, CallError> {
        let view = &self.context.view;
        if progress::is_wanted(self.call, &view.events) {
            // Boxed, because it is rare and every call would pay for the space.
            let exchange = |progress| self.exchange(tool, live, progress);
            return Box::pin(progress::forward(self.call, view, exchange)).await;
        }
        self.exchange(tool, live, None).await
    }

    /// One exchange with the server, if its circuit breaker allows it.
    async fn exchange(
        &self,
        tool: &Tool,
        live: &Live,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Result<CallResult, Fault>, CallError> {
        let breaker = self.context.server().admission().breaker();
        let ticket = breaker.allow_now()?;
        let attempt = self.observer.as_ref();
        let attempt = attempt.map(|observer| Box::new(observer.begin(self.operation(tool, live))));
        let traced = attempt.as_ref().and_then(|attempt| attempt.meta(&self.meta));
        let call = Call {
            tool,
            arguments: self.arguments.as_raw(),
            meta: traced.as_ref().unwrap_or(&self.meta),
            patience: Patience {
                idle: self.context.config.limits.call_timeout,
                total: self.context.deadline,
            },
            on_behalf: self.context.view.on_behalf(self.call),
            progress,
            as_task: self.call.as_task,
            pass_on: self.pass_on,
        };
        let noted = self.note(tool);
        if let Some(delivery) = &self.call.delivery {
            delivery.sending();
        }
        let sent_at = Instant::now();
        let result = live.session.call(call).await;
        if let Some(attempt) = attempt {
            attempt.finish_call(&result);
        }
        if let Some(times) = &self.call.times {
            times.add_served(sent_at.elapsed());
        }
        drop(noted);
        if let Err(fault) = &result
            && fault.is_transport()
            && !matches!(fault.kind, FaultKind::TimedOut { .. })
        {
            live.session.note_failure();
        }
        match &result {
            Err(fault) if fault.is_unreachable() => breaker.report_unreachable(ticket, Instant::now()),
            // A timeout says nothing about a server that is not read for want of room.
            Err(fault) if fault.is_transport() && !live.session.is_held_up() => {
                breaker.report_failure(ticket, Instant::now())
            }
            Ok(_) | Err(_) => breaker.report_success(ticket),
        }
        Ok(result)
    }

    /// What its requests do, for their spans.
    fn operation<'b>(&'b self, tool: &'b Tool, live: &'b Live) -> Operation<'b> {
        Operation {
            server: self.context.server(),
            live,
            method: method::TOOLS_CALL,
            subject: Some(&tool.name),
            queued: self.queued,
            arguments: Some(self.arguments.as_raw().get()),
        }
    }

    /// Notes the call as one in flight, unless its tool only reads.
    fn note<'a>(&'a self, tool: &Tool) -> Option<Noted<'a>> {
        let is_read_only = || tool.is_read_only(self.context.config.policy.trust);
        self.context.view.journal.note(is_read_only, || JournalEntry {
            id: &self.call.id,
            server: self.context.server().name(),
            tool: &tool.name,
            principal: self.context.view.principal.as_ref(),
        })
    }

    /// Retries after a fault until there is a result or no retry is allowed.
    async fn retry(&self, mut live: Live, mut fault: Fault, record: &mut CallRecord) -> Result<CallResult, CallError> {
        let (server, deadline, policy) = (
            self.context.server(),
            self.context.deadline,
            &self.context.config.policy,
        );
        let mut tool = self.context.route.tool.clone();
        let class = ToolClass::under(policy, &tool).with_arguments(self.arguments);
        let mut retries = RetryState::new(class, &policy.retry);
        let mut lost_generation = 0;
        loop {
            let has_timed_out = matches!(fault.kind, FaultKind::TimedOut { .. });
            if has_timed_out {
                server.connections().suspect(live.generation);
            }
            let after = match retries.after(
                &fault,
                deadline.remaining(),
                server.admission().retries(),
                Instant::now(),
            ) {
                Next::Stop => {
                    if fault.is_transport() && !has_timed_out && needs_health_check(policy) {
                        server.connections().suspect(live.generation);
                    }
                    if fault.refuses_credential() {
                        server.connections().check_credential(live.generation);
                    }
                    return Err(fault.into());
                }
                Next::AgainSameSession { after } => after,
                Next::AgainNewSession { after } => {
                    lost_generation = live.generation;
                    server.connections().replace(live.generation);
                    after
                }
                Next::AgainRefreshed { after } => {
                    server.connections().refresh_and_wait(&live, deadline).await;
                    after
                }
            };
            record.may_have_run |= fault.sent == Sent::Maybe;
            if let Some(delivery) = self.call.delivery.as_ref().filter(|_| !record.may_have_run) {
                delivery.not_run();
            }
            tracing::debug!(id = %self.call.id, %fault, ?after, "the call is made again");
            // A call that waits uses no session, and its slot in the pool may be the one that is acquired next.
            drop(live);
            tokio::time::sleep(after).await;
            live = server.ensure_live_after(lost_generation, deadline).await?;
            live = for_client(self.context, live, lost_generation).await;
            record.attempts = retries.attempts();
            // The tool may have been listed again since.
            let listed = live.catalog().tools.iter().find(|listed| listed.name == tool.name);
            tool = listed.cloned().unwrap_or(tool);
            fault = match self.send(&tool, &live).await? {
                Ok(result) => return Ok(result),
                Err(fault) => fault,
            };
        }
    }
}

/// Returns whether a failed call triggers a health check: only where no schedule would soon detect that the server is gone. Elsewhere calls
/// keep trying until a check is due, because the next call finds a recovered server.
fn needs_health_check(policy: &Policy) -> bool {
    !policy.restart.enabled || policy.health.interval.is_none() || policy.health.probe == Probe::Never
}
