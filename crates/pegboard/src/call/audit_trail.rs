//! Records the verdict on a call in the audit log.

use super::{context::CallContext, tool_call::ToolCall, verdict::Verdict};
use crate::{
    args::Arguments,
    audit::{ArgumentsEntry, AuditDecision, Entry},
    outcome::Failure,
};

/// Records a verdict before the call is made. Fails if the log is required and cannot be written.
pub(super) async fn record(
    context: &CallContext<'_>,
    call: &ToolCall,
    arguments: &Arguments,
    verdict: &Verdict,
) -> Result<(), Failure> {
    let Some(log) = &context.view.audit else {
        return Ok(());
    };
    let (decision, rule) = match verdict {
        Ok(None) => (AuditDecision::Allowed, None),
        Ok(Some(rule)) => (AuditDecision::Approved, Some(*rule)),
        Err(denied) => (AuditDecision::Denied, Some(denied.rule)),
    };
    let entry = Entry::decision(&call.id, context.tool(), decision, rule)
        .view(context.view.name.as_ref())
        .arguments(ArgumentsEntry::of(arguments, context.tool()));
    log.decide(entry, context.deadline).await
}
