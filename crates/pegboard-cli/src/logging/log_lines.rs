//! [`LogLines`]: which form the lines of the log have.

use std::io::IsTerminal as _;

use pegboard::Timestamp;
use serde_json::{Map, Value};

use crate::{cli::LogFormat, output::moment};

/// The form of the lines on stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogLines {
    /// As sentences for a person who waits for a command.
    #[default]
    Sentences,
    /// The same, each after its time, for a log that is read later.
    Dated,
    /// One JSON object in each line.
    Json,
}

impl LogLines {
    /// The form that the options ask for, or that fits where the log of a gateway goes.
    pub(super) fn choose(format: Option<LogFormat>, is_gateway: bool) -> Self {
        match format {
            Some(LogFormat::Json) => Self::Json,
            None if is_gateway && is_in_container() && !std::io::stderr().is_terminal() => Self::Json,
            // The journal of systemd adds the time.
            _ if is_gateway && std::env::var_os("JOURNAL_STREAM").is_none() => Self::Dated,
            _ => Self::Sentences,
        }
    }
}

/// Whether this is the first process of a container, whose log is read by programs. On other machines the init of the system is.
fn is_in_container() -> bool {
    std::process::id() == 1
}

/// The time as log lines have it.
pub(crate) fn time() -> String {
    moment(Timestamp::now(), "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// A line in JSON: its time, level and event, and then its fields. A field never replaces one of these.
pub(crate) fn json_line(level: &str, event: &str, fields: Map<String, Value>) -> String {
    let mut line = Map::new();
    line.insert("time".to_owned(), time().into());
    line.insert("level".to_owned(), level.into());
    line.insert("event".to_owned(), event.into());
    for (name, value) in fields {
        line.entry(name).or_insert(value);
    }
    Value::Object(line).to_string()
}
