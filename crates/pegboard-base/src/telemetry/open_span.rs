//! [`OpenSpan`]: a span from its beginning to its end.

use std::{
    borrow::Cow,
    mem,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{
    receiver::Telemetry,
    span::{Attribute, Span, SpanEvent, SpanKind, Value},
    trace_context::{SpanId, TraceContext},
};

/// A span that goes on. Dropping it ends it as one that was cancelled.
#[derive(Debug)]
pub struct OpenSpan {
    telemetry: Arc<dyn Telemetry>,
    span: Option<Box<Span>>,
    begun: Instant,
}

impl OpenSpan {
    /// Begins a span. Its parent is one of this process unless [`OpenSpan::set_remote_parent`] says otherwise.
    pub fn begin(
        telemetry: Arc<dyn Telemetry>,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
        context: TraceContext,
        parent: Option<SpanId>,
    ) -> Self {
        Self {
            telemetry,
            span: Some(Box::new(Span {
                context,
                parent,
                has_remote_parent: false,
                kind,
                name: name.into(),
                start: SystemTime::now(),
                took: Duration::ZERO,
                attributes: Vec::with_capacity(16),
                events: Vec::new(),
                links: Vec::new(),
                is_error: false,
                message: None,
            })),
            begun: Instant::now(),
        }
    }

    /// Its trace and its id; `None` once it has ended.
    pub fn context(&self) -> Option<&TraceContext> {
        self.span.as_ref().map(|span| &span.context)
    }

    /// Says that the parent is a span of another process.
    pub fn set_remote_parent(&mut self) {
        self.change(|span| span.has_remote_parent = true);
    }

    /// Renames the span.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        self.change(|span| span.name = name.into());
    }

    /// Adds an attribute.
    pub fn set<'a>(&mut self, name: &'static str, value: impl Into<Value<'a>>) {
        let value = value.into().into_owned();
        self.change(
            |span| match span.attributes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => span.attributes.push((name, value)),
            },
        );
    }

    /// Adds a span that it belongs to besides its parent.
    pub fn link(&mut self, context: TraceContext) {
        self.change(|span| span.links.push(context));
    }

    /// Adds something that happens now.
    pub fn event(&mut self, name: &'static str, attributes: Vec<Attribute<'static>>) {
        let at = SystemTime::now();
        self.change(|span| span.events.push(SpanEvent { name, at, attributes }));
    }

    /// Says that the operation has failed: a word for the class of the error, and a text for people.
    pub fn fail<'a>(&mut self, error: impl Into<Value<'a>>, message: Option<String>) {
        self.set("error.type", error);
        self.change(|span| {
            span.is_error = true;
            span.message = message;
        });
    }

    /// Ends the span.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(mut span) = mem::take(&mut self.span) {
            span.took = self.begun.elapsed();
            self.telemetry.finish(*span);
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Span)) {
        if let Some(span) = &mut self.span {
            change(span);
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if self.span.is_some() {
            self.fail("cancelled", None);
            self.end();
        }
    }
}
