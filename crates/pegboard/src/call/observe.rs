//! Spans and durations of the requests to servers, for the [`Telemetry`] of the board. Names and attributes are those of OpenTelemetry's
//! conventions for MCP.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pegboard_protocol::{
    code,
    method::{self, RequestMethod},
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::error::fault_kind;
use crate::server::{Live, Server};
use pegboard_base::telemetry::{
    Attribute, Carried, OpenSpan, Parent, Propagation, SpanKind, Telemetry, TraceContext, TraceId,
    Value as AttributeValue, plain_uri,
};
use pegboard_client::session::{CallResult, Fault};
use pegboard_config::{RemoteKind, Transport};
use pegboard_mask::{Counts, Masker};

/// The histogram of the conventions.
const DURATION: &str = "mcp.client.operation.duration";

/// The longest name or URI in a span, in bytes. A server may choose any.
const MAX_NAME: usize = 512;
/// The longest arguments and results in a span, in bytes, and how long they may be before they are masked and truncated.
const MAX_CONTENT: usize = 4 << 10;
const MAX_UNMASKED: usize = 256 << 10;

/// The keys of `_meta` that carry a trace.
const TRACE_KEYS: [&str; 2] = ["traceparent", "tracestate"];
const BAGGAGE: &str = "baggage";

const PROMPT_NAME: &str = "gen_ai.prompt.name";

/// How the requests of one call are traced. It is decided once, before the first one.
#[derive(Debug)]
pub(crate) struct Observer<'a> {
    telemetry: &'a Arc<dyn Telemetry>,
    /// `None` if there are no spans.
    sampled: Option<Sampled<'a>>,
    /// What is passed on without a span.
    passed_on: Option<&'a Carried>,
    /// How many requests were sent so far.
    attempts: AtomicU32,
}

#[derive(Debug)]
struct Sampled<'a> {
    carried: Cow<'a, Carried>,
    /// Whether the span above is one of another process.
    is_remote: bool,
    /// The trace, if there is no span above.
    trace: TraceId,
}

/// What a request does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) server: &'a Server,
    pub(crate) live: &'a Live,
    pub(crate) method: &'a str,
    /// The name of the tool or the prompt, or the URI of the resource.
    pub(crate) subject: Option<&'a str>,
    /// How long the call has waited in the queue.
    pub(crate) queued: Duration,
    /// The arguments of a tool.
    pub(crate) arguments: Option<&'a str>,
}

impl<'a> Observer<'a> {
    /// Decides whether a call has spans. `meta` is what the caller sends.
    pub(crate) fn new(telemetry: &'a Arc<dyn Telemetry>, parent: &'a Parent, meta: impl FnOnce() -> Carried) -> Self {
        let mut passed_on = None;
        let sampled = match parent {
            _ if !telemetry.traces() => None,
            Parent::NotSampled => None,
            Parent::PassOn(carried) => {
                passed_on = Some(&**carried);
                None
            }
            Parent::Span(carried) => Some(Sampled {
                trace: carried
                    .context
                    .as_ref()
                    .map_or_else(TraceId::random, |context| context.trace),
                carried: Cow::Borrowed(carried),
                is_remote: false,
            }),
            Parent::Unknown => {
                let carried = meta();
                let trace = carried
                    .context
                    .as_ref()
                    .map_or_else(TraceId::random, |context| context.trace);
                telemetry.samples(trace, carried.context.as_ref()).then_some(Sampled {
                    carried: Cow::Owned(carried),
                    is_remote: true,
                    trace,
                })
            }
        };
        Self {
            telemetry,
            sampled,
            passed_on,
            attempts: AtomicU32::new(0),
        }
    }

    /// Begins a request.
    pub(crate) fn begin(&self, operation: Operation<'a>) -> Attempt<'a> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        let span = self
            .sampled
            .as_ref()
            .map(|sampled| self.open(sampled, &operation, number));
        Attempt {
            telemetry: self.telemetry,
            operation,
            span,
            passed_on: self.passed_on,
            baggage: self
                .sampled
                .as_ref()
                .and_then(|sampled| sampled.carried.baggage.clone()),
            begun: Instant::now(),
            is_over: false,
        }
    }

