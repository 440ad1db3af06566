//! The last steps of every call: presents its outcome, runs the `after` hooks, and ends it for events and metrics.

use tokio::time::Instant;

use super::{
    context::CallContext,
    error::{CallError, after_a_lost_attempt},
    forward,
    guard::CallGuard,
    present,
    record::CallRecord,
};
use pegboard_tools::outcome::{Outcome, Reply};
use pegboard_tools::tool_call::ToolCall;

/// Turns the result of a call into its reply, and counts it.
pub(super) async fn conclude(
    context: &CallContext<'_>,
    call: &mut ToolCall,
    mut record: CallRecord,
    result: Result<Outcome, CallError>,
) -> Reply {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            error.count_masked(&mut record.masked);
            forward::note_error(context, &error);
            error.into_outcome(context.server(), &context.tool_name())
        }
    };
    let outcome = if record.may_have_run {
        after_a_lost_attempt(outcome, &context.tool_name())
    } else {
        outcome
    };
    if let Some(key) = record.repeat_key {
        context.view.call_limits.record_end(key, outcome.kind());
    }
    if outcome.status() != "refused" {
        let warning = context.server().listing().warn_about(&context.tool().name);
        record.warnings.extend(warning);
    }
    let presenting_since = call.times.is_some().then(Instant::now);
    let presented = present::present(context, call, outcome).await;
    if let (Some(times), Some(since)) = (&call.times, presenting_since) {
        times.set_presented(since.elapsed());
    }
    let reply = record.close(context, call, presented);
    context.server().counts().record_reply(&reply);
    context.server().owner().count(&reply);
    context.server().remember_failure(&reply);
    reply
}

/// Runs the `after` hooks on the reply, then ends the call for events and metrics.
pub(super) async fn report(
    context: &CallContext<'_>,
    call: &ToolCall,
    mut reply: Reply,
    guard: CallGuard<'_>,
) -> Reply {
    let view = context.view;
    let reporting = view
        .hooks
        .after(context.route, view.caller_view(), &call.meta, &mut reply);
    reporting.await;
    guard.complete(&reply);
    reply
}
