//! Calls of tools: by name with `POST call`, and by path with `POST tools/{server}/{tool}`.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{
    body::Body,
    extract::State,
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::ACCEPT};
use pegboard::{
    Arguments, Failure, Kind, Outcome, Reply, Selection, ServerName, ToolCall, Toolset, catalog::Tool,
    journal::Delivery, toolset::CallEvent,
};
use pegboard_gateway::{AnswersCall, Caller, Monitor, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::time::Instant;

use super::{
    access::{Anyone, lacks},
    body,
    documents::json,
    paths::ToolPath,
    problem::Problem,
    reply,
    state::ApiState,
};

/// How long a tool is waited for whose server is starting.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest id of a call.
const MAX_ID: usize = 256;

/// The longest limit of a call. Servers have limits of their own.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The interval of the comments that keep proxies from closing an idle stream.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Tells nginx not to buffer an event stream.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallRequest {
    /// The tool's name, in any naming style.
    #[schemars(length(min = 1))]
    name: String,
    /// The arguments: an object, or a text as a model wrote it.
    #[schemars(with = "Option<GivenArguments>")]
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    /// The caller's id for the call, repeated in the reply.
    #[schemars(length(min = 1, max = 256))]
    #[serde(default)]
    id: Option<String>,
    /// The limit for the whole call, besides the server's own limits.
    #[schemars(range(min = 1))]
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// The servers and tools that this call may use.
    #[serde(default)]
    selection: Option<Selection>,
}

/// The arguments of a call.
#[derive(Debug, JsonSchema)]
#[schemars(untagged, rename = "Arguments")]
#[expect(dead_code, reason = "describes the JSON of another type")]
enum GivenArguments {
    Object(serde_json::Map<String, Value>),
    Text(String),
}

impl CallRequest {
    fn into_call(self) -> Result<ToolCall, Problem> {
        if self.name.is_empty() {
            return Err(argument_problem("`name`: must not be empty"));
        }
        let mut call = ToolCall::new(self.name);
        if let Some(id) = self.id {
            if id.is_empty() || id.len() > MAX_ID {
                return Err(argument_problem(format!("`id`: must have 1 to {MAX_ID} bytes")));
            }
            call = call.id(id);
        }
        if let Some(limit) = self.timeout_ms {
            if limit == 0 {
                return Err(argument_problem("`timeout_ms`: must be at least 1"));
            }
            call = call.timeout(Duration::from_millis(limit).min(MAX_TIMEOUT));
        }
        if let Some(selection) = self.selection {
            call = call.selection(selection);
        }
        let Some(arguments) = self.arguments else {
            return Ok(call);
        };
        match arguments.get().as_bytes().first() {
            Some(b'{') => Ok(call.arguments(parse_arguments(&arguments)?)),
            Some(b'"') => {
                let text: String = serde_json::from_str(arguments.get())
                    .map_err(|error| argument_problem(format!("`arguments`: {error}")))?;
                Ok(call.text(text))
            }
            Some(b'n') => Ok(call),
            _ => Err(argument_problem("`arguments`: must be an object or a text")),
        }
    }
}

/// Parses an object of arguments. Doubled keys are refused: two parsers could choose different values.
fn parse_arguments(arguments: &RawValue) -> Result<Arguments, Problem> {
    serde_json::from_str(arguments.get()).map_err(|error| argument_problem(format!("`arguments`: {error}")))
}

fn argument_problem(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).kind(Kind::InvalidArguments)
}

/// `POST call`.
pub(super) async fn call(
    State(api): State<Arc<ApiState>>,
    Anyone(caller): Anyone,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = body::read(&api, &caller, &headers, body).await?;
    let call = body::parse_object::<CallRequest>(&bytes)?.into_call()?;
    let toolset = api.toolset(&caller)?;
    if let Some(why) = lacks(&caller, Scope::Call) {
        return Ok(reply::response(&api, &toolset.refuse_call(&call, &why)));
    }
    if wants_events(&headers) {
        return Ok(stream(&api, caller, &toolset, call));
    }
    Ok(reply::response(
        &api,
        &call_until_cancelled(&api, &caller, &toolset, call).await,
    ))
}

