//! The lines of a recording: what the server says of itself, and requests with their answers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

/// A line of a recording.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RecordedLine {
    Server(About),
    Exchange(Answered),
}

/// What the server said of itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) at: String,
    pub(super) server_info: Map<String, Value>,
    pub(super) capabilities: Map<String, Value>,
    pub(super) instructions: Option<String>,
}

/// A request and its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) at: String,
    pub(super) method: String,
    pub(super) params: Value,
    /// The result, unless the answer is an error. It is a text because the order of its keys says in which order people give arguments.
    pub(super) result: Option<Box<RawValue>>,
    pub(super) error: Option<Value>,
}

impl RecordedLine {
    pub(super) fn read(text: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum LineKind {
            Server,
            Exchange,
        }
        #[derive(Deserialize)]
        struct Tag {
            kind: LineKind,
        }
        // A tagged enum would read the text of a result into a tree.
        let tag: Tag = serde_json::from_str(text)?;
        Ok(match tag.kind {
            LineKind::Server => Self::Server(serde_json::from_str(text)?),
            LineKind::Exchange => Self::Exchange(serde_json::from_str(text)?),
        })
    }
}

/// The params of a request without what differs from client to client.
pub(super) fn to_comparable(params: &Value) -> Value {
    match params {
        Value::Object(map) => {
            let mut map = map.clone();
            map.remove("_meta");
            map.retain(|_, value| !value.is_null());
            Value::Object(map)
        }
        Value::Null => Value::Object(Map::new()),
        other => other.clone(),
    }
}
