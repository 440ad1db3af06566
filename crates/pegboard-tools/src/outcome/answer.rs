//! A tool's answer: content blocks and structured content.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{content::Content, forwarded_result::ForwardedResult};
use pegboard_config::{Join, Structured};

/// A tool's answer: content blocks, and structured content if it has some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The content blocks in their order.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The structured content.
    #[serde(default)]
    pub structured: Option<Value>,
    /// The result's `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// The code of the JSON-RPC error that the server sent in place of a result. The error's message is in the text, its `data` is
    /// [`Answer::structured`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<i64>,
    /// `false` if the server answered that it did not run the tool.
    #[serde(default = "has_run", skip_serializing_if = "Clone::clone")]
    #[doc(hidden)]
    pub executed: bool,
    /// How it is rendered as text.
    #[serde(default, skip_serializing_if = "Rendering::is_default")]
    #[doc(hidden)]
    pub rendering: Rendering,
    /// The unparsed result in place of all other parts, if it is passed on as bytes.
    #[serde(skip)]
    #[doc(hidden)]
    pub raw: Option<Box<ForwardedResult>>,
}

/// The default of [`Answer::executed`].
fn has_run() -> bool {
    true
}

impl Answer {
    /// Creates an answer of one text block.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::from_content([Content::text(text)])
    }

    /// Creates an answer of these blocks.
    pub fn from_content(content: impl IntoIterator<Item = Content>) -> Self {
        Self {
            content: content.into_iter().collect(),
            structured: None,
            meta: None,
            error_code: None,
            executed: true,
            rendering: Rendering::default(),
            raw: None,
        }
    }

    /// Creates a structured answer, with the same JSON as a text block.
    pub fn json(value: impl Into<Value>) -> Self {
        let value = value.into();
        Self {
            structured: Some(value.clone()),
            ..Self::from_text(value.to_string())
        }
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::from_text(text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::from_text(text)
    }
}

/// How an answer is rendered as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rendering {
    /// The separator between content blocks.
    pub join: Join,
    /// Whether the text comes from the content blocks, the structured content, or both.
    pub structured: Structured,
    /// The source named in the fence, if the text is fenced.
    pub fence: Option<Arc<str>>,
}

impl Rendering {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
