//! Log lines on stderr. They quote servers, so they are sanitized like all other output.

mod event_fields;
mod json_fields;
mod line_filter;
mod log_export;
mod log_lines;
mod noise;
mod of_request;
mod plain_fields;
mod sentence;
mod server_logs;
mod wire_trace;
mod wire_watch;

pub(crate) use log_export::export_to;
pub(crate) use log_lines::{LogLines, json_line, time};
pub(crate) use noise::stdout_noise;
pub(crate) use server_logs::{LogLine, ServerLogs};
pub(crate) use wire_trace::incomplete_trace;
pub(crate) use wire_watch::{Exchanged, take_exchanged};

use std::{fmt, io};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    Layer as _,
    filter::Targets,
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter, format},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use line_filter::LineFilter;

use crate::{
    cli::Global,
    output::{self, Output},
};

/// Why the log cannot be written: the problem, and what to do about it.
#[derive(Debug)]
pub(crate) struct LogError {
    pub(crate) problem: String,
    pub(crate) hint: &'static str,
}

/// What a command needs of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogUse {
    /// It runs until it is stopped, and so its log is all that an operator sees.
    keeps_running: bool,
    /// It shows what servers write, which is kept in memory.
    keeps_lines: bool,
    /// It reports what the library warns of as findings.
    finds_problems: bool,
}

impl LogUse {
    /// Warnings only.
    pub(crate) const BRIEF: Self = Self {
        keeps_running: false,
        keeps_lines: false,
        finds_problems: false,
    };
    /// The log of a command that runs until it is stopped.
    pub(crate) const RUNNING: Self = Self {
        keeps_running: true,
        ..Self::BRIEF
    };
    /// The log of a command that runs until it is stopped, and shows what servers write.
    pub(crate) const SERVING: Self = Self {
        keeps_lines: true,
        ..Self::RUNNING
    };
    /// The log of a command that shows what servers write.
    pub(crate) const KEPT: Self = Self {
        keeps_lines: true,
        ..Self::BRIEF
    };
    /// Whether the command runs until it is stopped.
    pub(crate) fn keeps_running(self) -> bool {
        self.keeps_running
    }

    /// The log of a command that reports warnings as findings.
    pub(crate) const FINDINGS: Self = Self {
        finds_problems: true,
        ..Self::BRIEF
    };
}

/// Installs the subscriber. Returns what servers write, which is kept only for commands that show it.
pub(crate) fn start(global: &Global, output: &Output, uses: LogUse) -> Result<ServerLogs, LogError> {
    // What happens to the servers of a gateway, besides its warnings.
    let is_gateway = uses.keeps_running && uses.keeps_lines;
    let has_named = is_gateway && global.log.is_none() && global.verbose == 0 && global.quiet == 0;
    let filter = match (&global.log, global.verbose, global.quiet) {
        (Some(filter), ..) => filter.as_str(),
        (None, _, 2..) => "off",
        (None, _, 1) => "error",
        (None, 0, 0) if uses.keeps_running => "warn",
        // It reports what the library warns of as findings.
        (None, 0, 0) if uses.finds_problems => "error",
        // Other commands report failed starts themselves, with a hint.
        (None, 0, 0) => "warn,pegboard::start=error",
        (None, 1, 0) => "warn,pegboard=info",
        (None, 2, 0) => "warn,pegboard=debug",
        (None, _, 0) => "info,pegboard=trace",
    };
    let filter = filter.parse::<Targets>().map_err(|error| LogError {
        problem: format!("the log filter `{filter}` is wrong: {error}"),
        hint: "write a level such as `debug`, or `target=level` pairs with commas between them",
    })?;
    let filter = LineFilter::new(filter, has_named);
    let form = LogLines::choose(global.log_format, is_gateway);
    output.set_log_lines(form);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .event_format(LineFormat {
            has_fields: global.log.is_some() || global.verbose > 0,
            form,
        })
        .fmt_fields(plain_fields::PlainFields)
        .with_writer(LogWriter {
            output: output.clone(),
            form,
        })
        .with_filter(filter.clone());
    // A layer that is `None` would be interested in everything, and each call would pay for spans that nothing reads.
    let mut layers = vec![lines.boxed()];
    if let Some(path) = &global.trace_wire {
        let trace = wire_trace::layer(path).map_err(|error| LogError {
            problem: format!("{} cannot be written: {error}", path.display()),
            hint: "`--trace-wire` takes a file in a folder that exists",
        })?;
        layers.push(trace.boxed());
    }
    if uses.keeps_running {
        layers.push(log_export::layer(filter).boxed());
    }
    let logs = ServerLogs::default();
    if uses.keeps_lines {
        layers.push(logs.layer().boxed());
    }
    if uses.finds_problems {
        layers.extend([noise::layer().boxed(), wire_watch::layer().boxed()]);
    }
    tracing_subscriber::registry().with(layers).init();
    Ok(logs)
}

