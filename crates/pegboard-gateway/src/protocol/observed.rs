//! [`Observed`]: the span and the duration of a client's request. Names and attributes are those of OpenTelemetry's conventions for MCP.

use std::{
    borrow::Cow,
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use http::{HeaderMap, HeaderName};
use pegboard::mask::{Masker, Masking};
use pegboard::telemetry::{
    Attribute, Carried, Entered, OpenSpan, Parent, SpanId, SpanKind, Telemetry, TraceContext, TraceId, Value, enter,
    plain_uri,
};
use pegboard_protocol::{
    RpcError, Version, code, meta,
    method::{self, RequestMethod},
};
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::{
    message::Request,
    params::{Params, text},
    request_info::RequestInfo,
};

/// The histogram of the conventions.
const DURATION: &str = "mcp.server.operation.duration";

/// The longest method, name or URI in a span, in bytes. A client may write any.
const MAX_TEXT: usize = 512;

const TRACEPARENT: HeaderName = HeaderName::from_static(meta::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static(meta::TRACESTATE);
const BAGGAGE: HeaderName = HeaderName::from_static(meta::BAGGAGE);

/// How a request came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire<'a> {
    /// On a connection of its own kind: stdin and stdout, or the socket of the user's commands.
    Pipe,
    /// On a WebSocket.
    WebSocket,
    /// As a message of HTTP+SSE.
    Events,
    /// By streamable HTTP, with these headers, in this session.
    Http {
        info: &'a RequestInfo,
        headers: &'a HeaderMap,
        session: Option<&'a [u8]>,
    },
}

impl Wire<'_> {
    /// What the log knows of a request that came so.
    pub(super) fn info(self) -> RequestInfo {
        match self {
            Self::Http { info, .. } => info.clone(),
            Self::Pipe | Self::WebSocket | Self::Events => RequestInfo::default(),
        }
    }

    fn transport(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::WebSocket | Self::Events | Self::Http { .. } => "tcp",
        }
    }

    fn protocol(self) -> Option<&'static str> {
        match self {
            Self::Pipe => None,
            Self::WebSocket => Some("websocket"),
            Self::Events | Self::Http { .. } => Some("http"),
        }
    }
}

/// One request of a client, from its arrival to its response. Dropping it ends it as one that was cancelled.
#[derive(Debug)]
pub(crate) struct Observed {
    telemetry: Arc<dyn Telemetry>,
    begun: Instant,
    method: &'static str,
    transport: &'static str,
    version: Option<Version>,
    span: Option<OpenSpan>,
    is_over: bool,
}

impl Observed {
    /// Decides whether a request has a span. Returns what its calls are told of that.
    pub(super) fn begin(telemetry: &Arc<dyn Telemetry>, request: &Request, wire: Wire<'_>) -> Option<(Self, Parent)> {
        // It never ends by itself, and its time says nothing.
        if &*request.method == method::SUBSCRIPTIONS_LISTEN {
            return None;
        }
        let mut observed = Self {
            telemetry: telemetry.clone(),
            begun: Instant::now(),
            // Others are those of extensions, with any name.
            method: RequestMethod::find(&request.method).map_or("_OTHER", |known| known.name),
            transport: wire.transport(),
            version: None,
            span: None,
            is_over: false,
        };
        if !telemetry.traces() {
            return Some((observed, Parent::NotSampled));
        }
        let propagation = telemetry.propagation();
        let mut from_headers = match wire {
            Wire::Http { headers, .. } => read_headers(headers),
            Wire::Pipe | Wire::WebSocket | Wire::Events => Carried::default(),
        };
        let mut from_meta = read_meta(&request.params);
        for carried in [&mut from_headers, &mut from_meta] {
            carried.context = carried.context.take().filter(|_| propagation.trace_context);
            carried.baggage = carried.baggage.take().filter(|_| propagation.baggage);
        }
        let is_passed_on = from_headers.context.is_some() || from_headers.baggage.is_some();
        let baggage = from_meta.baggage.or(from_headers.baggage);
        // The transport has a trace of its own if both are there.
        let (above, link) = match from_meta.context {
            Some(context) => (Some(context), from_headers.context),
            None => (from_headers.context, None),
        };
        let trace = above.as_ref().map_or_else(TraceId::random, |context| context.trace);
        let is_sampled = telemetry.samples(trace, above.as_ref());
        let parent = match is_sampled {
            false if is_passed_on => Parent::PassOn(Arc::new(Carried {
                context: above,
                baggage,
            })),
            false => Parent::NotSampled,
            true => {
                let context = above
                    .as_ref()
                    .map_or_else(|| TraceContext::root_of(trace), TraceContext::child);
                let mut span = observed.open(request, wire, context.clone(), above.as_ref());
                if let Some(link) = link.filter(|link| Some(link) != above.as_ref()) {
                    span.link(link);
                }
                observed.span = Some(span);
                Parent::Span(Arc::new(Carried {
                    context: Some(context),
                    baggage,
                }))
            }
        };
        Some((observed, parent))
    }

