//! A hint for a modern client whose call failed because its server cannot ask in the era in which it is spoken to.
//!
//! In the newest era a server returns its questions. Some tools of servers that speak both eras can only send them, which the older one has. The
//! calls of legacy clients that answer questions are made in the older era anyway, if the server opens a session in it.

use memchr::memmem::find;
use pegboard::{Toolset, status::Era};
use pegboard_protocol::method;
use serde_json::{Value, json};

use crate::protocol::{RawResult, RpcError};

/// The requests that a server can only send in the older era. SDKs name the one that they could not send.
const QUESTIONS: [&str; 3] = [
    method::ELICITATION_CREATE,
    method::SAMPLING_CREATE_MESSAGE,
    method::ROOTS_LIST,
];

/// The longest error that is searched.
const MAX_TEXT: usize = 64 * 1024;

/// Adds a hint to the result of a failed call.
pub(super) fn explain_result(toolset: &Toolset, tool: &str, result: RawResult, has_type: bool) -> RawResult {
    let Some(hint) = hint(toolset, tool, result.json()) else {
        return result;
    };
    let Ok(mut fields) = serde_json::from_slice::<Value>(result.json()) else {
        return result;
    };
    if let Some(Value::Array(content)) = fields.get_mut("content") {
        content.push(json!({"type": "text", "text": format!("hint: {hint}")}));
    }
    RawResult::from_text(fields.to_string().into(), has_type)
}

/// Adds a hint to the error of a failed call.
pub(super) fn explain_error(toolset: &Toolset, tool: &str, mut error: RpcError) -> RpcError {
    if let Some(hint) = hint(toolset, tool, error.message.as_bytes()) {
        error.message = format!("{}; hint: {hint}", error.message);
    }
    error
}

fn hint(toolset: &Toolset, tool: &str, text: &[u8]) -> Option<String> {
    let names_one = || QUESTIONS.iter().any(|method| find(text, method.as_bytes()).is_some());
    if text.len() > MAX_TEXT || !names_one() {
        return None;
    }
    let known = toolset
        .known_tool(tool)
        .filter(|known| known.era == Some(Era::Modern))?;
    let server = &known.tool.server;
    Some(format!(
        "the server `{server}` is spoken to in the protocol version 2026-07-28, in which its tools cannot send questions; if it speaks an \
         earlier version too, set `servers.{server}.era = \"legacy\"` in the config"
    ))
}
