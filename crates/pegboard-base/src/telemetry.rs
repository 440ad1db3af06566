//! Traces and durations of operations, in the terms of OpenTelemetry: what a request carries of its trace, finished spans, and the
//! [`Telemetry`] that receives them.
//!
//! Without a [`Telemetry`] nothing here runs but [`RequestTag`], by which lines of the log name their request. With one, a request is [sampled](Telemetry::samples) once, by the id of its trace, and only a
//! sampled request has spans.

mod current;
mod exemplar;
mod open_span;
mod plain_uri;
mod receiver;
mod request_tag;
mod span;
mod trace_context;

pub use current::{Entered, current, enter};
pub use exemplar::Exemplar;
pub use open_span::OpenSpan;
pub use plain_uri::plain_uri;
pub use receiver::{Parent, Propagation, Telemetry};
pub use request_tag::{EnteredRequest, RequestTag, current_request};
pub use span::{Attribute, Span, SpanEvent, SpanKind, Value};
pub use trace_context::{Carried, SpanId, TraceContext, TraceId};
