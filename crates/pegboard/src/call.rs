//! The path of a tool call, in order: route, parsing of arguments, hooks, validation, permission, cache, queue, delivery with retries,
//! presentation of the result.
//!
//! A call enters with a [`ToolCall`]; `route` finds its server and tool; [`run`] takes the remaining steps and returns the reply.

// The call, and the state that all of its steps share.
mod audience;
mod context;
mod guard;
mod record;
mod trace;
mod view;

// Route: the server and tool that the name means.
mod route;
mod visibility;

// Hooks.
mod admit;
mod hook;
mod idempotency;

// Arguments.
mod output_handles;
mod prepare_arguments;

// Permission.
mod approval;
mod approver_or_watcher;
mod audit_trail;
mod call_limits;
mod crossing;
mod limit_check;
mod owner_usage;
mod permission;
mod rates;
mod taint;
mod verdict;
mod view_rules;

// Cache.
mod cache;
mod call_memory;

// Queue, session and exchange, with retries.
mod deliver;
mod error;
mod journal;
mod native_caller;
mod observe;
mod progress;
mod retry;
mod shared_rates;

// Presentation of the result, and the reply.
mod conclude;
mod output_check;
mod present;
mod result_options;
mod summarise;

// Other kinds of calls and other forms of a call.
mod event_stream;
mod forward;
mod forwarded_tasks;
mod forwarding;
mod resource;
mod task;

// Semantic search for tools, which a view configures.
mod embeddings;

pub use approval::{Approvals, Approved, Approver, Decision, Question, approver};
pub(crate) use audience::Audience;
pub(crate) use call_memory::{CallMemories, MemoryOwner};
pub(crate) use crossing::{check_params, check_text};
pub use embeddings::Embedder;
pub(crate) use embeddings::Embeddings;
pub(crate) use error::{closed, outage_failure, queue_failure, request_failure};
pub use event_stream::{CallEvent, CallStream};
pub(crate) use forward::{forward_reply, forwarded_error, mask_forwarded};
pub(crate) use forwarding::ForwardedCall;
pub use forwarding::{Forwarded, Forwarding};
pub(crate) use guard::CallGuard;
pub use hook::{Budget, Called, Hook};
pub(crate) use journal::Journal;
pub use journal::{CallJournal, JournalEntry, JournalProblem};
pub(crate) use observe::{Attempt, Observer, Operation, carried};
pub(crate) use owner_usage::{InFlightSlot, UsageByPrincipal};
pub(crate) use pegboard_tools::tool_call::generate_id;
pub use pegboard_tools::tool_call::{Delivery, ToolCall};
pub(crate) use prepare_arguments::check_standalone;
pub(crate) use resource::read_resource;
pub(crate) use route::{
    Definitions, Route, RouteTable, Routed, Unroutable, ambiguous_name_failure, find_by_any_name, fold_name,
    list_names, may_belong_to, name_variants, tool_part,
};
pub use shared_rates::{NotSpent, SharedRates};
#[cfg(feature = "http")]
pub use summarise::ChatModel;
pub use summarise::{Summariser, Summary, SummaryError, SummaryRequest, summariser};
pub use task::TaskHandle;
pub(crate) use task::{attach_task, start_task};
pub(crate) use trace::{is_traced, trace};
pub use view::View;
pub use view_rules::Proposed;
pub(crate) use view_rules::ShownRules;
pub(crate) use visibility::Visibility;

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::audit::{AuditDecision, AuditRule};
use context::CallContext;
use error::CallError;
use pegboard_base::name;
use pegboard_tools::outcome::{Kind, Outcome, Reply};
use record::CallRecord;

/// Runs a call on its route. Moves the id and the name out of `call` into the reply.
pub(crate) async fn run(
    view: &View,
    route: &Route,
    call: &mut ToolCall,
    started: Instant,
    guard: CallGuard<'_>,
    forwarded: Option<&ForwardedCall<'_>>,
) -> Reply {
    let context = CallContext {
        forwarded,
        ..CallContext::new(view, route, call, started)
    };
    let reply = match admit::admit(&context, call).await {
        // Boxed, because calls with a key are rare and every call would pay for the space.
        Ok(_slot) if call.key.is_some() => Box::pin(run_once(&context, call)).await,
        Ok(_slot) => run_steps(&context, call).await,
        Err(failure) => {
            let record = CallRecord::open(&context, call);
            conclude::conclude(&context, call, record, Err(failure.into())).await
        }
    };
    conclude::report(&context, call, reply, guard).await
}

