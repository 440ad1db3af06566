//! The value of an argument as it was written on the command line.

use serde_json::Value;

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    /// Gets the type that the schema declares.
    Text(String),
    /// JSON text, taken as it is.
    JsonText(String),
    /// Taken as it is.
    Json(Value),
    /// The text of a file; `-` is stdin.
    File(String),
    /// The JSON in a file; `-` is stdin.
    JsonFile(String),
}

impl Given {
    /// A text, or with `@` before it the file of this name. `@@` stands for one `@`.
    pub(super) fn read(text: &str) -> Self {
        match text.strip_prefix('@') {
            Some(rest) if rest.starts_with('@') => Self::Text(rest.to_owned()),
            Some(path) if !path.is_empty() => Self::File(path.to_owned()),
            _ => Self::Text(text.to_owned()),
        }
    }
}
