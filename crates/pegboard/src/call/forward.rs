//! The ends of a forwarded call: whether its result stays unparsed, and what is returned.

use pegboard_protocol::code;
use serde_json::{Map, Value};

use super::{
    context::CallContext,
    error::CallError,
    forwarding::{Forwarded, ForwardedCall},
    present,
};
use crate::server::Server;
use pegboard_base::deadline::Deadline;
use pegboard_client::{session::Fault, transport::ServerError};
use pegboard_config::{OutputCheck, Policy};
use pegboard_mask::{Counts, Masker};
use pegboard_tools::outcome::{Answer, Failure, ForwardedResult, Outcome, Reply, sanitize_error};
use pegboard_tools::tool_call::ToolCall;

/// Takes note of the error with which a call ends, if it is passed on.
pub(super) fn note_error(context: &CallContext<'_>, error: &CallError) {
    if let Some(forwarded) = context.forwarded
        && let CallError::Fault(fault) = error
        && let Some(error) = forwarded_error(fault, context.server())
    {
        forwarded.set_error(error);
    }
}

/// Returns what the server answered, by the record of the call.
pub(crate) fn forward_reply(call: ForwardedCall<'_>, reply: Reply) -> Forwarded {
    if let Some(error) = call.into_error() {
        return Forwarded::from_error(error);
    }
    match reply.outcome {
        Outcome::Done(answer) => Forwarded::Result(forward_answer(answer, false)),
        Outcome::ToolFailed(answer) => Forwarded::Result(forward_answer(answer, true)),
        Outcome::Refused(failure) | Outcome::Lost(failure) => Forwarded::Failed(failure),
    }
}

/// Returns whether the result of a call stays unparsed: if it is passed on, and no rule needs its parts.
pub(super) fn keeps_raw(context: &CallContext<'_>, call: &ToolCall) -> bool {
    let (view, policy) = (context.view, &context.config.policy);
    let is_checked = policy.output_check != OutputCheck::Off && context.tool().output_schema.is_some();
    let is_unchanged = || {
        let results = present::results_of_tool(policy, &context.tool().name);
        view.result_options.leave_unchanged(results, policy.summarise.as_ref())
    };
    context.forwarded.is_some() && is_unchanged() && !view.hooks.see_replies() && call.key.is_none() && !is_checked
}

/// Whether invisible characters are removed from the texts of a server.
fn sanitizes(policy: &Policy) -> bool {
    policy.result.clean && !policy.trust
}

/// Returns the error response in a fault, masked.
pub(crate) fn forwarded_error(fault: &Fault, server: &Server) -> Option<ServerError> {
    let mut error = fault.rpc_error()?.clone();
    let masker = server.masker().current();
    if error.code == code::URL_ELICITATION_REQUIRED
        && let Some(data) = &mut error.data
    {
        mask_pages(data, &masker);
    }
    if sanitizes(&server.config_snapshot().policy) {
        sanitize_error(&mut error.error.message, error.error.data.as_mut());
    }
    Some(error)
}

/// Masks the data of an error that sends the user to pages. In their URLs only known secrets are masked, because a pattern match would break
/// them.
fn mask_pages(data: &mut Value, masker: &Masker) {
    let take = |page: &mut Value| (page["url"].take(), page["elicitationId"].take());
    let mut pages: Vec<(Value, Value)> = match data.get_mut("elicitations") {
        Some(Value::Array(pages)) if pages.iter().all(Value::is_object) => pages.iter_mut().map(take).collect(),
        _ => Vec::new(),
    };
    masker.mask_value(data, &mut Counts::default());
    if let Some(Value::Array(masked)) = data.get_mut("elicitations") {
        for (page, (url, id)) in masked.iter_mut().zip(&mut pages) {
            masker.without_patterns().mask_value(url, &mut Counts::default());
            (page["url"], page["elicitationId"]) = (url.take(), id.take());
        }
    }
}

/// Masks the result of a request that was passed on, on a blocking thread if it is long.
pub(crate) async fn mask_forwarded(
    result: ForwardedResult,
    server: &Server,
    deadline: Deadline,
) -> Result<ForwardedResult, Failure> {
    let answer = Answer {
        raw: Some(Box::new(result)),
        ..Answer::from_content([])
    };
    let policy = &server.config_snapshot().policy;
    let masked = present::mask(Outcome::Done(answer), sanitizes(policy), server, deadline);
    match masked.await {
        (Outcome::Done(Answer { raw: Some(raw), .. }), _) => Ok(*raw),
        (Outcome::Done(answer) | Outcome::ToolFailed(answer), _) => Ok(forward_answer(answer, false)),
        (Outcome::Refused(failure) | Outcome::Lost(failure), _) => Err(failure),
    }
}

/// The result in an answer: unparsed, or written from its parts. Structured content stays, because tools with an output schema must have it.
fn forward_answer(answer: Answer, is_error: bool) -> ForwardedResult {
    if let Some(raw) = answer.raw {
        return *raw;
    }
    let mut result = Map::new();
    result.insert(
        "content".to_owned(),
        serde_json::to_value(answer.rendered_blocks()).unwrap_or_default(),
    );
    if let Some(structured) = answer.structured {
        result.insert("structuredContent".to_owned(), structured);
    }
    if is_error {
        result.insert("isError".to_owned(), true.into());
    }
    if let Some(meta) = answer.meta {
        result.insert("_meta".to_owned(), meta.into());
    }
    ForwardedResult::from_json(Value::Object(result).to_string(), is_error)
}