/// Runs the call, or returns the reply of an earlier call with the same idempotency key.
async fn run_once(context: &CallContext<'_>, call: &mut ToolCall) -> Reply {
    let name = context.tool().dotted_name();
    let is_own = context.view.home.as_ref() == Some(context.server().name());
    let key = idempotency::IdempotencyKey {
        tool: name.clone(),
        key: call.key.clone().unwrap_or_default(),
        server: is_own.then(|| context.server().number()),
    };
    let (id, asked, id_given) = (call.id.clone(), call.asked_name().to_owned(), call.has_given_id());
    let arguments = call.arguments.clone();
    let has_run = AtomicBool::new(false);
    let running = async {
        has_run.store(true, Ordering::Relaxed);
        run_steps(context, call).await
    };
    let keys = &context.view.idempotency_keys;
    let reply = keys.once(key, &arguments, context.deadline, running).await;
    if !has_run.into_inner() {
        let decision = match reply.outcome {
            Outcome::Refused(_) => AuditDecision::Denied,
            _ => AuditDecision::Allowed,
        };
        audit_trail::record_decision(context, call, decision, AuditRule::IdempotencyKey);
    }
    Reply {
        id,
        name,
        asked,
        id_given,
        server: Some(context.server().name().clone()),
        tool: Some(context.tool().name.clone()),
        latency: context.started.elapsed(),
        ..reply
    }
}

/// Takes the steps and turns their result into a reply.
async fn run_steps(context: &CallContext<'_>, call: &mut ToolCall) -> Reply {
    let mut record = CallRecord::open(context, call);
    let result = steps(context, call, &mut record).await;
    conclude::conclude(context, call, record, result).await
}

/// The steps of a call from its arguments to its outcome.
async fn steps(context: &CallContext<'_>, call: &ToolCall, record: &mut CallRecord) -> Result<Outcome, CallError> {
    let arguments = prepare_arguments::prepare(context, call, &mut record.warnings).await;
    let arguments = arguments.map_err(|failure| audit_trail::deny(context, call, AuditRule::Arguments, failure))?;
    let arguments = crossing::check(context, arguments, &mut record.warnings);
    let arguments = arguments.map_err(|failure| audit_trail::deny(context, call, AuditRule::Crossing, failure))?;
    permission::obtain(context, call, &arguments, record).await?;
    context.view.check_open()?;
    let cache = &context.view.cache;
    let cacheable = cache::CacheKey::new(
        context.server().number(),
        context.tool(),
        context.route.is_believed(&context.config.policy),
        &context.config.policy,
        &arguments,
    );
    if let Some(answer) = cacheable.as_ref().and_then(|(key, _)| cache.get(key)) {
        record.cached = true;
        return Ok(Outcome::Done(answer));
    }
    let keeps_raw = cacheable.is_none() && forward::keeps_raw(context, call);
    let result = deliver::deliver(context, call, &arguments, record, keeps_raw).await?;
    if result.raw.is_some() {
        return Ok(present::extract(result));
    }
    if let Some(failed) = output_check::check(context, &result, &mut record.warnings) {
        return Ok(failed);
    }
    // A user's input to one call must not answer the next one.
    let cacheable = cacheable.filter(|_| !result.had_input);
    let outcome = present::extract(result);
    if let (Some((key, lifetime)), Outcome::Done(answer)) = (cacheable, &outcome) {
        cache.put(*key, answer, lifetime);
    }
    Ok(outcome)
}

/// Builds the reply to a call without a route. It names server and tool if the name identifies them, except to a client for which they do not
/// exist: only the audit log has those.
pub(crate) fn refuse(call: &ToolCall, unroutable: Unroutable, started: Instant, guard: CallGuard<'_>) -> Reply {
    let server = unroutable.identified.as_ref().map(|(server, _)| server);
    let failure = unroutable.rule.explain(unroutable.failure, server);
    let mut reply = call.unanswered(Outcome::Refused(failure), started.elapsed());
    if let Some((server, tool)) = unroutable.identified {
        reply.name = name::format_dotted(server.as_str(), &tool);
        (reply.server, reply.tool) = (Some(server), Some(tool));
    }
    let does_not_exist = reply.outcome.kind() == Kind::UnknownTool && guard.audience() == Audience::Client;
    guard.refuse(&reply, unroutable.rule, unroutable.is_listed);
    if does_not_exist {
        reply.name.clone_from(&call.name);
        (reply.server, reply.tool) = (None, None);
    }
    reply
}