/// `POST tools/{server}/{tool}`: the body is the arguments.
pub(super) async fn call_tool(
    State(api): State<Arc<ApiState>>,
    Anyone(caller): Anyone,
    ToolPath { server, tool }: ToolPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let toolset = api.toolset(&caller)?;
    let name = format!("{server}.{tool}");
    if let Some(why) = lacks(&caller, Scope::Call) {
        return Ok(reply::response(&api, &toolset.refuse_call(&ToolCall::new(name), &why)));
    }
    let bytes = body::read(&api, &caller, &headers, body).await?;
    let arguments: Box<RawValue> = body::parse(&bytes)?;
    if !arguments.get().starts_with('{') {
        return Err(argument_problem("the body must be an object with the arguments"));
    }
    let arguments = parse_arguments(&arguments)?;
    // A path names one tool exactly; a name in a call may be misspelt.
    let found = match toolset.tool(&name, PATIENCE).await {
        Ok(found) => found,
        Err(failure) => {
            let named = ServerName::parse(&server).ok();
            return Err(match reply::needs_change(&api, &failure, named.as_ref()) {
                true => Problem::needs_change(failure).server(server),
                false => failure.into(),
            });
        }
    };
    if found.server.as_str() != server || found.name != tool {
        let detail = format!("server `{server}` has no tool `{}`", tool.escape_debug());
        return Err(Problem::new(StatusCode::NOT_FOUND, detail)
            .kind(Kind::UnknownTool)
            .server(server));
    }
    let call = ToolCall::new(name).arguments(arguments);
    if wants_events(&headers) {
        return Ok(stream(&api, caller, &toolset, call));
    }
    let reply = call_until_cancelled(&api, &caller, &toolset, call).await;
    Ok(match &reply.outcome {
        Outcome::Done(answer) => match &answer.structured {
            Some(structured) if found.output_schema.is_some() => json(StatusCode::OK, structured),
            _ => reply::response(&api, &reply),
        },
        // The result of a tool with an output schema is not mistaken for its error.
        Outcome::ToolFailed(_) => reply::with_status(&api, StatusCode::UNPROCESSABLE_ENTITY, &reply),
        _ => reply::response(&api, &reply),
    })
}

/// Calls a tool. Dropped when the client goes away, which cancels the call; so do a shutdown that waits no longer, and the withdrawal of the
/// client's token.
async fn call_until_cancelled(api: &ApiState, caller: &Caller, toolset: &Toolset, call: ToolCall) -> Reply {
    let (call, cut_off) = CutOff::watch(toolset, call);
    let mut called = pin!(toolset.call(call));
    let mut over = pin!(no_more_time(&api.monitor, caller));
    std::future::poll_fn(|cx| {
        let ended = over.as_mut().poll(cx);
        // A call that was not sent yet must not be sent now. The reply to one that was may be there.
        if (ended.is_pending() || cut_off.is_sent())
            && let Poll::Ready(reply) = called.as_mut().poll(cx)
        {
            return Poll::Ready(reply);
        }
        ended.map(|why| cut_off.reply(why))
    })
    .await
}

/// Completes when a call in flight is waited for no longer, with the reason.
async fn no_more_time(monitor: &Monitor, caller: &Caller) -> &'static str {
    tokio::select! {
        () = caller.withdrawn() => "the token is no longer valid",
        () = monitor.halted() => "the daemon stops",
    }
}

/// The events of a call: created, progress, completed. Dropping the stream cancels the call; a shutdown that waits no longer and the withdrawal
/// of the client's token end it with a reply.
fn stream(api: &Arc<ApiState>, caller: Caller, toolset: &Toolset, call: ToolCall) -> Response {
    let (call, cut_off) = CutOff::watch(toolset, call);
    let reason = Arc::new(OnceLock::new());
    let noted = reason.clone();
    let monitor = api.monitor.clone();
    let api = api.clone();
    let mut is_complete = false;
    let events = toolset
        .stream(call)
        .map(Some)
        .take_until(async move { noted.set(no_more_time(&monitor, &caller).await) })
        .chain(futures_util::stream::iter([None]))
        .filter_map(move |event| {
            let event = match event {
                Some(event) => {
                    is_complete |= matches!(event, CallEvent::Completed(_));
                    Some(event)
                }
                None if is_complete => None,
                None => {
                    let why = reason.get().copied().unwrap_or("the call has ended without a result");
                    Some(CallEvent::Completed(Box::new(cut_off.reply(why))))
                }
            };
            std::future::ready(
                event
                    .as_ref()
                    .and_then(|event| frame(&api, event))
                    .map(Ok::<_, Infallible>),
            )
        });
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    let mut response = disable_buffering(stream.into_response());
    response.extensions_mut().insert(AnswersCall);
    response
}

fn frame(api: &ApiState, event: &CallEvent) -> Option<Event> {
    let name = event.kind();
    let mut whole = serde_json::to_value(event).ok()?;
    if let CallEvent::Completed(reply) = event
        && let Some(hint) = reply::sign_in_hint(api, reply)
    {
        whole["data"]["hint"] = hint.into();
    }
    Event::default().event(name).json_data(&whole["data"]).ok()
}

/// What the reply of a call needs that is cut off.
struct CutOff {
    toolset: Toolset,
    call: ToolCall,
    /// The tool, if it was known when the call began. The board may be closed when it ends.
    known: Option<Arc<Tool>>,
    started: Instant,
    sent: Arc<Sent>,
}

/// Whether a call was sent to its server, when first, and how often.
#[derive(Debug, Default)]
struct Sent {
    may_have_run: AtomicBool,
    attempts: AtomicU32,
    first: OnceLock<Instant>,
}

