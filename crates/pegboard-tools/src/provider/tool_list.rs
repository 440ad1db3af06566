//! Formats the list of tools for each provider's API.

use serde_json::{Map, Value, json};

use super::{definition::Definition, providers::Provider, schema::Schema};
use crate::catalog::Tool;

/// The longest description of a tool that all endpoints of OpenAI's chat completions accept, in characters.
const OPENAI_DESCRIPTION: usize = 1024;

/// Returns the tool's description and its schema. The title and description of the schema's root move to the tool's description.
pub(super) fn describe(provider: Provider, tool: &Tool, mut schema: Schema) -> (Option<String>, Schema) {
    schema.remove("title");
    let own = tool
        .description
        .as_deref()
        .or(tool.title.as_deref())
        .unwrap_or_default()
        .trim();
    let about_arguments = match schema.remove("description") {
        Some(Value::String(text)) if !own.contains(text.trim()) => text,
        _ => String::new(),
    };
    let whole = match (own, about_arguments.trim()) {
        ("", about) => about.to_owned(),
        (own, "") => own.to_owned(),
        (own, about) => format!("{own}\n\nArguments: {about}"),
    };
    let is_chat = matches!(provider, Provider::OpenAi | Provider::OpenAiStrict);
    let (shown, rest) = if is_chat { split(&whole) } else { (whole.as_str(), "") };
    if !rest.is_empty() {
        schema.insert("description".into(), rest.into());
    }
    ((!shown.is_empty()).then(|| shown.to_owned()), schema)
}

/// Splits a text between words; the first part is not longer than OpenAI accepts.
fn split(text: &str) -> (&str, &str) {
    let Some((limit, _)) = text.char_indices().nth(OPENAI_DESCRIPTION) else {
        return (text, "");
    };
    let cut = text[..limit]
        .rfind(char::is_whitespace)
        .filter(|cut| *cut > limit / 2)
        .unwrap_or(limit);
    (text[..cut].trim_end(), text[cut..].trim_start())
}

/// Formats named definitions as the array that a provider's API takes.
pub(super) fn list<'a>(provider: Provider, tools: impl IntoIterator<Item = (&'a str, &'a Definition)>) -> Vec<Value> {
    let tools = tools.into_iter();
    match provider {
        Provider::Gemini | Provider::GeminiJson => {
            let declarations: Vec<Value> = tools.map(|(name, tool)| one(provider, name, tool)).collect();
            match declarations.is_empty() {
                true => Vec::new(),
                false => vec![json!({"functionDeclarations": declarations})],
            }
        }
        _ => tools.map(|(name, tool)| one(provider, name, tool)).collect(),
    }
}

fn one(provider: Provider, name: &str, tool: &Definition) -> Value {
    let mut fields = Map::new();
    fields.insert("name".into(), name.into());
    if let Some(description) = &tool.description {
        fields.insert("description".into(), description.as_str().into());
    }
    let schema = tool.schema.clone();
    match provider {
        Provider::Mcp => {
            fields.insert("inputSchema".into(), schema);
        }
        Provider::OpenAi => {
            fields.insert("parameters".into(), schema);
            return json!({"type": "function", "function": fields});
        }
        Provider::OpenAiStrict => {
            fields.insert("parameters".into(), schema);
            fields.insert("strict".into(), tool.strict.into());
            return json!({"type": "function", "function": fields});
        }
        Provider::OpenAiResponses => {
            fields.insert("type".into(), "function".into());
            fields.insert("parameters".into(), schema);
            // The responses API has `strict` on by default.
            fields.insert("strict".into(), false.into());
        }
        Provider::Anthropic => {
            fields.insert("input_schema".into(), schema);
        }
        Provider::Gemini => {
            // Gemini rejects an object without properties. A function without parameters takes no arguments.
            let properties = schema.get("properties").and_then(Value::as_object);
            if properties.is_some_and(|properties| !properties.is_empty()) {
                fields.insert("parameters".into(), schema);
            }
        }
        Provider::GeminiJson => {
            fields.insert("parametersJsonSchema".into(), schema);
        }
        Provider::Bedrock => {
            fields.insert("inputSchema".into(), json!({ "json": schema }));
            return json!({ "toolSpec": fields });
        }
    }
    fields.into()
}
