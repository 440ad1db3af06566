//! The masking policy of a server.

use std::str::FromStr;

use pegboard_base::label::{UnknownWord, label_text, serde_as_text};
use serde::{Deserialize, Serialize};

/// What is masked in a server's messages. Secrets of the config are always masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Masking {
    /// Whether anything besides the config's own secrets is masked.
    pub enabled: bool,
    /// Whether the default patterns are used.
    pub defaults: bool,
    /// Names of further pattern groups.
    pub groups: Vec<String>,
    /// Names of further patterns.
    pub patterns: Vec<String>,
    /// The operator's own patterns.
    pub custom: Vec<CustomPattern>,
    /// Regular expressions of values that are not secrets, even if they match a pattern.
    pub except: Vec<String>,
    /// How much of a match is replaced.
    pub style: MaskStyle,
}

impl Default for Masking {
    fn default() -> Self {
        Self {
            enabled: true,
            defaults: true,
            groups: Vec::new(),
            patterns: Vec::new(),
            custom: Vec::new(),
            except: Vec::new(),
            style: MaskStyle::Value,
        }
    }
}

/// How much of a match is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MaskStyle {
    /// The secret alone, so that JSON and YAML stay valid.
    #[default]
    Value,
    /// The whole match, including the name before the secret.
    Whole,
}

impl MaskStyle {
    /// The word in config files and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Whole => "whole",
        }
    }
}

label_text!(MaskStyle);
serde_as_text!(MaskStyle);

/// Accepts every spelling that config files may use.
impl FromStr for MaskStyle {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word.trim().to_ascii_lowercase().as_str() {
            "value" => Ok(Self::Value),
            "whole" | "full" => Ok(Self::Whole),
            _ => Err(UnknownWord::new("style of masking", word, ["value", "whole"])),
        }
    }
}

/// An operator's own masking pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CustomPattern {
    /// A regular expression. A group named `secret` marks the part that is replaced; without one it is the whole match.
    pub pattern: String,
    /// The replacement. `${1}` and `${name}` refer to groups of the match.
    #[serde(default = "default_replacement")]
    pub replacement: String,
    /// What it matches; the name under which its matches are counted.
    #[serde(default)]
    pub description: Option<String>,
}

/// The default of [`CustomPattern::replacement`].
fn default_replacement() -> String {
    "[MASKED]".to_owned()
}

impl CustomPattern {
    /// Creates a pattern whose matches become `[MASKED]`.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            replacement: default_replacement(),
            description: None,
        }
    }
}

/// Why a masking policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMasking {
    /// There is no group of this name.
    #[error("there is no pattern group `{0}`")]
    Group(String),
    /// There is no pattern of this name.
    #[error("there is no pattern `{0}`")]
    Pattern(String),
    /// A regular expression cannot be used.
    #[error("`{pattern}` cannot be used as a pattern: {reason}")]
    Regex {
        /// The expression.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}
