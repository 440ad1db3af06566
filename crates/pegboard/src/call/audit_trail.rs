//! Records the verdict on a call in the audit log.

use super::{context::CallContext, verdict::Verdict};
use crate::audit::{ArgumentsEntry, AuditDecision, AuditEntry, AuditRule};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{args::Arguments, outcome::Failure};

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
    let entry = AuditEntry::decision(&call.id, context.tool(), decision, rule)
        .with_view(context.view.name.as_ref(), context.view.principal.as_ref())
        .arguments(ArgumentsEntry::new(arguments, context.tool()));
    log.decide(entry, context.deadline).await
}

/// Records that a call was refused before the decision about it. Returns the failure with the rule as its diagnosis.
pub(super) fn deny(context: &CallContext<'_>, call: &ToolCall, rule: AuditRule, failure: Failure) -> Failure {
    record_decision(context, call, AuditDecision::Denied, rule);
    rule.explain(failure, Some(context.server().name()))
}

/// Records the decision about a call that is answered without being made.
pub(super) fn record_decision(context: &CallContext<'_>, call: &ToolCall, decision: AuditDecision, rule: AuditRule) {
    if let Some(log) = &context.view.audit {
        let entry = AuditEntry::decision(&call.id, context.tool(), decision, Some(rule));
        let entry = match rule {
            // They may not have been parsed.
            AuditRule::Arguments => entry,
            _ => entry.arguments(ArgumentsEntry::new(&call.arguments, context.tool())),
        };
        log.record(entry.with_view(context.view.name.as_ref(), context.view.principal.as_ref()));
    }
}