/// Formats events like our errors and warnings: as sentences; with `-v` or `--log` as `level: supervisor server=x: message key=value`.
struct LineFormat {
    has_fields: bool,
    form: LogLines,
}

/// The name of an event that programs may look for. Events without a name of their own have the module that they are in.
fn event_name(event: &Event<'_>) -> &'static str {
    let metadata = event.metadata();
    match metadata.name().starts_with("event ") {
        true => metadata.target(),
        false => metadata.name(),
    }
}

/// The value of a field in the text of a span's fields.
fn span_field(fields: &str, name: &str) -> Option<String> {
    let mut words = fields.split(' ');
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

impl LineFormat {
    /// The event as a JSON object. The server of its span, and the ids of the request and its trace, are fields of it.
    fn write_json<S, N>(ctx: &FmtContext<'_, S, N>, writer: &mut format::Writer<'_>, event: &Event<'_>) -> fmt::Result
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        N: for<'a> FormatFields<'a> + 'static,
    {
        let mut fields = json_fields::JsonFields::default();
        event.record(&mut fields);
        let mut fields = fields.0;
        for span in ctx.event_scope().into_iter().flatten() {
            let Some(text) = span
                .extensions()
                .get::<FormattedFields<N>>()
                .map(|fields| fields.fields.clone())
            else {
                continue;
            };
            let named = [("server", "server"), ("id", "call_id"), ("principal", "principal")];
            for (field, name) in named {
                if let Some(value) = span_field(&text, field) {
                    fields.entry(name).or_insert_with(|| value.into());
                }
            }
        }
        for (name, id) in of_request::ids() {
            fields.entry(name).or_insert_with(|| id.into());
        }
        writeln!(writer, "{}", json_line(level_name(event), event_name(event), fields))
    }
}

fn level_name(event: &Event<'_>) -> &'static str {
    match *event.metadata().level() {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
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
        match self.form {
            LogLines::Json => return Self::write_json(ctx, &mut writer, event),
            LogLines::Dated | LogLines::Sentences => write!(writer, "{}: ", level_name(event))?,
        }
        if !self.has_fields {
            let spans = ctx.event_scope().into_iter().flatten();
            let server = spans
                .filter_map(|span| sentence::server_of_span(span.extensions().get::<FormattedFields<N>>()?))
                .next();
            return writeln!(writer, "{}", sentence::of(event, server.as_deref()));
        }
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
        for (name, id) in of_request::ids() {
            write!(writer, " {name}={id}")?;
        }
        writer.write_char('\n')
    }
}

/// Writes log lines through [`Output`], which keeps the spinner intact.
#[derive(Clone)]
struct LogWriter {
    output: Output,
    form: LogLines,
}

impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let dated = match self.form {
            LogLines::Json => {
                self.output.write_log(&text);
                return Ok(line.len());
            }
            LogLines::Dated => format!("{} {text}", time()),
            LogLines::Sentences => text.into_owned(),
        };
        let text = output::indent(&dated);
        self.output
            .write_log(&(output::wrap_message(&text, output::message_width(), 0) + "\n"));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