    fn open(&self, sampled: &Sampled<'_>, operation: &Operation<'_>, number: u32) -> OpenSpan {
        let above = sampled.carried.context.as_ref();
        let context = above.map_or_else(|| TraceContext::root_of(sampled.trace), TraceContext::child);
        let telemetry = self.telemetry.clone();
        let name = operation.span_name();
        let parent = above.map(|context| context.span);
        let mut span = OpenSpan::begin(telemetry, SpanKind::Client, name, context, parent);
        if sampled.is_remote && above.is_some() {
            span.set_remote_parent();
        }
        for (name, value) in operation.attributes() {
            span.set(name, value);
        }
        if operation.method == method::RESOURCES_READ
            && let Some(uri) = operation.subject
        {
            span.set("mcp.resource.uri", shorten(&plain_uri(uri)));
        }
        if let Transport::Remote { endpoint, .. } = &operation.server.config_snapshot().transport
            && let Some(port) = endpoint.url.expose().port_or_known_default()
        {
            span.set("server.port", i64::from(port));
        }
        span.set("pegboard.attempt", i64::from(number));
        if !operation.queued.is_zero() {
            span.set("pegboard.queue.wait", operation.queued.as_secs_f64());
        }
        if self.telemetry.has_content()
            && let Some(arguments) = operation.arguments
            && let Some(masked) = mask(arguments.as_bytes(), &operation.server.masker().current())
        {
            span.set("gen_ai.tool.call.arguments", masked);
        }
        span
    }
}

impl Operation<'_> {
    fn span_name(&self) -> String {
        match self.subject.filter(|_| self.names_target()) {
            Some(name) => format!("{} {}", self.method, shorten(name)),
            None => self.known_method().to_owned(),
        }
    }

    /// The method. Others are those of extensions, with any name.
    fn known_method(&self) -> &'static str {
        RequestMethod::find(self.method).map_or("_OTHER", |known| known.name)
    }

    /// Whether the subject is a tool or a prompt.
    fn names_target(&self) -> bool {
        matches!(self.method, method::TOOLS_CALL | method::PROMPTS_GET)
    }

    /// The attributes of spans and durations.
    fn attributes(&self) -> Vec<Attribute<'_>> {
        let is_call = self.method == method::TOOLS_CALL;
        let known = self.known_method();
        let subject = self.subject.map(shorten);
        let tool = subject.filter(|_| is_call).map(|name| ("gen_ai.tool.name", name));
        let prompt = subject.filter(|_| self.method == method::PROMPTS_GET);
        let prompt = prompt.map(|name| (PROMPT_NAME, name));
        let operation = is_call.then_some(("gen_ai.operation.name", "execute_tool"));
        let texts: [Option<(&'static str, &str)>; 6] = [
            Some(("mcp.method.name", known)),
            operation,
            tool,
            prompt,
            Some(("mcp.protocol.version", &*self.live.session.peer.version)),
            Some(("pegboard.server", self.server.name().as_str())),
        ];
        let texts = texts.into_iter().flatten();
        let mut attributes: Vec<Attribute<'_>> = texts.map(|(name, text)| (name, text.into())).collect();
        for attribute in network(self.server) {
            attributes.push(attribute);
        }
        attributes
    }
}

/// How the server is reached.
fn network(server: &Server) -> impl Iterator<Item = Attribute<'static>> {
    let (transport, protocol, address) = match &server.config_snapshot().transport {
        Transport::Stdio(_) => ("pipe", None, None),
        Transport::Remote { kind, endpoint } => {
            let protocol = match kind {
                RemoteKind::WebSocket => "websocket",
                RemoteKind::Auto | RemoteKind::Http | RemoteKind::Sse => "http",
            };
            (
                "tcp",
                Some(protocol),
                endpoint.url.expose().host_str().map(str::to_owned),
            )
        }
    };
    [
        Some(("network.transport", AttributeValue::from(transport))),
        protocol.map(|protocol| ("network.protocol.name", protocol.into())),
        address.map(|address| ("server.address", address.into())),
    ]
    .into_iter()
    .flatten()
}

/// One request to a server. Dropping it ends it as one that was cancelled.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    telemetry: &'a Arc<dyn Telemetry>,
    operation: Operation<'a>,
    span: Option<OpenSpan>,
    passed_on: Option<&'a Carried>,
    baggage: Option<Arc<str>>,
    begun: Instant,
    is_over: bool,
}

