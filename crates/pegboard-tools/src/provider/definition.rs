//! A tool's definition for a provider, or why there is none.

use serde_json::Value;

use super::reverse_arguments::Reverse;

/// The definition of a tool in the format of a provider, without its name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// The tool's description, with notes on what the dialect cannot express.
    pub description: Option<String>,
    /// The schema of the arguments, in the provider's dialect.
    pub schema: Value,
    /// Whether the provider constrains the model to the schema. Only `openai-strict` sets it, for tools whose schema allows it.
    pub strict: bool,
    /// What the dialect or the budget removed from the schema, one phrase each.
    pub lost: Vec<String>,
    /// Converts a model's arguments back to the tool's own schema.
    pub reverse: Reverse,
}

/// Why a tool cannot be offered to a provider. Other tools are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its input schema cannot be used{}: {problem}", if path.is_empty() { String::new() } else { format!(" at `{path}`") })]
pub struct Quarantine {
    /// The property path to the invalid subschema, joined by dots.
    pub(super) path: String,
    pub(super) problem: String,
}
