//! Reads a resource for a model through the same steps as a tool call: hooks, checks, approval, queue, presentation.

use std::{future::Future, sync::Arc};

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    admit::admit, audit_trail, conclude, context::CallContext, crossing, error::CallError, guard::CallGuard,
    permission, record::CallRecord, route::resolved::Route, view::View,
};
use crate::{
    audit::AuditRule,
    spill::{Output, OutputFormat},
};
use pegboard_tools::outcome::{Answer, Body, Content, Failure, Kind, Outcome, Reply, ResourceContents};
use pegboard_tools::tool_call::ToolCall;

/// Reads the resource in the call's argument `uri`, with the function `read`.
pub(crate) async fn read_resource<F>(
    view: &View,
    route: &Route,
    mut call: ToolCall,
    started: Instant,
    guard: CallGuard<'_>,
    read: impl FnOnce(String) -> F,
) -> Reply
where
    F: Future<Output = Result<Vec<ResourceContents>, Failure>>,
{
    let context = CallContext::new(view, route, &call, started);
    let admitted = admit(&context, &mut call).await;
    let mut record = CallRecord::open(&context, &mut call);
    let result = match admitted {
        Ok(_slot) => read_once(&context, &call, &mut record, read).await,
        Err(failure) => Err(failure.into()),
    };
    let reply = conclude::conclude(&context, &mut call, record, result).await;
    conclude::report(&context, &call, reply, guard).await
}

async fn read_once<F>(
    context: &CallContext<'_>,
    call: &ToolCall,
    record: &mut CallRecord,
    read: impl FnOnce(String) -> F,
) -> Result<Outcome, CallError>
where
    F: Future<Output = Result<Vec<ResourceContents>, Failure>>,
{
    let arguments: Map<String, Value> = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
    let uri = arguments.get("uri").and_then(Value::as_str).map(str::to_owned);
    let uri = uri.ok_or_else(|| {
        let failure = Failure::new(Kind::InvalidArguments, "`uri` is missing: it must be a text");
        audit_trail::deny(context, call, AuditRule::Arguments, failure)
    })?;
    crossing::check_text(context.server(), &context.tool_name(), &uri)
        .map_err(|failure| audit_trail::deny(context, call, AuditRule::Crossing, failure))?;
    permission::obtain(context, call, &call.arguments, record).await?;
    let queued_at = Instant::now();
    let _permit = context
        .server()
        .permit_call(&context.tool().name, &context.view.owner, context.deadline)
        .await?;
    record.queued = queued_at.elapsed();
    record.attempts = 1;
    let late = |_| {
        Err(Failure::new(
            Kind::Timeout,
            "reading the resource took longer than the call may take",
        ))
    };
    match context.deadline.run(read(uri)).await.unwrap_or_else(late) {
        Ok(contents) => Ok(Outcome::Done(
            answer(context.view, contents, &mut record.warnings).await,
        )),
        // Reading has no side effects, so it can always be retried.
        Err(failure) => Err(CallError::Refused(Failure {
            may_have_executed: false,
            ..failure
        })),
    }
}

/// The answer for a resource. Several parts are each introduced by their URI.
async fn answer(view: &View, contents: Vec<ResourceContents>, warnings: &mut Vec<String>) -> Answer {
    let mut answer = Answer::from_text("");
    answer.content.clear();
    let is_one = contents.len() == 1;
    for part in contents {
        if !is_one {
            answer.content.push(Content::text(format!("[resource {}]", part.uri)));
        }
        answer.content.push(block(view, part, warnings).await);
    }
    if answer.content.is_empty() {
        answer.content.push(Content::text("[the resource is empty]"));
    }
    answer
}

async fn block(view: &View, part: ResourceContents, warnings: &mut Vec<String>) -> Content {
    let mime_type = part.mime_type.clone();
    match (part.body, mime_type) {
        (Body::Text(text), _) => Content::text(text),
        (Body::Blob(data), Some(mime_type)) if mime_type.starts_with("image/") => Content::Image {
            data,
            mime_type,
            rest: Map::new(),
        },
        (Body::Blob(data), mime_type) => {
            let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            let mut resource = Map::new();
            resource.insert("uri".into(), part.uri.into());
            resource.insert("mimeType".into(), mime_type.as_str().into());
            resource.insert("blob".into(), data.into());
            let whole = Content::Resource {
                resource,
                rest: Map::new(),
            };
            if view.result_options.spills() {
                spill(view, whole, mime_type, warnings).await
            } else {
                whole
            }
        }
    }
}

/// Spills the bytes and returns a line that describes them and names the handle.
async fn spill(view: &View, mut whole: Content, mime_type: String, warnings: &mut Vec<String>) -> Content {
    let description = whole.to_text().into_owned();
    let data = match &mut whole {
        Content::Resource { resource, .. } => resource.remove("blob"),
        _ => None,
    };
    let Some(Value::String(data)) = data else { return whole };
    let output = Output {
        format: OutputFormat::Bytes { mime_type },
        text: Arc::new(data),
    };
    match view.result_options.spill.keep(output).await {
        Ok(handle) => Content::text(format!("{}, handle {handle}]", description.trim_end_matches(']'))),
        Err(problem) => {
            warnings.push(format!("the bytes of the resource were not put aside: {problem}"));
            Content::text(description)
        }
    }
}
