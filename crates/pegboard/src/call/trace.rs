//! One `tracing` span per call, with the fields of OpenTelemetry's conventions for MCP clients and tools. Without an interested subscriber it costs
//! one comparison.

use std::future::Future;

use tracing::{Instrument, Span, field::Empty};

use pegboard_protocol::method;
use pegboard_tools::outcome::{Kind, Reply, millis};
use pegboard_tools::tool_call::ToolCall;

/// The longest tool name in a span, in bytes. An unknown name may be any text that a model wrote.
const MAX_NAME: usize = 512;

/// Returns whether a subscriber has enabled spans of calls.
pub(crate) fn is_traced() -> bool {
    tracing::span_enabled!(target: "pegboard::call", tracing::Level::INFO)
}

/// Runs a call inside a span, and records the outcome in it.
pub(crate) async fn trace<F: Future<Output = Reply>>(call: ToolCall, run: impl FnOnce(ToolCall) -> F) -> Reply {
    let span = open_span(&call);
    let call_span = CallSpan(Some(span.clone()));
    let reply = run(call).instrument(span).await;
    call_span.finish(&reply);
    reply
}

/// Opens the span of a call. No field is called `name`, because formats such as JSON have the name of the span under that key.
fn open_span(call: &ToolCall) -> Span {
    let tool_name = &call.name[..call.name.floor_char_boundary(MAX_NAME)];
    tracing::info_span!(
        target: "pegboard::call",
        "call",
        // With the tool at the end: what a model wrote may be anything, and names of spans are few.
        otel.name = method::TOOLS_CALL,
        otel.kind = "client",
        otel.status_code = Empty,
        mcp.method.name = method::TOOLS_CALL,
        gen_ai.operation.name = "execute_tool",
        // As the caller wrote it. The server and its own name for the tool are known later.
        gen_ai.tool.name = tool_name,
        gen_ai.tool.call.id = call.has_given_id().then_some(call.id.as_str()),
        "error.type" = Empty,
        id = %call.id,
        server = Empty,
        tool = Empty,
        kind = Empty,
        attempts = Empty,
        latency_ms = Empty,
    )
}

/// Records how a call ended. Dropping it records a cancellation.
struct CallSpan(Option<Span>);

impl CallSpan {
    fn finish(mut self, reply: &Reply) {
        if let Some(span) = self.0.take() {
            span.record("server", reply.server.as_ref().map(tracing::field::display));
            span.record("tool", reply.tool.as_deref());
            if let (Some(server), Some(tool)) = (&reply.server, &reply.tool) {
                span.record("otel.name", format!("{} {server}.{tool}", method::TOOLS_CALL).as_str());
            }
            span.record("attempts", reply.attempts);
            span.record("latency_ms", millis(reply.latency));
            record_kind(&span, reply.outcome.kind());
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if let Some(span) = &self.0 {
            record_kind(span, Kind::Cancelled);
        }
    }
}

/// Records the kind of the outcome. The kind of an error that the tool reported is `tool_error`, which is also the word of the conventions.
fn record_kind(span: &Span, kind: Kind) {
    span.record("kind", kind.as_str());
    if kind != Kind::Ok {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", kind.as_str());
    }
}