    fn open(&self, request: &Request, wire: Wire<'_>, context: TraceContext, above: Option<&TraceContext>) -> OpenSpan {
        let is_call = self.method == method::TOOLS_CALL;
        let name_of = |method| (self.method == method).then(|| request.params.text("name")).flatten();
        let (tool, prompt) = (name_of(method::TOOLS_CALL), name_of(method::PROMPTS_GET));
        let written = plain(&request.method);
        let (tool, prompt) = [tool, prompt]
            .map(|name| name.map(|name| plain(&name).into_owned()))
            .into();
        let name = match tool.as_ref().or(prompt.as_ref()) {
            Some(target) => format!("{written} {target}"),
            None => written.clone().into_owned(),
        };
        let telemetry = self.telemetry.clone();
        let parent = above.map(|context| context.span);
        let mut span = OpenSpan::begin(telemetry, SpanKind::Server, name, context, parent);
        if above.is_some() {
            span.set_remote_parent();
        }
        span.set("mcp.method.name", &*written);
        span.set("jsonrpc.request.id", &*id_text(&request.id));
        if is_call {
            span.set("gen_ai.operation.name", "execute_tool");
        }
        for (attribute, name) in [("gen_ai.tool.name", tool), ("gen_ai.prompt.name", prompt)] {
            if let Some(name) = name {
                span.set(attribute, name);
            }
        }
        if self.method.starts_with("resources/")
            && let Some(uri) = request.params.text("uri")
        {
            span.set("mcp.resource.uri", &*plain(&plain_uri(&uri)));
        }
        span.set("network.transport", wire.transport());
        if let Some(protocol) = wire.protocol() {
            span.set("network.protocol.name", protocol);
        }
        if let Wire::Http {
            session: Some(session), ..
        } = wire
        {
            span.set("mcp.session.id", session_text(session));
        }
        span
    }

    /// Notes which version the client speaks.
    pub(super) fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Its span, if it has one.
    pub(super) fn span(&self) -> Option<(TraceId, SpanId)> {
        let context = self.span.as_ref()?.context()?;
        Some((context.trace, context.span))
    }

    /// Makes its span the one that log lines of this thread belong to.
    pub(super) fn enter(&self) -> Option<Entered> {
        Some(enter(self.span.as_ref()?.context()?))
    }

    /// Ends it with a result. `failure` is the kind of failure that the result tells of, if it does.
    pub(super) fn succeed(mut self, failure: Option<&'static str>) {
        if let (Some(span), Some(kind)) = (&mut self.span, failure)
            && kind != TOOL_ERROR
        {
            span.set("pegboard.failure.kind", kind);
        }
        self.end(failure.map(|_| TOOL_ERROR), None);
    }

    /// Ends it with an error.
    pub(super) fn fail(mut self, error: &RpcError) {
        if let Some(span) = &mut self.span {
            span.set("rpc.response.status_code", &*error.code.to_string());
        }
        // It may quote the client or a server.
        let message = self.telemetry.has_content().then(|| plain(&error.message).into_owned());
        let label = code::label(error.code);
        self.end(Some(&label), message);
    }

