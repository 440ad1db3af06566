//! The first step of every call on a route: counts it, parses its arguments, then runs the `before` hooks of the view.

use super::{audit_trail, context::CallContext, owner_usage::InFlightSlot, prepare_arguments};
use crate::audit::AuditRule;
use pegboard_tools::outcome::Failure;
use pegboard_tools::tool_call::ToolCall;

/// Counts the call as in flight, parses the arguments and runs the `before` hooks, which then see the parsed form. The call is in flight until the
/// returned value is dropped.
pub(super) async fn admit(context: &CallContext<'_>, call: &mut ToolCall) -> Result<Option<InFlightSlot>, Failure> {
    let slot = context.view.begin_call();
    let slot = slot.map_err(|failure| audit_trail::deny(context, call, AuditRule::InFlight, failure))?;
    if let Err(failure) = prepare_arguments::parse(context, call) {
        return Err(audit_trail::deny(context, call, AuditRule::Arguments, failure));
    }
    let (view, deadline) = (context.view, context.deadline);
    let admitted = view.hooks.before(context.route, view.caller_view(), call, deadline);
    admitted
        .await
        .map_err(|failure| audit_trail::deny(context, call, AuditRule::Hook, failure))?;
    Ok(slot)
}
