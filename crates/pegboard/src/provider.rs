//! What each model provider takes: which names, which dialect of JSON Schema, and which form of a list of tools.
//!
//! A tool's schema is written out without references (`inline`), brought to one form (`canonical`, `merge`), made as small as asked
//! (`compact`) and fitted to the dialect (`json`, `gemini`, `strict`). What was changed on the way is kept as a [`Reverse`], which turns
//! a model's arguments back.

mod canonical;
mod compact;
mod description_notes;
mod gemini;
mod inline;
mod json_schema;
mod merge_schemas;
mod parameter_names;
mod reverse_arguments;
mod strict;
mod tool_list;

#[cfg(test)]
mod tests;

pub use reverse_arguments::Reverse;

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

use crate::{catalog::Tool, name::NameRules};
use canonical::Bad;

/// A JSON Schema that is an object.
type Schema = Map<String, Value>;

/// A model provider, as far as its API decides what a tool looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// MCP itself: tools as their servers define them.
    #[default]
    Mcp,
    /// OpenAI's chat completions, and the many APIs that follow them.
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// OpenAI's chat completions with `strict`: the model's arguments fit the schema for sure.
    OpenAiStrict,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini with `parameters`, a part of OpenAPI's schemas.
    Gemini,
    /// Gemini with `parametersJsonSchema`.
    GeminiJson,
    /// Amazon Bedrock's converse.
    Bedrock,
}

/// A tool as a provider takes it, but for its name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// What the tool does, with what the schema could not say.
    pub description: Option<String>,
    /// The arguments, in the provider's dialect.
    pub schema: Value,
    /// Whether the model is held to the schema. Only `openai-strict` sets it, for tools whose schema allows it.
    pub strict: bool,
    /// What the dialect or the budget took from the schema, in words.
    pub lost: Vec<String>,
    /// The way back for a model's arguments.
    pub reverse: Reverse,
}

/// Why a tool cannot be offered to a provider. The other tools can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its input schema cannot be used{}: {problem}", if path.is_empty() { String::new() } else { format!(" at `{path}`") })]
pub struct Quarantine {
    path: String,
    problem: String,
}

impl Provider {
    /// All providers, in the order in which they are documented.
    pub const ALL: [Self; 8] = [
        Self::Mcp,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::OpenAiStrict,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiJson,
        Self::Bedrock,
    ];

    /// The word for a provider on the command line and in addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiStrict => "openai-strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::GeminiJson => "gemini-json",
            Self::Bedrock => "bedrock",
        }
    }

    /// The provider of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == word)
    }

    /// What the names of tools may look like.
    pub fn name_rules(self) -> NameRules {
        match self {
            Self::Mcp => NameRules::MCP,
            Self::OpenAi | Self::OpenAiResponses | Self::OpenAiStrict => NameRules::OPENAI,
            Self::Anthropic => NameRules::ANTHROPIC,
            Self::Gemini | Self::GeminiJson => NameRules::GEMINI,
            Self::Bedrock => NameRules::BEDROCK,
        }
    }

    /// A tool as this provider takes it, or why it cannot. With a budget, its schema has at most that many bytes if that can be done without
    /// taking an argument away.
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
        let mut root = canonical::root(&inline::inlined(&tool.input_schema.value()))?;
        let mut fitted = self.fit(&root);
        let mut lost = Vec::new();
        for pass in compact::PASSES {
            if budget.is_none_or(|budget| fitted.bytes() <= budget) {
                break;
            }
            if (pass.run)(&mut root) {
                lost.push(pass.lost.to_owned());
                fitted = self.fit(&root);
            }
        }
        if budget.is_some_and(|budget| fitted.bytes() > budget) {
            lost.push("nothing more could be left out, and the schema is larger than it should be".to_owned());
        }
        lost.extend(fitted.lost);
        let (description, schema) = tool_list::describe(self, tool, fitted.schema);
        Ok(Definition {
            description,
            schema: Value::Object(schema),
            strict: fitted.strict,
            lost,
            reverse: Reverse::new(fitted.back),
        })
    }

    fn fit(self, root: &Schema) -> Fitted {
        match self {
            Self::OpenAi | Self::OpenAiResponses | Self::Mcp => json_schema::fit(root, &json_schema::OPENAI),
            Self::Anthropic => json_schema::fit(root, &json_schema::ANTHROPIC),
            Self::Bedrock => json_schema::fit(root, &json_schema::BEDROCK),
            Self::GeminiJson => json_schema::fit(root, &json_schema::GEMINI),
            Self::Gemini => gemini::fit(root),
            Self::OpenAiStrict => strict::fit(root).unwrap_or_else(|why| {
                let mut fitted = json_schema::fit(root, &json_schema::OPENAI);
                fitted.lost.push(format!("`strict` is off, because {why}"));
                fitted
            }),
        }
    }

    /// The list of tools that this provider's API takes.
    pub fn list<'a>(self, tools: impl IntoIterator<Item = (&'a str, &'a Definition)>) -> Vec<Value> {
        tool_list::list(self, tools)
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(word: &str) -> Result<Self, UnknownProvider> {
        Self::parse(word).ok_or_else(|| UnknownProvider(word.to_owned()))
    }
}

/// A word that is no provider's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no provider; there are {}", .0.escape_debug(), Provider::ALL.map(Provider::as_str).join(", "))]
pub struct UnknownProvider(String);

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Bad> for Quarantine {
    fn from(bad: Bad) -> Self {
        Self {
            path: bad.path,
            problem: bad.problem,
        }
    }
}

/// A schema in a dialect, and what it took to get there.
struct Fitted {
    schema: Schema,
    back: reverse_arguments::Back,
    strict: bool,
    lost: Vec<String>,
}

impl Fitted {
    fn bytes(&self) -> usize {
        // Maps are written without failing.
        serde_json::to_string(&self.schema).map_or(0, |text| text.len())
    }
}
