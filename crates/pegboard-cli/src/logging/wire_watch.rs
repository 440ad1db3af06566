//! Notes what `doctor` must know about the messages of servers: JSON that is no MCP message.

use std::collections::BTreeMap;

use pegboard_base::sync::Mutex;
use serde_json::Value;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, filter::Targets, layer::Context, registry::LookupSpan};

use super::event_fields::{EventFields, unescape};

/// The target of the library's trace of messages. The library has masked them.
const WIRE: &str = "pegboard::wire";
/// The name of the event of a message from a server.
const RECEIVED: &str = "received";
/// The most servers that are watched.
const MAX_SERVERS: usize = 1000;
/// The most characters of a message that are kept.
const MAX_SHOWN: usize = 200;

static SEEN: Mutex<BTreeMap<String, Exchanged>> = Mutex::new(BTreeMap::new());

/// What was exchanged with one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exchanged {
    /// The first JSON from the server that is no message of the protocol.
    pub(crate) other_json: Option<String>,
}

/// What was exchanged with each server since the last call.
pub(crate) fn take_exchanged() -> BTreeMap<String, Exchanged> {
    std::mem::take(&mut *SEEN.lock())
}

/// The layer that watches.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Watch.with_filter(Targets::new().with_target(WIRE, Level::TRACE))
}

struct Watch;

impl<S: Subscriber> Layer<S> for Watch {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let fields = EventFields::read(event);
        // The text of the event comes before its field of the same name.
        let messages: Vec<&str> = fields.all("message").collect();
        let (Some(server), [what, text]) = (fields.get("server"), messages.as_slice()) else {
            return;
        };
        let mut seen = SEEN.lock();
        if seen.len() < MAX_SERVERS || seen.contains_key(server) {
            let exchanged = seen.entry(server.to_owned()).or_default();
            if *what == RECEIVED {
                exchanged.note(text);
            }
        }
    }
}

impl Exchanged {
    /// Notes a message from the server as the library quotes it.
    fn note(&mut self, quoted: &str) {
        if self.other_json.is_none() && is_other_json(quoted) {
            self.other_json = Some(unescape(quoted).chars().take(MAX_SHOWN).collect());
        }
    }
}

/// Whether a text is complete JSON without the member that every message has. The library marks a text that it has cut with an ellipsis.
fn is_other_json(quoted: &str) -> bool {
    !quoted.ends_with('…') && !quoted.contains("jsonrpc") && serde_json::from_str::<Value>(&unescape(quoted)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_json_that_is_no_message_is_kept() {
        let mut seen = Exchanged::default();
        seen.note(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        seen.note(r#"{"level":30,"msg":"up"}"#);
        seen.note("{}");
        seen.note(r#"{"result":{"a":"…"#);
        assert_eq!(
            seen,
            Exchanged {
                other_json: Some(r#"{"level":30,"msg":"up"}"#.to_owned()),
            }
        );
    }

    #[test]
    fn a_message_that_was_cut_is_not_taken_for_other_json() {
        let mut seen = Exchanged::default();
        seen.note("{\"result\":{\"tools\":[]…");
        assert_eq!(seen, Exchanged::default());
    }
}
