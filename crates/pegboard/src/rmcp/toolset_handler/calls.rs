//! Calls a tool of the toolset for a client, and forwards the call's progress.

use ::rmcp::{
    ErrorData, Peer, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use tokio::sync::mpsc;

use crate::{call::ToolCall, toolset::Toolset};
use pegboard_client::session::Progress;
use pegboard_tools::outcome::{Kind, Reply};

/// The capacity of a call's progress channel. While it is full, further progress is dropped.
const STEPS: usize = 64;

/// Calls a tool. Dropping the future cancels the call on its server.
pub(super) async fn call(
    toolset: &Toolset,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let mut call = ToolCall::new(request.name).arguments(arguments);
    // The call leaves out the fields that are reserved for the protocol.
    call.meta = context.meta.0.0.clone();
    let reply = match context.meta.get_progress_token() {
        Some(token) => call_with_progress(toolset, call, token, &context.peer).await,
        None => toolset.call(call).await,
    };
    match reply.outcome.kind() {
        Kind::UnknownTool => Err(ErrorData::invalid_params(reply.text(), None)),
        _ => Ok(CallToolResult::from(reply).into()),
    }
}

async fn call_with_progress(toolset: &Toolset, call: ToolCall, token: ProgressToken, peer: &Peer<RoleServer>) -> Reply {
    let (sender, mut steps) = mpsc::channel(STEPS);
    let mut calling = Box::pin(toolset.call(call.progress(sender)));
    let reply = loop {
        tokio::select! {
            biased;
            Some(step) = steps.recv() => notify(peer, &token, step).await,
            reply = &mut calling => break reply,
        }
    };
    while let Ok(step) = steps.try_recv() {
        notify(peer, &token, step).await;
    }
    reply
}

/// Waits until the notification is sent, so that none arrives after the response.
async fn notify(peer: &Peer<RoleServer>, token: &ProgressToken, step: Progress) {
    let mut param = ProgressNotificationParam::new(token.clone(), step.progress);
    (param.total, param.message) = (step.total, step.message);
    // If the client is gone, its request is cancelled.
    let _ = peer.notify_progress(param).await;
}
