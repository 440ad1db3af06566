//! Gives log lines to the exporter of telemetry, once there is one.

use std::{sync::OnceLock, time::SystemTime};

use pegboard::telemetry::{current, current_request};
use pegboard_telemetry::{Exporter, LogRecord, Severity};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, filter::FilterExt as _, fmt::FormattedFields, layer::Context, registry::LookupSpan};

use super::{event_fields::EventFields, line_filter::LineFilter, plain_fields::PlainFields, sentence};

/// What the exporter says of itself. A collector that cannot be reached is not told so.
const OWN: &str = "pegboard::telemetry";

/// The exporter of this process. The log is started before the config is read, which says whether there is one.
static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// Sends the lines of the log from now on.
pub(crate) fn export_to(exporter: Exporter) {
    // A process starts one exporter.
    let _ = EXPORTER.set(exporter);
}

/// The layer that sends what passes the filter of the log.
pub(super) fn layer<S>(filter: LineFilter) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let others = tracing_subscriber::filter::filter_fn(|metadata| metadata.target() != OWN);
    LogExport.with_filter(filter.and(others))
}

struct LogExport;

impl<S> Layer<S> for LogExport
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(exporter) = EXPORTER.get() else { return };
        let fields = EventFields::read(event);
        let mut spans = context.event_scope(event).into_iter().flatten();
        let server =
            spans.find_map(|span| sentence::server_of_span(span.extensions().get::<FormattedFields<PlainFields>>()?));
        let mut attributes = vec![("log.target".to_owned(), event.metadata().target().to_owned())];
        attributes.extend(server.map(|server| ("server".to_owned(), server)));
        let request = current_request();
        attributes.extend(
            request
                .iter()
                .map(|request| ("request_id".to_owned(), request.to_string())),
        );
        let others = fields.iter().filter(|(name, _)| *name != "message");
        attributes.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
        exporter.log(LogRecord {
            at: SystemTime::now(),
            severity: match *event.metadata().level() {
                Level::ERROR => Severity::Error,
                Level::WARN => Severity::Warn,
                Level::INFO => Severity::Info,
                Level::DEBUG => Severity::Debug,
                Level::TRACE => Severity::Trace,
            },
            body: fields.get("message").unwrap_or_default().to_owned(),
            attributes,
            span: current().or_else(|| request.as_ref()?.span()),
        });
    }
}
