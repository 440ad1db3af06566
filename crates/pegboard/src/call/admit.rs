//! The first step of every call on a route: parses its arguments, then runs the `before` hooks of the view.

use super::{context::CallContext, prepare_arguments, tool_call::ToolCall};
use crate::outcome::Failure;

/// Parses the arguments and runs the `before` hooks, which then see the parsed form.
pub(super) async fn admit(context: &CallContext<'_>, call: &mut ToolCall) -> Result<(), Failure> {
    prepare_arguments::parse(context, call)?;
    context.view.hooks.before(context.route, call, context.deadline).await
}
