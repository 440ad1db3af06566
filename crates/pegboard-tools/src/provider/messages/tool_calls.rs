//! Parses the tool calls in a model's response.

use serde_json::Value;

use crate::tool_call::ToolCall;
use crate::{args::Arguments, provider::Provider};

/// One call as a model wrote it.
pub(super) struct ParsedCall<'a> {
    id: Option<String>,
    name: &'a str,
    arguments: Option<&'a Value>,
}

impl ParsedCall<'_> {
    pub(super) fn into_call(self) -> ToolCall {
        let mut call = ToolCall::new(self.name);
        if let Some(id) = self.id {
            call = call.id(id);
        }
        match self.arguments {
            None | Some(Value::Null) => call,
            // OpenAI sends arguments as a string.
            Some(Value::String(text)) => match Arguments::parse(text) {
                Ok(arguments) => call.arguments(arguments),
                Err(_) => call.text(text.as_str()),
            },
            Some(Value::Object(arguments)) => call.arguments(arguments.clone()),
            Some(value) => call.text(value.to_string()),
        }
    }
}

/// The calls, in the order of the response.
pub(super) fn find(provider: Provider, response: &Value) -> Vec<ParsedCall<'_>> {
    let parts = parts(provider, response);
    parts.iter().filter_map(|part| read(provider, part)).collect()
}

/// The JSON pointers to a provider's message parts, outermost first.
fn part_pointers(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Mcp => &[],
        Provider::OpenAi | Provider::OpenAiStrict => {
            &["/choices/0/message/tool_calls", "/message/tool_calls", "/tool_calls"]
        }
        Provider::OpenAiResponses => &["/output"],
        Provider::Anthropic => &["/content"],
        Provider::Gemini | Provider::GeminiJson => &["/candidates/0/content/parts", "/content/parts", "/parts"],
        Provider::Bedrock => &["/output/message/content", "/message/content", "/content"],
    }
}

fn parts(provider: Provider, response: &Value) -> &[Value] {
    if let Value::Array(parts) = response {
        return parts;
    }
    let found = part_pointers(provider)
        .iter()
        .find_map(|pointer| response.pointer(pointer).and_then(Value::as_array));
    match found {
        Some(parts) => parts,
        // A single part.
        None => std::slice::from_ref(response),
    }
}

fn read(provider: Provider, part: &Value) -> Option<ParsedCall<'_>> {
    let (call, id, arguments) = match provider {
        Provider::Mcp => (part.get("params").unwrap_or(part), part.get("id"), "arguments"),
        Provider::OpenAi | Provider::OpenAiStrict => (part.get("function")?, part.get("id"), "arguments"),
        Provider::OpenAiResponses => (part_of_type(part, "function_call")?, part.get("call_id"), "arguments"),
        Provider::Anthropic => (part_of_type(part, "tool_use")?, part.get("id"), "input"),
        Provider::Gemini | Provider::GeminiJson => {
            let call = part.get("functionCall").or_else(|| part.get("function_call"))?;
            (call, call.get("id"), "args")
        }
        Provider::Bedrock => {
            let call = part.get("toolUse")?;
            (call, call.get("toolUseId"), "input")
        }
    };
    Some(ParsedCall {
        id: match id {
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Number(id)) => Some(id.to_string()),
            _ => None,
        },
        name: call.get("name")?.as_str()?,
        arguments: call.get(arguments),
    })
}

fn part_of_type<'a>(part: &'a Value, kind: &str) -> Option<&'a Value> {
    (part.get("type").and_then(Value::as_str) == Some(kind)).then_some(part)
}
