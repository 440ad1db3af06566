//! The tools: their definitions, and the dispatch of `tools/call`.

mod calculate;
mod clock;
mod count;
mod draw;
mod echo;
mod fail;
pub(super) mod png;
mod search;
pub(super) mod tool;

use pegboard_gateway::{LogLevel, RpcError};
use serde_json::{Map, Value, json};

use tool::{Call, Failure, Output, arguments_of, text};

/// The definitions of all tools, in listing order.
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

/// Runs the tool that `params` names. A failed tool is a result with `isError`; only a call without a valid tool is a
/// JSON-RPC error.
pub(super) async fn call(mut params: Map<String, Value>, call: Call<'_>) -> Result<Map<String, Value>, RpcError> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(RpcError::invalid_params("`name` is missing or not a string"));
    };
    let arguments = match params.remove("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    call.log(LogLevel::Debug, json!({"event": "called", "tool": name}))
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
            Ok(arguments) => count::run(arguments, |step, steps| call.progress(step, steps)).await,
            Err(failure) => Err(failure),
        },
        "fail" => arguments_of(arguments).and_then(fail::run),
        _ => return Err(RpcError::invalid_params(format!("unknown tool `{name}`"))),
    };
    if let Err(Failure(message)) = &outcome {
        let data = json!({"event": "failed", "tool": name, "message": message});
        call.log(LogLevel::Warning, data).await;
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
}
