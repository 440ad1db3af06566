//! A tool output that is stored in a spill file.

use std::sync::Arc;

/// The format of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Text as the tool returned it.
    Text,
    /// Structured content, as JSON.
    Json,
    /// Binary content of some media type, in base64.
    Bytes { mime_type: String },
}

/// An output to be stored, or read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) format: OutputFormat,
    pub(crate) text: Arc<String>,
}
