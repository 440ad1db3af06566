//! The model providers: their names and their rules for tool names.

use std::{fmt, str::FromStr};

use pegboard_base::{label::serde_as_text, name::NameRules};

/// A model provider's API, which determines how tools are defined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// MCP itself: tools as their servers define them.
    #[default]
    Mcp,
    /// OpenAI's chat completions API, and the many APIs that are compatible with it.
    OpenAi,
    /// OpenAI's responses API.
    OpenAiResponses,
    /// OpenAI's chat completions API with `strict`, which guarantees that the model's arguments match the schema.
    OpenAiStrict,
    /// Anthropic's messages API.
    Anthropic,
    /// Gemini with `parameters`, a subset of OpenAPI schemas.
    Gemini,
    /// Gemini with `parametersJsonSchema`.
    GeminiJson,
    /// Amazon Bedrock's Converse API.
    Bedrock,
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

    /// The provider's name on the command line and in URLs.
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

    /// Returns the provider of this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == word)
    }

    /// The rules for names of tools.
    pub fn name_rules(self) -> NameRules {
        match self {
            Self::Mcp => NameRules::MCP,
            Self::OpenAi | Self::OpenAiResponses | Self::OpenAiStrict => NameRules::OPENAI,
            Self::Anthropic => NameRules::ANTHROPIC,
            Self::Gemini | Self::GeminiJson => NameRules::GEMINI,
            Self::Bedrock => NameRules::BEDROCK,
        }
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(word: &str) -> Result<Self, UnknownProvider> {
        Self::parse(word).ok_or_else(|| UnknownProvider(word.to_owned()))
    }
}

/// The error for an unknown provider name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no provider; there are {}", .0.escape_debug(), Provider::ALL.map(Provider::as_str).join(", "))]
pub struct UnknownProvider(String);

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl AsRef<str> for Provider {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

serde_as_text!(Provider);
