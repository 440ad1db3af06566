//! [`Exemplar`]: one recorded operation that stands for those that a metric counts.

use super::trace_context::{SpanId, TraceId};
use crate::timestamp::Timestamp;

/// One operation of a histogram's bucket whose trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar {
    /// Its trace.
    pub trace: TraceId,
    /// Its span.
    pub span: SpanId,
    /// How many seconds it took.
    pub seconds: f64,
    /// When it ended.
    pub at: Timestamp,
}
