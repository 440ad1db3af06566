//! Reading a resource for a model, with all that is done for calls of tools: hooks, checks, approval, a turn, and what is made of results.

use std::{future::Future, sync::Arc};

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{CallContext, CallGuard, Record, Route, Stop, ToolCall, View, concluded, let_in, permission};
use crate::{
    outcome::{Answer, Body, Content, Failure, Kind, Outcome, Reply, ResourceContents},
    spill::{Form, Output},
};

/// Reads the resource that a call names in its argument `uri`, by means of `read`.
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
    let job = CallContext::new(view, route, &call, started);
    let let_in = let_in(&job, &mut call).await;
    let mut record = Record::open(&job, &mut call);
    let ended = match let_in {
        Ok(()) => attempt(&job, &call, &mut record, read).await,
        Err(failure) => Err(failure.into()),
    };
    let mut reply = concluded(&job, &mut call, record, ended).await;
    view.hooks.after(route, &mut reply).await;
    guard.complete(&reply);
    reply
}

async fn attempt<F>(
    job: &CallContext<'_>,
    call: &ToolCall,
    record: &mut Record,
    read: impl FnOnce(String) -> F,
) -> Result<Outcome, Stop>
where
    F: Future<Output = Result<Vec<ResourceContents>, Failure>>,
{
    let given: Map<String, Value> = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
    let uri = given.get("uri").and_then(Value::as_str).map(str::to_owned);
    let uri = uri.ok_or_else(|| Failure::new(Kind::InvalidArguments, "`uri` is missing: it must be a text"))?;
    permission::ask(job, call, &call.arguments).await?;
    let waiting = Instant::now();
    let _turn = job.server().enter_queue(&job.tool().name, job.deadline).await?;
    record.queued = waiting.elapsed();
    record.attempts = 1;
    let late = |_| {
        Err(Failure::new(
            Kind::Timeout,
            "reading the resource took longer than the call may take",
        ))
    };
    match job.deadline.run(read(uri)).await.unwrap_or_else(late) {
        Ok(contents) => Ok(Outcome::Done(answer(job.view, contents, &mut record.warnings).await)),
        // Whatever became of it, reading has changed nothing.
        Err(failure) => Err(Stop::Refused(Failure {
            may_have_executed: false,
            ..failure
        })),
    }
}

/// The answer of a resource. Where there are several parts, each is told by its address.
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
            if view.outputs.puts_aside() {
                put_aside(view, whole, mime_type, warnings).await
            } else {
                whole
            }
        }
    }
}

/// A line that names the bytes and says under which handle they are kept.
async fn put_aside(view: &View, mut whole: Content, mime_type: String, warnings: &mut Vec<String>) -> Content {
    let named = whole.to_text().into_owned();
    let data = match &mut whole {
        Content::Resource { resource, .. } => resource.remove("blob"),
        _ => None,
    };
    let Some(Value::String(data)) = data else { return whole };
    let output = Output {
        form: Form::Bytes { mime_type },
        text: Arc::new(data),
    };
    match view.outputs.spill.keep(output).await {
        Ok(handle) => Content::text(format!("{}, handle {handle}]", named.trim_end_matches(']'))),
        Err(problem) => {
            warnings.push(format!("the bytes of the resource were not put aside: {problem}"));
            Content::text(named)
        }
    }
}
