//! [`Telemetry`]: what receives finished spans and durations.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    span::{Attribute, Span},
    trace_context::{Carried, TraceContext, TraceId},
};

/// Receives finished spans and the durations of operations. All functions run within a request: they must be fast, and must not block.
pub trait Telemetry: fmt::Debug + Send + Sync + 'static {
    /// Whether there may be spans at all. If not, requests pass on what they came with, and only their durations are recorded.
    fn traces(&self) -> bool {
        true
    }

    /// Whether spans of a trace are recorded. `parent` is what the client sent, if it sent a context.
    fn samples(&self, trace: TraceId, parent: Option<&TraceContext>) -> bool;

    /// Takes a span that has ended.
    fn finish(&self, span: Span);

    /// Adds a duration to a series of the histogram of this name. The texts of `series` tell it apart from the others, and decide about its
    /// attributes, which are asked for when it is new. `span` is the recorded span of the operation.
    fn record(
        &self,
        histogram: &'static str,
        series: &[&str],
        attributes: &dyn Fn() -> Vec<Attribute<'static>>,
        took: Duration,
        span: Option<&TraceContext>,
    ) {
        let _ = (histogram, series, attributes, took, span);
    }

    /// Whether spans have the arguments and results of calls.
    fn has_content(&self) -> bool {
        false
    }

    /// Which parts of a context are taken from clients and sent to servers.
    fn propagation(&self) -> Propagation {
        Propagation::default()
    }
}

/// Which parts of a context are taken from clients and sent to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Propagation {
    /// `traceparent` and `tracestate` (W3C Trace Context).
    pub trace_context: bool,
    /// `baggage` (W3C Baggage).
    pub baggage: bool,
}

impl Default for Propagation {
    fn default() -> Self {
        Self {
            trace_context: true,
            baggage: true,
        }
    }
}

/// What is known of the trace of a call before the call begins.
#[derive(Debug, Clone, Default)]
pub enum Parent {
    /// Nothing: the `_meta` of the call may have a context, and the call decides whether it is sampled.
    #[default]
    Unknown,
    /// It was decided that the call has no spans.
    NotSampled,
    /// The same, and what the client has sent outside of `_meta` is passed on in it.
    PassOn(Arc<Carried>),
    /// The call is part of the span with this context.
    Span(Arc<Carried>),
}
