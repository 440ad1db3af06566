//! [`PlainFields`]: fields as `key=value`, without those that only exporters of traces read.

use std::{error::Error, fmt};

use tracing::{
    field::{Field, Visit},
    span::Record,
};
use tracing_subscriber::{
    field::{RecordFields, VisitOutput},
    fmt::{
        FormatFields, FormattedFields,
        format::{DefaultVisitor, Writer},
    },
};

/// Fields of the conventions of OpenTelemetry that repeat what others say, by the beginnings of their names.
const OF_EXPORTERS: [&str; 5] = ["otel.", "mcp.", "gen_ai.operation.", "gen_ai.tool.call.", "error.type"];

/// Formats fields for people.
pub(super) struct PlainFields;

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        write(writer, fields, true)
    }

    fn add_fields(&self, current: &'w mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let is_empty = current.fields.is_empty();
        write(current.as_writer(), fields, is_empty)
    }
}

fn write(writer: Writer<'_>, fields: impl RecordFields, is_empty: bool) -> fmt::Result {
    let mut visitor = PlainVisitor(DefaultVisitor::new(writer, is_empty));
    fields.record(&mut visitor);
    visitor.0.finish()
}

struct PlainVisitor<'w>(DefaultVisitor<'w>);

impl Visit for PlainVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if is_for_people(field) {
            self.0.record_str(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        if is_for_people(field) {
            self.0.record_error(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if is_for_people(field) {
            self.0.record_debug(field, value);
        }
    }
}

fn is_for_people(field: &Field) -> bool {
    is_shown(field.name())
}

/// Whether a field of this name says something that no other field says.
pub(super) fn is_shown(name: &str) -> bool {
    !OF_EXPORTERS.iter().any(|beginning| name.starts_with(beginning))
}
