//! The tools of a toolset as tools of rig.

use std::time::Duration;

use pegboard::{Kind, Reply, ToolCall, Toolset};
use rig_core::{
    message::{EmptyToolName, ToolName},
    tool::{DynamicTool, ToolErrorKind, ToolExecutionError, ToolOutput},
};

/// Lists the tools of a toolset for a rig agent. Waits at most `patience` for servers that are starting.
///
/// A call of rig's tool is a call of the toolset: dropping its future cancels the call on the server.
pub async fn tools_of(toolset: &Toolset, patience: Duration) -> Result<Vec<DynamicTool>, EmptyToolName> {
    let listing = toolset.list(patience).await;
    let tools = listing.tools.into_iter().map(|listed| {
        let (toolset, called) = (toolset.clone(), listed.name.clone());
        let description = listed.tool.description.clone().unwrap_or_default();
        let schema = listed.tool.input_schema.value();
        Ok(DynamicTool::new(
            ToolName::new(listed.name)?,
            description,
            schema,
            move |arguments| {
                let toolset = toolset.clone();
                let call = ToolCall::new(&called).arguments(arguments);
                Box::pin(async move { output_of(&toolset.call(call).await) })
            },
        ))
    });
    tools.collect()
}

/// The text for the model. rig hides the message of an error from the model unless it is set as feedback.
fn output_of(reply: &Reply) -> Result<ToolOutput, ToolExecutionError> {
    let text = reply.text();
    if !reply.is_error() {
        return Ok(ToolOutput::text(text));
    }
    let kind = match reply.outcome.kind() {
        Kind::InvalidArguments => ToolErrorKind::InvalidArgs,
        Kind::UnknownTool => ToolErrorKind::NotFound,
        Kind::NotPermitted | Kind::NeedsAuth => ToolErrorKind::PermissionDenied,
        Kind::LimitExceeded => ToolErrorKind::RateLimited,
        Kind::Timeout => ToolErrorKind::Timeout,
        Kind::Cancelled => ToolErrorKind::Cancelled,
        Kind::Unavailable | Kind::RestartInProgress | Kind::RestartFailed | Kind::Transport => ToolErrorKind::Network,
        Kind::ToolError => ToolErrorKind::Provider,
        _ => ToolErrorKind::Other,
    };
    // The toolset has retried what is safe to retry.
    let error = ToolExecutionError::new(kind, text.clone()).with_model_feedback(text);
    Err(error.with_retryable(false))
}
