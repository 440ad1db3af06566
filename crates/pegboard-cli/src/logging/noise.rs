//! Collects the text that servers print to stdout, where only messages belong, for `doctor`.

use std::fmt;

use pegboard_base::sync::Mutex;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, filter::FilterFn, layer::Context, registry::LookupSpan};

/// The target of the library's warning of such text, once for each connection.
const TARGET: &str = "pegboard::stdout_noise";
/// The most lines that are kept.
const MAX_LINES: usize = 1000;

static LINES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The servers that printed text, each with a first line. Later calls return what came since.
pub(crate) fn stdout_noise() -> Vec<(String, String)> {
    std::mem::take(&mut *LINES.lock())
}

/// The layer that collects.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let is_meant = |metadata: &Metadata<'_>| metadata.target() == TARGET && *metadata.level() == Level::WARN;
    Collect.with_filter(FilterFn::new(is_meant).with_max_level_hint(Level::WARN))
}

struct Collect;

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = NoiseFields::default();
        event.record(&mut fields);
        let mut lines = LINES.lock();
        if lines.len() < MAX_LINES {
            lines.push((fields.server, fields.line));
        }
    }
}

#[derive(Default)]
struct NoiseFields {
    server: String,
    line: String,
}

impl Visit for NoiseFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "server" => value.clone_into(&mut self.server),
            "line" => value.clone_into(&mut self.line),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "line" {
            self.line = format!("{value:?}");
        }
    }
}