    fn end(&mut self, error: Option<&str>, message: Option<String>) {
        self.is_over = true;
        let version = self.version.map(Version::as_str);
        let series = [
            self.method,
            self.transport,
            version.unwrap_or_default(),
            error.unwrap_or_default(),
        ];
        let attributes = || {
            let is_call = self.method == method::TOOLS_CALL;
            let mut attributes: Vec<Attribute<'static>> = vec![
                ("mcp.method.name", self.method.into()),
                ("network.transport", self.transport.into()),
            ];
            attributes.extend(version.map(|version| ("mcp.protocol.version", version.into())));
            attributes.extend(is_call.then(|| ("gen_ai.operation.name", "execute_tool".into())));
            attributes.extend(error.map(|error| ("error.type", Value::from(error.to_owned()))));
            attributes
        };
        let context = self.span.as_ref().and_then(OpenSpan::context);
        self.telemetry
            .record(DURATION, &series, &attributes, self.begun.elapsed(), context);
        if let Some(mut span) = self.span.take() {
            if let Some(version) = version {
                span.set("mcp.protocol.version", version);
            }
            if let Some(error) = error {
                span.fail(error, message);
            }
            span.finish();
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Some("cancelled"), None);
        }
    }
}

/// The word of the conventions for a result that tells of a failure.
pub(crate) const TOOL_ERROR: &str = "tool_error";

fn read_headers(headers: &HeaderMap) -> Carried {
    let single = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok();
        value.filter(|_| values.next().is_none())
    };
    // These may be sent in parts.
    let joined = |name: &HeaderName| {
        let values = headers.get_all(name).iter();
        let texts: Option<Vec<&str>> = values.map(|value| value.to_str().ok()).collect();
        texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join(","))
    };
    let parent = single(&TRACEPARENT);
    if parent.is_none() && !headers.contains_key(&BAGGAGE) {
        return Carried::default();
    }
    Carried::read(parent, joined(&TRACESTATE).as_deref(), joined(&BAGGAGE).as_deref())
}

/// The span that a request belongs to, as its `_meta` says.
pub(super) fn span_in_meta(params: &Params) -> Option<TraceContext> {
    if !params.has_other_meta() {
        return None;
    }
    let parent = params.meta(meta::TRACEPARENT)?;
    TraceContext::parse(&text(&parent)?)
}

/// The span that a request belongs to, as its headers say.
pub(crate) fn span_in_headers(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all(&TRACEPARENT).iter();
    let value = values.next()?.to_str().ok();
    TraceContext::parse(value.filter(|_| values.next().is_none())?)
}

fn read_meta(params: &Params) -> Carried {
    if !params.has_other_meta() {
        return Carried::default();
    }
    let [parent, state, baggage] = [meta::TRACEPARENT, meta::TRACESTATE, meta::BAGGAGE].map(|key| params.meta(key));
    let as_text = |json: &Option<bytes::Bytes>| json.as_ref().and_then(|json| text(json).map(Cow::into_owned));
    Carried::read(
        as_text(&parent).as_deref(),
        as_text(&state).as_deref(),
        as_text(&baggage).as_deref(),
    )
}

/// The id as a text: without the quotes of a string.
fn id_text(id: &str) -> Cow<'_, str> {
    text(id.as_bytes()).unwrap_or(Cow::Borrowed(id))
}

/// What stands for a session. The id itself is a secret of the client.
pub(crate) fn session_text(session: &[u8]) -> String {
    let mut text = String::with_capacity(32);
    for byte in &digest(&SHA256, session).as_ref()[..16] {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A text of a client or a server without what looks like a secret. A client may name a tool as it likes, and there is none of that name then.
fn plain(text: &str) -> Cow<'_, str> {
    static MASKER: LazyLock<Option<Masker>> = LazyLock::new(|| Masker::new(&Masking::default(), []).ok());
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    match &*MASKER {
        Some(masker) => masker.text(text).text,
        // The patterns are those of the program, and all can be used.
        None => Cow::Borrowed(""),
    }
}
