//! The capabilities of a client as a modern server is told them.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use pegboard_base::sync::Mutex;
use pegboard_protocol::capability::extension;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use crate::protocol::Client;

static NONE: LazyLock<Arc<RawValue>> = LazyLock::new(|| raw(&json!({})));

/// The capabilities that the last request declared, so that a client's requests do not convert the same ones each time.
#[derive(Debug, Default)]
pub(super) struct LastCapabilities(Mutex<Option<(Bytes, ForServers)>>);

/// What servers are told of a client.
#[derive(Clone, Debug)]
pub(super) struct ForServers {
    /// The JSON object in requests to modern servers.
    pub(super) json: Arc<RawValue>,
    /// Whether the client can be asked anything.
    pub(super) can_answer: bool,
    /// Whether a modern client polls tasks itself.
    pub(super) takes_tasks: bool,
}

impl LastCapabilities {
    /// Returns what servers are told of this client.
    pub(super) fn convert(&self, client: &Client) -> ForServers {
        let declared = client.capabilities();
        let mut last = self.0.lock();
        if let Some((known, converted)) = &*last
            && known == declared
        {
            return converted.clone();
        }
        let converted = ForServers::new(declared, client.version().is_modern());
        // A slice would keep the message that it is part of.
        *last = Some((Bytes::copy_from_slice(declared), converted.clone()));
        converted
    }
}

impl ForServers {
    fn new(declared: &[u8], is_modern: bool) -> Self {
        let mut declared: Map<String, Value> = serde_json::from_slice(declared).unwrap_or_default();
        let has = |name: &str| declared.get(name).is_some_and(Value::is_object);
        let can_answer = ["elicitation", "sampling", "roots"].into_iter().any(has);
        let takes_tasks = is_modern
            && declared
                .get("extensions")
                .is_some_and(|all| all[extension::TASKS].is_object());
        if !is_modern {
            modernise(&mut declared);
        }
        let json = if declared.is_empty() {
            NONE.clone()
        } else {
            raw(&Value::Object(declared))
        };
        Self {
            json,
            can_answer,
            takes_tasks,
        }
    }
}

/// Converts the capabilities of a legacy client. It does not poll tasks, but the board does that for it.
fn modernise(declared: &mut Map<String, Value>) {
    declared.remove("tasks");
    if declared.get("roots").is_some_and(Value::is_object) {
        declared.insert("roots".into(), json!({}));
    }
    // Before there were modes, elicitation meant forms.
    if let Some(Value::Object(modes)) = declared.get_mut("elicitation")
        && modes.is_empty()
    {
        modes.insert("form".into(), json!({}));
    }
    let extensions = declared.entry("extensions").or_insert_with(|| json!({}));
    if let Value::Object(extensions) = extensions {
        extensions.insert(extension::TASKS.into(), json!({}));
    }
}

fn raw(value: &Value) -> Arc<RawValue> {
    match to_raw_value(value) {
        Ok(raw) => raw.into(),
        Err(_) => unreachable!("a value can be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(declared: &Value, is_modern: bool) -> (Value, bool, bool) {
        let of = ForServers::new(declared.to_string().as_bytes(), is_modern);
        (
            serde_json::from_str(of.json.get()).unwrap(),
            of.can_answer,
            of.takes_tasks,
        )
    }

    #[test]
    fn a_modern_clients_capabilities_are_passed_on_as_they_are() {
        let declared =
            json!({"elicitation": {"url": {}}, "extensions": {extension::TASKS: {}, "x/y": {"z": 1}}, "unknown": {}});
        assert_eq!(converted(&declared, true), (declared, true, true));
        assert_eq!(converted(&json!({}), true), (json!({}), false, false));
    }

    #[test]
    fn those_of_a_legacy_client_are_converted() {
        let declared = json!({"elicitation": {}, "sampling": {"tools": {}}, "roots": {"listChanged": true},
            "tasks": {"list": {}}, "experimental": {"a": {}}});
        let expected = json!({"elicitation": {"form": {}}, "sampling": {"tools": {}}, "roots": {},
            "experimental": {"a": {}}, "extensions": {extension::TASKS: {}}});
        assert_eq!(converted(&declared, false), (expected, true, false));
        assert_eq!(
            converted(&json!({}), false),
            (json!({"extensions": {extension::TASKS: {}}}), false, false)
        );
    }
}
