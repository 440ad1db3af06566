//! Resources, prompts and completions of the demo server.

pub(super) mod completion;
pub(super) mod prompts;
pub(super) mod resources;

use pegboard_gateway::RpcError;
use serde_json::{Map, Value};

/// A required string parameter.
fn require_text<'a>(params: &'a Map<String, Value>, key: &str) -> Result<&'a str, RpcError> {
    let text = params.get(key).and_then(Value::as_str);
    text.ok_or_else(|| RpcError::invalid_params(format!("`{key}` is missing or not a string")))
}
