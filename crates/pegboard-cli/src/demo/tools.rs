//! The tools: their definitions, and the way from a `tools/call` to the tool and back.

mod calculate;
mod clock;
mod count;
mod draw;
mod echo;
mod fail;
pub(super) mod png;
mod search;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::message::Fault;
use super::notices::{LogLevel, Notices};

/// What a running tool may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) folder: &'a Path,
    pub(super) notices: &'a Notices,
    pub(super) cancelled: &'a CancellationToken,
}

/// What a tool gives back. The content blocks are in MCP's own shape.
#[derive(Debug, Default)]
struct Output {
    content: Vec<Value>,
    structured: Option<Value>,
}

/// Why a tool failed, in words for the model that called it.
#[derive(Debug, PartialEq)]
struct Failure(String);

/// The list of tools, in the order in which people should meet them.
pub(super) fn definitions() -> Vec<Value> {
    vec![
        clock::definition(),
        calculate::definition(),
        search::definition(),
        echo::definition(),
        draw::definition(),
        count::definition(),
        fail::definition(),
    ]
}

/// Runs the tool that `params` names. A tool that fails is a result with `isError`; only a call that reaches no tool
/// is a fault.
pub(super) async fn call(mut params: Map<String, Value>, call: Call<'_>) -> Result<Map<String, Value>, Fault> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(Fault::invalid_params("`name` is missing or not a string"));
    };
    let arguments = match params.remove("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(Fault::invalid_params("`arguments` must be an object")),
    };
    call.notices
        .log(LogLevel::Debug, json!({"event": "called", "tool": name}))
        .await;
    let outcome = match name.as_str() {
        "now" => arguments_of(arguments).and_then(clock::run),
        "calculate" => arguments_of(arguments).and_then(calculate::run),
        "search_text" => match arguments_of(arguments) {
            Ok(arguments) => search::run(arguments, call).await,
            Err(failure) => Err(failure),
        },
        "echo" => arguments_of(arguments).and_then(echo::run),
        "draw" => arguments_of(arguments).and_then(draw::run),
        "count_slowly" => match arguments_of(arguments) {
            Ok(arguments) => count::run(arguments, call).await,
            Err(failure) => Err(failure),
        },
        "fail" => arguments_of(arguments).and_then(fail::run),
        _ => return Err(Fault::invalid_params(format!("unknown tool `{name}`"))),
    };
    if let Err(Failure(message)) = &outcome {
        call.notices
            .log(
                LogLevel::Warning,
                json!({"event": "failed", "tool": name, "message": message}),
            )
            .await;
    }
    Ok(result(outcome))
}

fn result(outcome: Result<Output, Failure>) -> Map<String, Value> {
    let mut result = Map::new();
    match outcome {
        Ok(output) => {
            result.insert("content".into(), Value::Array(output.content));
            if let Some(structured) = output.structured {
                result.insert("structuredContent".into(), structured);
            }
            result.insert("isError".into(), json!(false));
        }
        Err(Failure(message)) => {
            result.insert("content".into(), json!([text(message)]));
            result.insert("isError".into(), json!(true));
        }
    }
    result
}

/// Wrong arguments are told to the model, which can then call again with better ones.
fn arguments_of<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Failure> {
    T::deserialize(Value::Object(arguments)).map_err(|error| Failure(format!("invalid arguments: {error}")))
}

/// Refuses a number outside the bounds that the input schema names.
fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64, Failure> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Failure(format!(
        "invalid arguments: `{name}` must be {least} to {most}, not {value}"
    )))
}

/// Refuses a text with more characters than the input schema names.
fn at_most(name: &str, value: &str, most: usize) -> Result<(), Failure> {
    // Counting stops one past the bound, so a huge text costs no more than a long one.
    if value.chars().nth(most).is_none() {
        return Ok(());
    }
    Err(Failure(format!(
        "invalid arguments: `{name}` has more than {most} characters"
    )))
}

fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

impl Output {
    fn text(line: impl Into<String>) -> Self {
        Self {
            content: vec![text(line)],
            structured: None,
        }
    }

    /// The value for programs, and the same value as text for clients that read only text.
    fn structured(value: Value) -> Self {
        Self {
            content: vec![text(value.to_string())],
            structured: Some(value),
        }
    }
}

/// Annotations of a tool that changes nothing and talks to nobody, which is every tool here.
fn harmless() -> Value {
    json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_what_it_is_takes_and_does() {
        for tool in definitions() {
            let name = tool["name"].as_str().unwrap();
            for key in ["title", "description"] {
                assert!(!tool[key].as_str().unwrap().is_empty(), "{name}: {key}");
            }
            assert_eq!(tool["annotations"]["readOnlyHint"], json!(true), "{name}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false), "{name}");
            for (key, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{name}: {key} has no description");
            }
        }
    }

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
