//! Keeps the last lines that servers wrote to stderr or logged, for `pegboard logs`. The library has masked them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use pegboard::{Timestamp, watch::LogLevel};
use pegboard_base::sync::Mutex;
use serde::{Deserialize, Serialize};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, filter::Targets, layer::Context, registry::LookupSpan};

use super::event_fields::{EventFields, unescape};

/// The targets of the library's events about what servers write.
const STDERR: &str = "pegboard::stderr";
const NOTIFICATIONS: &str = "pegboard::server_log";

/// How many lines of a server are kept, and how long a line may be.
const KEPT: usize = 1000;
const MAX_LINE: usize = 4 << 10;
/// How many servers are kept.
const MAX_SERVERS: usize = 256;

/// What servers wrote. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerLogs(Arc<Mutex<KeptLines>>);

#[derive(Debug, Default)]
struct KeptLines {
    lines: BTreeMap<String, VecDeque<LogLine>>,
    /// The number of lines so far.
    count: u64,
}

/// A line that a server wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// Increases from line to line.
    pub(crate) number: u64,
    pub(crate) at: Timestamp,
    /// `None` for a line on stderr.
    pub(crate) level: Option<LogLevel>,
    /// The component of the server that logged it.
    pub(crate) logger: Option<String>,
    pub(crate) text: String,
}

impl ServerLogs {
    /// The layer that keeps lines.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let wanted = Targets::new()
            .with_target(STDERR, Level::DEBUG)
            .with_target(NOTIFICATIONS, Level::DEBUG);
        self.clone().with_filter(wanted)
    }

    /// The lines of a server after the one with this number.
    pub(crate) fn after(&self, server: &str, number: u64) -> Vec<LogLine> {
        let kept = self.0.lock();
        let lines = kept.lines.get(server).into_iter().flatten();
        lines.filter(|line| line.number > number).cloned().collect()
    }

    fn keep(&self, server: &str, mut line: LogLine) {
        line.text.truncate(line.text.floor_char_boundary(MAX_LINE));
        let mut kept = self.0.lock();
        kept.count += 1;
        line.number = kept.count;
        if !kept.lines.contains_key(server) && kept.lines.len() >= MAX_SERVERS {
            kept.lines.pop_first();
        }
        let lines = kept.lines.entry(server.to_owned()).or_default();
        if lines.len() >= KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl<S: Subscriber> Layer<S> for ServerLogs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let fields = EventFields::read(event);
        let (Some(server), Some(text)) = (fields.get("server"), fields.get("text")) else {
            return;
        };
        let level = fields.get("level").and_then(|level| level.parse().ok());
        let logger = fields.get("logger").filter(|logger| !logger.is_empty());
        let line = LogLine {
            number: 0,
            at: Timestamp::now(),
            level,
            logger: logger.map(unescape),
            text: unescape(text),
        };
        self.keep(server, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_each_server_are_kept_in_order() {
        let logs = ServerLogs::default();
        for n in 0..KEPT + 5 {
            let text = format!("{n}{}", "é".repeat(MAX_LINE));
            logs.keep(
                "a",
                LogLine {
                    number: 0,
                    at: Timestamp::UNIX_EPOCH,
                    level: None,
                    logger: None,
                    text,
                },
            );
        }
        let lines = logs.after("a", 0);
        assert_eq!((lines.len(), lines[0].number), (KEPT, 6));
        assert!(lines.iter().all(|line| line.text.len() <= MAX_LINE));
        assert_eq!(logs.after("a", KEPT as u64 + 4).len(), 1);
        assert_eq!(logs.after("b", 0), []);
    }
}
