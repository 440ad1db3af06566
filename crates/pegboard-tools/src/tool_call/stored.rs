//! Calls in JSON, for programs that store a call before they make it.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};

use super::{ToolCall, generated_number};
use crate::{args::Arguments, filter::Selection, outcome::stored_millis};
use pegboard_config::Reading;

/// The JSON of a call: the body of the HTTP API's `call`, and the other options of a call. Options that are not set are left out.
#[derive(Serialize)]
struct WrittenCall<'a> {
    id: &'a str,
    /// Whether the caller set the id; written if not.
    #[serde(skip_serializing_if = "Clone::clone")]
    id_given: bool,
    name: &'a str,
    arguments: &'a Arguments,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<Reading>,
    #[serde(with = "stored_millis", skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<&'a Selection>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    meta: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    as_task: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_arguments: Option<&'a str>,
}

#[derive(Deserialize)]
struct StoredCall {
    id: Option<String>,
    id_given: Option<bool>,
    name: String,
    #[serde(default)]
    arguments: StoredArguments,
    text: Option<String>,
    reading: Option<Reading>,
    #[serde(default, with = "stored_millis")]
    timeout_ms: Option<Duration>,
    context: Option<String>,
    selection: Option<Selection>,
    #[serde(default)]
    meta: Map<String, Value>,
    key: Option<String>,
    #[serde(default)]
    as_task: bool,
    asked: Option<String>,
    #[serde(default)]
    notes: Vec<String>,
    invalid_arguments: Option<String>,
}

/// An object, or a text as a model wrote it.
#[derive(Default)]
struct StoredArguments {
    object: Arguments,
    text: Option<String>,
}

impl<'de> Deserialize<'de> for StoredArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match crate::args::unique_keys(deserializer)? {
            Value::String(text) => Ok(Self {
                object: Arguments::default(),
                text: Some(text),
            }),
            other => Ok(Self {
                object: Arguments::try_from(other).map_err(D::Error::custom)?,
                text: None,
            }),
        }
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = WrittenCall {
            id: &self.id,
            id_given: self.has_given_id(),
            name: &self.name,
            arguments: &self.arguments,
            text: self.text.as_deref(),
            reading: self.reading,
            timeout_ms: self.timeout,
            context: self.context.as_deref(),
            selection: self.selection.as_deref(),
            meta: &self.meta,
            key: self.key.as_deref(),
            as_task: self.as_task,
            asked: self.asked.as_deref(),
            notes: &self.notes,
            invalid_arguments: self.invalid_arguments.as_deref(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredCall::deserialize(deserializer)?;
        let mut call = Self::new(stored.name);
        if let Some(id) = stored.id {
            let number = generated_number(&id).filter(|_| stored.id_given == Some(false));
            call = call.id(id);
            call.generated_number = number;
        }
        call.arguments = stored.arguments.object;
        call.text = stored.text.or(stored.arguments.text);
        call.reading = stored.reading;
        call.timeout = stored.timeout_ms;
        call.context = stored.context;
        call.selection = stored.selection.map(Arc::new);
        call.meta = stored.meta;
        call.key = stored.key;
        call.as_task = stored.as_task;
        call.asked = stored.asked;
        call.notes = stored.notes;
        call.invalid_arguments = stored.invalid_arguments;
        Ok(call)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Compares by the text of all fields; the arguments are an object whose keys are sorted when it is read.
    fn check(call: &ToolCall) -> Value {
        let written = serde_json::to_value(call).unwrap();
        let read: ToolCall = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{call:?}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        written
    }

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let plain = ToolCall::new("time.now").id("1");
        assert_eq!(check(&plain), json!({"id": "1", "name": "time.now", "arguments": {}}));

        let mut full = ToolCall::new("k8s.logs")
            .arguments(json!({"lines": 5, "pod": "a"}))
            .text("pod: a")
            .reading(Reading::Guided)
            .id("toolu_1")
            .timeout(Duration::from_micros(1_500_250))
            .context("why is it down?")
            .selection(Selection::new().tools("k8s", ["get_*"]))
            .meta("tenant", "blue")
            .key("k-1")
            .as_task();
        full.asked = Some("call_tool".to_owned());
        full.notes = vec!["a comma was removed".to_owned()];
        full.invalid_arguments = Some("no object".to_owned());
        let written = check(&full);
        assert_eq!(written["timeout_ms"], 1500.25);
        assert_eq!(
            written["selection"],
            json!({"servers": [{"name": "k8s", "tools": ["get_*"]}]})
        );
    }

    #[test]
    fn a_generated_id_stays_one() {
        let call = ToolCall::new("time.now");
        assert_eq!(check(&call)["id_given"], false);
        let read: ToolCall = serde_json::from_value(json!({"id": "call-7", "name": "time.now"})).unwrap();
        assert!(read.has_given_id());
    }

    #[test]
    fn a_name_is_enough_and_arguments_may_be_a_text() {
        let read: ToolCall = serde_json::from_value(json!({"name": "time.now", "colour": "blue"})).unwrap();
        assert!(!read.has_given_id() && read.arguments.as_str() == "{}");
        let read: ToolCall = serde_json::from_value(json!({"name": "x", "arguments": "zone: UTC"})).unwrap();
        assert_eq!(read.text.as_deref(), Some("zone: UTC"));
        let null: ToolCall = serde_json::from_value(json!({"name": "x", "arguments": null})).unwrap();
        assert_eq!(null.arguments.as_str(), "{}");
        for bad in [
            json!({}),
            json!({"name": "x", "arguments": [1]}),
            json!({"name": "x", "timeout_ms": -1}),
        ] {
            assert!(serde_json::from_value::<ToolCall>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_channel_for_progress_is_not_stored() {
        let (progress, _receiver) = tokio::sync::mpsc::channel(1);
        let call = ToolCall::new("time.now").progress(progress);
        let read: ToolCall = serde_json::from_value(serde_json::to_value(&call).unwrap()).unwrap();
        assert!(read.progress.is_none());
    }

    #[test]
    fn a_call_can_be_part_of_a_tagged_enum() {
        #[derive(Serialize, Deserialize)]
        #[serde(tag = "step", rename_all = "snake_case")]
        enum Step {
            Call(ToolCall),
        }
        let step = Step::Call(ToolCall::new("x.y").arguments(json!({"a": [1, {"b": null}]})));
        let text = serde_json::to_string(&step).unwrap();
        let Step::Call(read) = serde_json::from_str(&text).unwrap();
        assert_eq!(read.arguments.as_str(), r#"{"a":[1,{"b":null}]}"#);
    }
}
