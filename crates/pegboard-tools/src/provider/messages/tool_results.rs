//! Writes the messages that answer a model's tool calls.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    outcome::{Content, Outcome, Reply},
    provider::Provider,
};

/// The image types that models accept.
const IMAGE_TYPES: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
];

pub(super) fn one(provider: Provider, reply: &Reply) -> Value {
    let id = &reply.id;
    match provider {
        Provider::Mcp => mcp(reply),
        Provider::OpenAi | Provider::OpenAiStrict => {
            json!({"role": "tool", "tool_call_id": id, "content": text_of(reply)})
        }
        Provider::OpenAiResponses => json!({"type": "function_call_output", "call_id": id, "output": text_of(reply)}),
        Provider::Anthropic => {
            let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": blocks(reply, &ANTHROPIC)});
            if reply.is_error() {
                result["is_error"] = true.into();
            }
            result
        }
        Provider::Gemini | Provider::GeminiJson => {
            let key = if reply.is_error() { "error" } else { "output" };
            let mut response = json!({"name": reply.asked, "response": {key: gemini_output(reply)}});
            // The model does not know generated ids.
            if reply.id_given {
                response["id"] = id.as_str().into();
            }
            json!({ "functionResponse": response })
        }
        Provider::Bedrock => {
            let status = if reply.is_error() { "error" } else { "success" };
            json!({"toolResult": {"toolUseId": id, "content": blocks(reply, &BEDROCK), "status": status}})
        }
    }
}

pub(super) fn messages(provider: Provider, replies: &[Reply]) -> Vec<Value> {
    let parts: Vec<Value> = replies.iter().map(|reply| one(provider, reply)).collect();
    let key = match provider {
        Provider::Mcp | Provider::OpenAi | Provider::OpenAiStrict | Provider::OpenAiResponses => return parts,
        Provider::Anthropic | Provider::Bedrock => "content",
        Provider::Gemini | Provider::GeminiJson => "parts",
    };
    match parts.is_empty() {
        true => Vec::new(),
        false => vec![json!({"role": "user", key: parts})],
    }
}

/// The text of a reply. Several providers reject an empty one.
fn text_of(reply: &Reply) -> String {
    match reply.text() {
        text if !text.trim().is_empty() => text,
        _ => "(no output)".to_owned(),
    }
}

fn mcp(reply: &Reply) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text_of(reply)}], "isError": reply.is_error()});
    if let Outcome::Done(answer) | Outcome::ToolFailed(answer) = &reply.outcome {
        let blocks = model_content(reply);
        if !blocks.is_empty() {
            // `Content` always serialises.
            result["content"] = serde_json::to_value(&blocks).unwrap_or_default();
        }
        if let Some(structured) = &answer.structured {
            result["structuredContent"] = structured.clone();
        }
    }
    result
}

/// The blocks that a model sees, fenced if the config says so. Empty for a call that was refused or lost, and for a failed tool without
/// output.
fn model_content(reply: &Reply) -> Cow<'_, [Content]> {
    match &reply.outcome {
        Outcome::ToolFailed(answer) if answer.is_blank() => Cow::Borrowed(&[]),
        Outcome::Done(answer) | Outcome::ToolFailed(answer) => answer.blocks(),
        Outcome::Refused(_) | Outcome::Lost(_) => Cow::Borrowed(&[]),
    }
}

/// The structured content, or the text if there is none or the result is fenced.
fn gemini_output(reply: &Reply) -> Value {
    match &reply.outcome {
        Outcome::Done(answer) if !answer.is_fenced() => {
            answer.structured.clone().unwrap_or_else(|| text_of(reply).into())
        }
        _ => text_of(reply).into(),
    }
}

/// How a provider writes blocks.
struct Blocks {
    text: fn(&str) -> Value,
    /// An image: media type, short format name, base64 data.
    image: fn(&str, &str, &str) -> Value,
}

const ANTHROPIC: Blocks = Blocks {
    text: |text| json!({"type": "text", "text": text}),
    image: |kind, _, data| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}),
};

const BEDROCK: Blocks = Blocks {
    text: |text| json!({ "text": text }),
    image: |_, short, data| json!({"image": {"format": short, "source": {"bytes": data}}}),
};

/// The blocks of a reply: images as images, everything else as text.
fn blocks(reply: &Reply, form: &Blocks) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for block in model_content(reply).iter() {
        if let Content::Image { data, mime_type, .. } = block
            && let Some((kind, short)) = IMAGE_TYPES.iter().find(|(kind, _)| kind == mime_type)
        {
            blocks.push((form.image)(kind, short, data));
            continue;
        }
        let text = block.to_text();
        if !text.trim().is_empty() {
            blocks.push((form.text)(&text));
        }
    }
    if blocks.is_empty() {
        blocks.push((form.text)(&text_of(reply)));
    }
    blocks
}
