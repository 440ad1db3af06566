//! Converts between a provider's messages and calls: parses the tool calls in a model's response, and writes the messages that answer them.

mod calls;
mod results;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::ToolCall;
use crate::{outcome::Reply, provider::Provider};

impl Provider {
    /// Parses the tool calls in a model's response: a whole response, its message, or the list of its parts. Of several alternative
    /// answers, the first counts.
    ///
    /// Arguments that are not a JSON object stay text, which is parsed as the tool's server is configured; the reply to the call reports
    /// text that cannot be parsed.
    pub fn tool_calls(self, response: &Value) -> Vec<ToolCall> {
        let calls = calls::find(self, response).into_iter();
        calls.map(calls::Found::into_call).collect()
    }

    /// The part of a message that reports the result of one call to a model: a `tool` message, a `function_call_output`, a `tool_result`, a
    /// `functionResponse` or a `toolResult`.
    pub fn tool_result(self, reply: &Reply) -> Value {
        results::one(self, reply)
    }

    /// The messages that report the results of calls to a model. Where a provider wants all results in one message, there is one.
    pub fn tool_messages(self, replies: &[Reply]) -> Vec<Value> {
        results::messages(self, replies)
    }
}
