//! Log lines on stderr. They quote servers, so they are sanitized like all other output.

mod noise;

pub(crate) use noise::stdout_noise;

use std::{fmt, io};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter, format},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::{
    cli::{Global, Verb},
    output::{self, Output},
};

/// Installs the subscriber. Returns an error if the filter cannot be parsed.
pub(crate) fn start(global: &Global, output: &Output, verb: &Verb) -> Result<(), String> {
    let (keeps_running, reports_noise) = (verb.keeps_running(), matches!(verb, Verb::Doctor(_)));
    let filter = match (&global.log, global.verbose, global.quiet) {
        (Some(filter), ..) => filter.as_str(),
        (None, _, 2..) => "off",
        (None, _, 1) => "error",
        (None, 0, 0) if keeps_running => "warn",
        // It reports what the library warns of as findings.
        (None, 0, 0) if reports_noise => "error",
        // Other commands report failed starts themselves, with a hint.
        (None, 0, 0) => "warn,pegboard::start=error",
        (None, 1, 0) => "warn,pegboard=info",
        (None, 2, 0) => "warn,pegboard=debug",
        (None, _, 0) => "info,pegboard=trace",
    };
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("the log filter `{filter}` is wrong: {error}"))?;
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .event_format(Plain)
        .with_writer(Lines(output.clone()))
        .with_filter(filter);
    let noise = reports_noise.then(noise::layer);
    tracing_subscriber::registry().with(lines).with(noise).init();
    Ok(())
}

/// Formats events as `level: server name=x: message key=value`, like our errors and warnings.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: format::Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        write!(writer, "{level}: ")?;
        for span in ctx
            .event_scope()
            .into_iter()
            .flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            writer.write_str(span.name())?;
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                write!(writer, " {fields}")?;
            }
            writer.write_str(": ")?;
        }
        ctx.field_format().format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}

/// Writes log lines through [`Output`], which keeps the spinner intact.
#[derive(Clone)]
struct Lines(Output);

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.say(&(output::indented(&text) + "\n"));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
