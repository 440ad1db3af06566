//! Definitions of tools for each model provider: its rules for names, its dialect of JSON Schema, and its format for lists of tools.
//!
//! A tool's input schema passes through these steps: references are inlined (`inline_refs`), all spellings are brought to one canonical form
//! (`canonical`, `merge_schemas`), the schema is compacted to a byte budget (`compact`), and then converted to the dialect (`json_schema`,
//! `gemini`, `openai_strict`). A [`Reverse`] records the changes and converts a model's arguments back.

mod canonical;
mod compact;
mod conversion_steps;
mod definition;
mod description_notes;
mod gemini;
mod inline_refs;
mod json_schema;
mod merge_schemas;
mod messages;
mod openai_strict;
mod parameter_names;
mod providers;
mod reverse_arguments;
mod schema;
mod tool_list;

#[cfg(test)]
mod tests;

pub use definition::{Definition, Quarantine};
pub use providers::{Provider, UnknownProvider};
pub use reverse_arguments::Reverse;

use serde_json::Value;

use crate::catalog::Tool;
use conversion_steps::Converted;
use schema::Schema;

impl Provider {
    /// Converts a tool to this provider's dialect. With a budget, the schema is compacted to that many bytes as far as that is possible
    /// without removing an argument.
    ///
    /// # Errors
    ///
    /// Fails if the tool's input schema is not a valid schema.
    pub fn define(self, tool: &Tool, budget: Option<usize>) -> Result<Definition, Quarantine> {
        if self == Self::Mcp {
            return Ok(Definition {
                description: tool.description.clone(),
                schema: tool.input_schema.value(),
                strict: false,
                lost: Vec::new(),
                reverse: Reverse::default(),
            });
        }
        let mut root = canonical::root(&inline_refs::inline(&tool.input_schema.value()))?;
        let mut converted = self.convert(&root);
        let mut lost = Vec::new();
        for pass in compact::PASSES {
            if budget.is_none_or(|budget| converted.bytes() <= budget) {
                break;
            }
            if (pass.run)(&mut root) {
                lost.push(pass.lost.to_owned());
                converted = self.convert(&root);
            }
        }
        if budget.is_some_and(|budget| converted.bytes() > budget) {
            lost.push("nothing more could be left out, and the schema is larger than it should be".to_owned());
        }
        lost.extend(converted.lost);
        let (description, schema) = tool_list::describe(self, tool, converted.schema);
        Ok(Definition {
            description,
            schema: Value::Object(schema),
            strict: converted.strict,
            lost,
            reverse: Reverse::new(converted.reverse),
        })
    }

    fn convert(self, root: &Schema) -> Converted {
        match self {
            Self::OpenAi | Self::OpenAiResponses | Self::Mcp => json_schema::convert(root, &json_schema::OPENAI),
            Self::Anthropic => json_schema::convert(root, &json_schema::ANTHROPIC),
            Self::Bedrock => json_schema::convert(root, &json_schema::BEDROCK),
            Self::GeminiJson => json_schema::convert(root, &json_schema::GEMINI),
            Self::Gemini => gemini::convert(root),
            Self::OpenAiStrict => openai_strict::convert(root).unwrap_or_else(|why| {
                let mut converted = json_schema::convert(root, &json_schema::OPENAI);
                converted.lost.push(format!("`strict` is off, because {why}"));
                converted
            }),
        }
    }

    /// Formats named definitions as the list of tools that this provider's API takes.
    pub fn list<'a>(self, tools: impl IntoIterator<Item = (&'a str, &'a Definition)>) -> Vec<Value> {
        tool_list::list(self, tools)
    }
}
