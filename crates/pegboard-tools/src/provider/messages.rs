//! Converts between a provider's messages and calls: parses the tool calls in a model's response, and writes the messages that answer them.

mod tool_calls;
mod tool_results;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::tool_call::ToolCall;
use crate::{outcome::Reply, provider::Provider};

impl Provider {
    /// Parses the tool calls in a model's response: a whole response, its message, or the list of its parts. If the response has several
    /// choices, the first is used.
    ///
    /// Arguments that are not a JSON object stay text, which is parsed as the tool's server is configured; the reply to the call reports
    /// text that cannot be parsed.
    pub fn tool_calls(self, response: &Value) -> Vec<ToolCall> {
        let calls = tool_calls::find(self, response).into_iter();
        calls.map(tool_calls::ParsedCall::into_call).collect()
    }

    /// The part of a message that reports the result of one call to a model: a `tool` message, a `function_call_output`, a `tool_result`, a
    /// `functionResponse` or a `toolResult`.
    pub fn tool_result(self, reply: &Reply) -> Value {
        tool_results::one(self, reply)
    }

    /// The messages that report the results of calls to a model. For providers that require all results in one message, the list has one
    /// message.
    pub fn tool_messages(self, replies: &[Reply]) -> Vec<Value> {
        tool_results::messages(self, replies)
    }
}
