//! A model's side of a call, in the form of each provider: the tool calls in what a model answered, and the messages that answer them.

mod calls;
mod results;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::ToolCall;
use crate::{outcome::Reply, provider::Provider};

impl Provider {
    /// The tool calls in what a model answered: a whole response, its message, or the list of its parts. Of several answers to choose
    /// from, the first counts.
    ///
    /// Arguments that are no JSON object stay text, which is read as the tool's server is configured; what cannot be read is told in the
    /// reply to the call.
    pub fn tool_calls(self, response: &Value) -> Vec<ToolCall> {
        let calls = calls::find(self, response).into_iter();
        calls.map(calls::Found::into_call).collect()
    }

    /// The part of a message that tells a model what became of one call: a `tool` message, a `function_call_output`, a `tool_result`, a
    /// `functionResponse` or a `toolResult`.
    pub fn tool_result(self, reply: &Reply) -> Value {
        results::one(self, reply)
    }

    /// The messages that tell a model what became of its calls. Where a provider wants all results in one message, there is one.
    pub fn tool_messages(self, replies: &[Reply]) -> Vec<Value> {
        results::messages(self, replies)
    }
}
