//! The result of a `tools/call`.

use std::ffi::OsStr;

use pegboard_protocol::header;
use serde_json::{Map, Value, json};

use super::request::Request;
use crate::script::{Answer, Script, Tool};

/// The response to a call of `tool`, without faults.
pub(super) fn final_answer(script: &Script, tool: &Tool, request: &Request<'_>) -> Value {
    let arguments = &request.params["arguments"];
    let result = match &tool.answer {
        Answer::Text(text) => text_result(text),
        Answer::Blocks(blocks) => json!({ "content": blocks }),
        Answer::Structured(value) => structured_result(value),
        Answer::Failure(text) => {
            let mut result = text_result(text);
            result["isError"] = true.into();
            result
        }
        Answer::RpcError { code, message, data } => return request.error(*code, message, data.as_ref()),
        Answer::Arguments => structured_result(arguments),
        Answer::Nonce => text_result(&nonce(request).unwrap_or_default()),
        Answer::Bytes(bytes) => text_result(&"x".repeat(*bytes)),
        Answer::Environment => {
            let variables: Map<String, Value> = std::env::vars_os()
                .map(|(key, value)| (lossy(&key), Value::String(lossy(&value))))
                .collect();
            structured_result(&Value::Object(variables))
        }
        Answer::WorkingDirectory => text_result(
            &std::env::current_dir()
                .map(|path| path.display().to_string())
                .unwrap_or_default(),
        ),
        Answer::Caller => structured_result(&caller(request)),
        Answer::Pid => text_result(&std::process::id().to_string()),
        #[cfg(target_os = "linux")]
        Answer::Escape => structured_result(&crate::escape::attempts()),
        #[cfg(not(target_os = "linux"))]
        Answer::Escape => structured_result(&Value::Null),
        Answer::CommandLine => structured_result(&std::env::args_os().map(|argument| lossy(&argument)).collect()),
        Answer::Result(result) => result.clone(),
    };
    request.result(script, result)
}

/// Appends answers of the client to a response: text blocks to the result of a tool, messages to that of a prompt, contents to that of a
/// resource, values to that of a completion.
pub(crate) fn append(response: &mut Value, answers: &[Value]) {
    let texts = answers
        .iter()
        .map(|answer| json!({ "type": "text", "text": answer.to_string() }));
    if let Some(content) = response.pointer_mut("/result/content").and_then(Value::as_array_mut) {
        content.extend(texts);
    } else if let Some(messages) = response.pointer_mut("/result/messages").and_then(Value::as_array_mut) {
        messages.extend(texts.map(|text| json!({ "role": "user", "content": text })));
    } else if let Some(contents) = response.pointer_mut("/result/contents").and_then(Value::as_array_mut) {
        let uri = contents.first().map_or(Value::Null, |first| first["uri"].clone());
        contents.extend(
            answers
                .iter()
                .map(|answer| json!({ "uri": uri, "text": answer.to_string() })),
        );
    } else if let Some(values) = response
        .pointer_mut("/result/completion/values")
        .and_then(Value::as_array_mut)
    {
        values.extend(answers.iter().map(|answer| json!(answer.to_string())));
    }
}

/// Who made a request, by its token and session.
fn caller(request: &Request<'_>) -> Value {
    let header = |name: &str| request.headers[name].as_str().map(str::to_owned);
    let bearer = header("authorization").map(|value| value.trim_start_matches("Bearer ").to_owned());
    let token = bearer
        .or_else(|| std::env::var("CALLER_TOKEN").ok())
        .unwrap_or_default();
    let owner = token.split('.').next().unwrap_or_default();
    let session = header(header::SESSION_ID).unwrap_or_else(|| std::process::id().to_string());
    let lines = request.params["arguments"]["pad"].as_u64().unwrap_or(0);
    let padding: Vec<String> = (0..lines).map(|line| format!("{owner} line {line}")).collect();
    json!({
        "owner": owner, "session": session, "tenant": header("x-tenant"), "nonce": nonce(request), "padding": padding,
    })
}

fn lossy(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn structured_result(value: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": value.to_string() }], "structuredContent": value })
}

/// The argument `nonce` of a call.
pub(super) fn nonce(request: &Request<'_>) -> Option<String> {
    match &request.params["arguments"]["nonce"] {
        Value::String(nonce) => Some(nonce.clone()),
        Value::Number(nonce) => Some(nonce.to_string()),
        _ => None,
    }
}
