//! One `tracing` span per call. Without an interested subscriber it costs one comparison.

use std::future::Future;

use tracing::{Instrument, Span, field::Empty};

use pegboard_tools::outcome::{Kind, Reply, millis};
use pegboard_tools::tool_call::ToolCall;

/// The longest tool name in a span, in bytes. An unknown name may be any text that a model wrote.
const NAME: usize = 512;

/// Returns whether a subscriber has enabled spans of calls.
pub(crate) fn is_traced() -> bool {
    tracing::span_enabled!(target: "pegboard::call", tracing::Level::INFO)
}

/// Runs a call inside a span, and records the outcome in it.
pub(crate) async fn trace<F: Future<Output = Reply>>(call: ToolCall, run: impl FnOnce(ToolCall) -> F) -> Reply {
    let name = &call.name[..call.name.floor_char_boundary(NAME)];
    let span = tracing::info_span!(
        target: "pegboard::call",
        "call",
        id = %call.id,
        name = %name.escape_debug(),
        server = Empty,
        tool = Empty,
        kind = Empty,
        attempts = Empty,
        latency_ms = Empty,
    );
    let call_span = CallSpan(Some(span.clone()));
    let reply = run(call).instrument(span).await;
    call_span.finish(&reply);
    reply
}

/// Records how a call ended. Dropping it records a cancellation.
struct CallSpan(Option<Span>);

impl CallSpan {
    fn finish(mut self, reply: &Reply) {
        if let Some(span) = self.0.take() {
            span.record("server", reply.server.as_ref().map(tracing::field::display));
            span.record("tool", reply.tool.as_deref());
            span.record("kind", reply.outcome.kind().as_str());
            span.record("attempts", reply.attempts);
            span.record("latency_ms", millis(reply.latency));
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if let Some(span) = &self.0 {
            span.record("kind", Kind::Cancelled.as_str());
        }
    }
}