impl Attempt<'_> {
    /// The `_meta` of the request, in which its span stands for the one of the caller. `None` if it is the caller's own.
    pub(crate) fn meta(&self, own: &Map<String, Value>) -> Option<Map<String, Value>> {
        let fields = self.fields()?;
        let mut meta = own.clone();
        if fields.iter().any(|(name, _)| *name == TRACE_KEYS[0]) {
            // Baggage that is not passed on, or is none, is left out too.
            meta.retain(|key, _| !TRACE_KEYS.contains(&key.as_str()) && key != BAGGAGE);
        }
        meta.extend(
            fields
                .into_iter()
                .map(|(name, text)| (name.to_owned(), Value::String(text))),
        );
        Some(meta)
    }

    /// The fields of `_meta` that stand for those of the caller. `None` if nothing stands for them.
    pub(crate) fn fields(&self) -> Option<Vec<(&'static str, String)>> {
        if let Some(carried) = self.passed_on {
            return Some(carried.fields().collect());
        }
        let Propagation { trace_context, baggage } = self.telemetry.propagation();
        let context = self.span.as_ref()?.context().filter(|_| trace_context)?.clone();
        let carried = Carried {
            context: Some(context),
            baggage: self.baggage.clone().filter(|_| baggage),
        };
        Some(carried.fields().collect())
    }

    /// Ends it with the result of a tool, or with a fault.
    pub(crate) fn finish_call(mut self, result: &Result<CallResult, Fault>) {
        match result {
            Ok(result) => {
                if let Some(span) = &mut self.span
                    && self.telemetry.has_content()
                    && let Some(masked) = mask(&json_of(result), &self.operation.server.masker().current())
                {
                    span.set("gen_ai.tool.call.result", masked);
                }
                self.end(result.is_error.then_some("tool_error"), None, None);
            }
            Err(fault) => self.end_with(fault),
        }
    }

    /// Ends it with a result of another method, or with a fault.
    pub(crate) fn finish<T>(mut self, result: &Result<T, Fault>) {
        match result {
            Ok(_) => self.end(None, None, None),
            Err(fault) => self.end_with(fault),
        }
    }

    fn end_with(&mut self, fault: &Fault) {
        match fault.rpc_error() {
            Some(error) => {
                // What a server says is content.
                let message = self.telemetry.has_content().then(|| error.error.message.clone());
                self.end(Some(&error.error.code.to_string()), Some(error.error.code), message);
            }
            None => self.end(Some(fault_kind(fault).as_str()), None, None),
        }
    }

    fn end(&mut self, error: Option<&str>, code: Option<i64>, message: Option<String>) {
        self.is_over = true;
        let took = self.begun.elapsed();
        let label = code.map(code::label);
        let code = code.map(|code| code.to_string());
        let operation = &self.operation;
        let error_label = label.as_deref().or(error);
        // Tools are those of a listing. Prompts are what a client writes, so they tell no series apart.
        let tool = operation.subject.filter(|_| operation.method == method::TOOLS_CALL);
        let series = [
            operation.known_method(),
            operation.server.name().as_str(),
            tool.unwrap_or_default(),
            &*operation.live.session.peer.version,
            error_label.unwrap_or_default(),
        ];
        let attributes = || {
            let own = operation
                .attributes()
                .into_iter()
                .filter(|(name, _)| *name != PROMPT_NAME);
            let mut attributes: Vec<Attribute<'static>> = own.map(|(name, value)| (name, value.into_owned())).collect();
            attributes.extend(error_label.map(|error| ("error.type", AttributeValue::from(error.to_owned()))));
            let label = label.clone();
            attributes.extend(label.map(|code| ("rpc.response.status_code", AttributeValue::from(code))));
            attributes
        };
        let context = self.span.as_ref().and_then(OpenSpan::context);
        self.telemetry.record(DURATION, &series, &attributes, took, context);
        if let Some(mut span) = self.span.take() {
            if let Some(code) = &code {
                span.set("rpc.response.status_code", &**code);
            }
            if let Some(error) = error {
                span.fail(error, message);
            }
            span.finish();
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Some("cancelled"), None, None);
        }
    }
}

/// What the `_meta` of a call carries.
pub(crate) fn carried(meta: &Map<String, Value>, propagation: Propagation) -> Carried {
    let text = |key: &str| meta.get(key).and_then(Value::as_str);
    Carried::read(
        text(TRACE_KEYS[0]).filter(|_| propagation.trace_context),
        text(TRACE_KEYS[1]),
        text(BAGGAGE).filter(|_| propagation.baggage),
    )
}

/// A result as the server sent it, or as it was parsed.
fn json_of(result: &CallResult) -> Cow<'_, [u8]> {
    match &result.raw {
        Some(raw) => Cow::Borrowed(raw.json()),
        None => {
            let parsed = serde_json::json!({"content": result.content, "structuredContent": result.structured});
            Cow::Owned(parsed.to_string().into_bytes())
        }
    }
}

fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME)]
}

/// JSON without secrets, truncated. `None` for what cannot be masked in a moment.
fn mask(json: &[u8], masker: &Masker) -> Option<String> {
    let mut value: Value = serde_json::from_slice(json.get(..json.len().min(MAX_UNMASKED))?).ok()?;
    masker.mask_value(&mut value, &mut Counts::default());
    let mut text = value.to_string();
    text.truncate(text.floor_char_boundary(MAX_CONTENT));
    Some(text)
}
