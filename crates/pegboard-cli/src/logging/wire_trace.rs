//! Writes the messages between the board and its servers to a file, one JSON object per line. The library has masked them.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use pegboard::Timestamp;
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, filter::Targets, layer::Context, registry::LookupSpan};

use super::event_fields::{EventFields, unescape};

/// The target of the library's trace of messages.
const WIRE: &str = "pegboard::wire";

/// How many messages could not be written, and why the first one could not. Global, like the subscriber.
static LOST: Mutex<Option<(u64, io::Error)>> = Mutex::new(None);

/// The warning that messages are missing in the trace, if some are.
pub(crate) fn incomplete_trace() -> Option<String> {
    let lost = LOST.lock().take()?;
    Some(match lost {
        (1, why) => format!("the trace of `--trace-wire` lacks a message, which could not be written: {why}"),
        (count, why) => {
            format!("the trace of `--trace-wire` lacks {count} messages, which could not be written: {why}")
        }
    })
}

/// A file with messages.
#[derive(Debug)]
struct WireTrace(Mutex<File>);

/// The layer that writes to a file. The file is appended to, and only its user can read it.
pub(super) fn layer<S>(path: &Path) -> io::Result<impl Layer<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // The mode above is for new files only.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    let trace = WireTrace(Mutex::new(file));
    Ok(trace.with_filter(Targets::new().with_target(WIRE, Level::TRACE)))
}

impl<S: Subscriber> Layer<S> for WireTrace {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = line(&EventFields::read(event), Timestamp::now()).to_string() + "\n";
        let mut file = self.0.lock();
        // A full disk must not stop the command that is traced.
        if let Err(error) = file.write_all(line.as_bytes()) {
            let mut lost = LOST.lock();
            lost.get_or_insert((0, error)).0 += 1;
        }
    }
}

/// The line of a message. One that the library has cut is text; the user's input has no content.
fn line(fields: &EventFields, at: Timestamp) -> Value {
    let messages: Vec<&str> = fields.all("message").collect();
    // The text of the event comes before its fields, of which one is called `message` too.
    let (what, text) = match messages.as_slice() {
        [what, text] => (*what, Some(unescape(text))),
        [what] => (*what, None),
        _ => ("", None),
    };
    let direction = if what == "received" { "received" } else { "sent" };
    let bytes: Option<u64> = fields.get("bytes").and_then(|bytes| bytes.parse().ok());
    let mut line = json!({"at": at, "server": fields.get("server"), "direction": direction, "bytes": bytes});
    match text.map(|text| serde_json::from_str(&text).map_err(|_| text)) {
        Some(Ok(message)) => line["message"] = message,
        Some(Err(text)) => line["text"] = text.into(),
        None => line["hidden"] = json!(fields.get("method").unwrap_or("user input")),
    }
    line
}
