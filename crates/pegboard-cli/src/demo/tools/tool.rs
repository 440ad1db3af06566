//! What every tool takes and returns, and the checks of its arguments.

use std::path::Path;

use pegboard_gateway::{Exchange, LogLevel};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::demo::fields::object;

/// The context of a tool call.
#[derive(Clone, Copy, Debug)]
pub(in crate::demo) struct Call<'a> {
    pub(in crate::demo) folder: &'a Path,
    pub(in crate::demo) exchange: &'a Exchange,
    pub(in crate::demo) cancelled: &'a CancellationToken,
}

impl Call<'_> {
    /// Reports progress, if the client asked for it.
    pub(super) async fn progress(&self, step: u64, steps: u64) {
        let message = format!("step {step} of {steps}");
        let fields = [
            ("progress", json!(step)),
            ("total", json!(steps)),
            ("message", json!(message)),
        ];
        self.exchange.progress(object(fields)).await;
    }

    /// Sends a log message, if the client asked for those of this level.
    pub(super) async fn log(&self, level: LogLevel, data: Value) {
        let params = object([("logger", json!("demo")), ("data", data)]);
        self.exchange.log(level, params).await;
    }
}

/// The result of a tool. The content blocks are MCP's JSON.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) content: Vec<Value>,
    pub(super) structured: Option<Value>,
}

/// Why a tool failed, as a message to the model.
#[derive(Debug, PartialEq)]
pub(super) struct Failure(pub(super) String);

/// Parses the arguments. An error is a tool failure and not a JSON-RPC error, so that the model sees it and can retry.
pub(super) fn arguments_of<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Failure> {
    T::deserialize(Value::Object(arguments)).map_err(|error| Failure(format!("invalid arguments: {error}")))
}

/// Checks a number against the bounds in the input schema.
pub(super) fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64, Failure> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Failure(format!(
        "invalid arguments: `{name}` must be {least} to {most}, not {value}"
    )))
}

/// Checks the length of a text in characters against the input schema.
pub(super) fn at_most(name: &str, value: &str, most: usize) -> Result<(), Failure> {
    // Counting stops one past the bound, whatever the length.
    if value.chars().nth(most).is_none() {
        return Ok(());
    }
    Err(Failure(format!(
        "invalid arguments: `{name}` has more than {most} characters"
    )))
}

pub(super) fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

impl Output {
    pub(super) fn text(line: impl Into<String>) -> Self {
        Self {
            content: vec![text(line)],
            structured: None,
        }
    }

    /// Structured content, and the same value as text for clients that read only text.
    pub(super) fn structured(value: Value) -> Self {
        Self {
            content: vec![text(value.to_string())],
            structured: Some(value),
        }
    }
}

/// The annotations of a read-only tool without network access, which every tool here is.
pub(super) fn harmless() -> Value {
    json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_named_when_they_are_broken() {
        assert_eq!(within("n", 5, 1, 5), Ok(5));
        assert_eq!(
            within("n", 6, 1, 5),
            Err(Failure("invalid arguments: `n` must be 1 to 5, not 6".into()))
        );
        assert_eq!(at_most("q", "äöü", 3), Ok(()));
        assert!(at_most("q", "äöü!", 3).is_err());
    }
}
