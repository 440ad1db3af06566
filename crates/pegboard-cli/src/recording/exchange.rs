//! The lines of a recording: what the server says of itself, and requests with their answers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line {
    /// What the server said of itself.
    Server {
        at: String,
        server_info: Map<String, Value>,
        capabilities: Map<String, Value>,
        instructions: Option<String>,
    },
    /// A request and its answer.
    Exchange {
        at: String,
        method: String,
        params: Value,
        /// The result, unless the answer is an error.
        result: Option<Value>,
        error: Option<Value>,
    },
}

/// The params of a request without what differs from client to client.
pub(super) fn comparable(params: &Value) -> Value {
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
