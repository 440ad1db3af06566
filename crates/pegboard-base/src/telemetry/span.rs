//! Spans: one operation each, with its attributes and how it ended.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use super::trace_context::{SpanId, TraceContext};

/// An attribute: its name, and its value.
pub type Attribute<'a> = (&'static str, Value<'a>);

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Yes or no.
    Bool(bool),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

impl Value<'_> {
    /// The same value with a text of its own.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(text.into_owned().into()),
            Self::Int(number) => Value::Int(number),
            Self::Float(number) => Value::Float(number),
            Self::Bool(is) => Value::Bool(is),
        }
    }
}

/// The role of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It handles a request of another process.
    Server,
    /// It sends a request to another process.
    Client,
}

/// Something that happened during a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    /// What happened.
    pub name: &'static str,
    /// When.
    pub at: SystemTime,
    /// More about it.
    pub attributes: Vec<Attribute<'static>>,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace and its id.
    pub context: TraceContext,
    /// The span above it.
    pub parent: Option<SpanId>,
    /// Whether the span above it is one of another process.
    pub has_remote_parent: bool,
    /// Its role.
    pub kind: SpanKind,
    /// The name of the operation.
    pub name: Cow<'static, str>,
    /// When it began.
    pub start: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// More about it. Each name stands here once.
    pub attributes: Vec<Attribute<'static>>,
    /// What happened meanwhile.
    pub events: Vec<SpanEvent>,
    /// Spans of other traces that it belongs to.
    pub links: Vec<TraceContext>,
    /// Whether the operation failed.
    pub is_error: bool,
    /// Why it failed, as a text for people.
    pub message: Option<String>,
}