impl Delivery for Sent {
    fn sending(&self) {
        self.first.get_or_init(Instant::now);
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.may_have_run.store(true, Ordering::Release);
    }

    fn not_run(&self) {
        self.may_have_run.store(false, Ordering::Release);
    }
}

impl CutOff {
    /// Watches whether a call is sent. Keeps its name and id, not the arguments.
    fn watch(toolset: &Toolset, mut call: ToolCall) -> (ToolCall, Self) {
        let sent = Arc::<Sent>::default();
        let given = (std::mem::take(&mut call.arguments), call.text.take());
        let kept = call.clone();
        (call.arguments, call.text) = given;
        let cut_off = Self {
            known: toolset.known_tool(&kept.name).map(|known| known.tool),
            toolset: toolset.clone(),
            call: kept,
            started: Instant::now(),
            sent: sent.clone(),
        };
        (call.delivery(sent), cut_off)
    }

    fn is_sent(&self) -> bool {
        self.sent.may_have_run.load(Ordering::Acquire)
    }

    /// The reply to the call, which was cancelled: it is lost if it was sent.
    fn reply(&self, why: &str) -> Reply {
        let outcome = if self.is_sent() {
            let message = format!("{why}, and the call was cancelled; it may have taken effect");
            Outcome::Lost(Failure::new(Kind::Cancelled, message).after_sending())
        } else {
            let message = format!("{why}, and the call was not sent; it has had no effect");
            Outcome::Refused(Failure::new(Kind::Cancelled, message))
        };
        let waited_until = self.sent.first.get().copied().unwrap_or_else(Instant::now);
        let mut reply = self.call.unanswered(outcome, self.started.elapsed());
        reply.attempts = self.sent.attempts.load(Ordering::Relaxed);
        reply.queued = waited_until.duration_since(self.started);
        let now = || self.toolset.known_tool(&self.call.name).map(|known| known.tool);
        match self.known.clone().or_else(now) {
            Some(tool) => {
                reply.name = tool.dotted_name();
                reply.server = Some(tool.server.clone());
                reply.tool = Some(tool.name.clone());
            }
            None => reply.server = self.toolset.server_of(&self.call.name),
        }
        reply
    }
}

/// Tells proxies to pass events on at once.
pub(super) fn disable_buffering(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Whether the client asks for an event stream by its name.
fn wants_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|kind| {
        let mut params = kind.split(';').map(str::trim);
        let is_events = params
            .next()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"));
        is_events && !params.any(|param| matches!(param, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Result<ToolCall, Problem> {
        body::parse_object::<CallRequest>(body.as_bytes()).and_then(CallRequest::into_call)
    }

    #[test]
    fn arguments_are_an_object_or_a_text() {
        let call = parsed(r#"{"name": "a.b", "arguments": {"x": 1}, "id": "7", "timeout_ms": 50}"#).unwrap();
        assert_eq!((call.arguments.as_str(), call.id.as_str()), (r#"{"x":1}"#, "7"));
        assert_eq!(call.timeout, Some(Duration::from_millis(50)));
        let call = parsed(r#"{"name": "a.b", "arguments": "x: 1"}"#).unwrap();
        assert_eq!(call.text.as_deref(), Some("x: 1"));
        for nothing in [r#"{"name": "a.b"}"#, r#"{"name": "a.b", "arguments": null}"#] {
            assert_eq!(parsed(nothing).unwrap().arguments.as_str(), "{}");
        }
    }

    #[test]
    fn a_problem_names_the_field_that_is_wrong() {
        for (body, words) in [
            (r#"{"name": 7}"#, "`name`"),
            (r#"{"name": ""}"#, "`name`"),
            (r#"{"arguments": {}}"#, "missing field `name`"),
            (r#"{"name": "a", "arguments": [1]}"#, "`arguments`"),
            (r#"{"name": "a", "arguments": {"x": 1, "x": 2}}"#, "`arguments`"),
            (r#"{"name": "a", "id": ""}"#, "`id`"),
            (r#"{"name": "a", "timeout_ms": 0}"#, "`timeout_ms`"),
            (r#"{"name": "a", "timeout_ms": -1}"#, "`timeout_ms`"),
            (
                r#"{"name": "a", "selection": {"servers": [{"nam": "x"}]}}"#,
                "`selection.servers[0]",
            ),
            (r#"{"name": "a", "extra": 1}"#, "extra"),
            (r#"["a", {}]"#, "the body must be an object"),
            (r#"{"name": "a"} x"#, "the body is not JSON"),
            ("", "the body is not JSON"),
        ] {
            let problem = parsed(body).unwrap_err();
            assert!(problem.detail().contains(words), "{body}: {}", problem.detail());
        }
    }

    #[test]
    fn a_stream_must_be_asked_for_by_name() {
        for (accept, wanted) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.5", true),
            ("text/event-stream;q=0", false),
            ("*/*", false),
            ("application/json", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(wants_events(&headers), wanted, "{accept}");
        }
    }
}
