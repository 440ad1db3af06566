//! What an operator asks of the masker.

/// What is hidden in what servers say. Secrets of the config are hidden whatever this says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Masking {
    /// Whether anything besides the config's own secrets is hidden.
    pub enabled: bool,
    /// Whether the patterns are looked for that are on by default.
    pub defaults: bool,
    /// Names of pattern groups to look for as well.
    pub groups: Vec<String>,
    /// Names of patterns to look for as well.
    pub patterns: Vec<String>,
    /// Patterns of the operator's own.
    pub custom: Vec<CustomPattern>,
    /// Regular expressions of values that are no secrets, whatever pattern they fit.
    pub except: Vec<String>,
    /// How much of a find is replaced.
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

/// How much of a find is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MaskStyle {
    /// The secret alone, so that JSON and YAML stay what they are.
    #[default]
    Value,
    /// All that the pattern fits, the name before the secret included.
    Whole,
}

/// A masking pattern of the operator's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomPattern {
    /// A regular expression. A group named `secret` marks the part that is replaced; without one it is the whole match.
    pub pattern: String,
    /// What stands in for it. `${1}` and `${name}` stand for groups of the match.
    pub replacement: String,
    /// What it finds.
    pub description: Option<String>,
}

impl CustomPattern {
    /// A pattern whose finds become `[MASKED]`.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            replacement: "[MASKED]".to_owned(),
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
