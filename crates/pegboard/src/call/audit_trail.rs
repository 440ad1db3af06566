//! The verdict on a call, and its record in the audit log.

use super::{context::CallContext, tool_call::ToolCall};
use crate::{
    args::Arguments,
    audit::{ArgumentsEntry, AuditDecision, AuditRule, Entry},
    outcome::Failure,
};

/// Why a call may be made: the approval that covers it, if it needs one.
pub(super) type Verdict = Result<Option<AuditRule>, Denied>;

/// Why a call must not be made.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) rule: AuditRule,
    pub(super) failure: Failure,
}

impl Denied {
    pub(super) fn by(rule: AuditRule, failure: Failure) -> Self {
        Self { rule, failure }
    }
}

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
