//! What a native tool may return: texts, JSON, answers, and results of these with any error.

use std::{error::Error, fmt};

use serde::Serialize;
use serde_json::Value;

use pegboard_tools::outcome::{Answer, Content, error_text};

/// An error of a native tool, which the model sees as the tool's error result. Every error type and every text converts into it, so that `?`
/// works in a tool.
///
/// It does not implement [`Error`] itself, as that would rule out this conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError(Box<Answer>);

impl ToolError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self::from_answer(Answer::from_text(text))
    }

    /// Creates an error with this content, for example with structured content.
    pub fn from_answer(answer: Answer) -> Self {
        Self(Box::new(answer))
    }

    pub(super) fn into_inner(self) -> Answer {
        *self.0
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text())
    }
}

/// The text of the error and of its causes.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error_text(&*error.into()))
    }
}

/// What a native tool may return: an [`Answer`], a text, JSON, nothing, or a `Result` of these with any error.
pub trait IntoAnswer {
    /// Converts into the answer, or into the error that the model sees.
    fn into_answer(self) -> Result<Answer, ToolError>;
}

impl IntoAnswer for Answer {
    fn into_answer(self) -> Result<Answer, ToolError> {
        Ok(self)
    }
}

impl IntoAnswer for String {
    fn into_answer(self) -> Result<Answer, ToolError> {
        Ok(Answer::from_text(self))
    }
}

impl IntoAnswer for &str {
    fn into_answer(self) -> Result<Answer, ToolError> {
        Ok(Answer::from_text(self))
    }
}

impl IntoAnswer for Vec<Content> {
    fn into_answer(self) -> Result<Answer, ToolError> {
        Ok(Answer::from_content(self))
    }
}

/// The text `done`, so that a model sees that the tool has succeeded.
impl IntoAnswer for () {
    fn into_answer(self) -> Result<Answer, ToolError> {
        Ok(Answer::from_text("done"))
    }
}

/// Structured content with the same JSON as text. JSON that is not an object is text only, because MCP allows only objects as structured
/// content.
impl IntoAnswer for Value {
    fn into_answer(self) -> Result<Answer, ToolError> {
        Ok(match self {
            Self::Object(_) => Answer::json(self),
            other => Answer::from_text(other.to_string()),
        })
    }
}

/// A serialisable value as structured content. Describe it with [`NativeTool::output`](crate::native::NativeTool::output) (feature `schemars`) or
/// [`NativeTool::output_schema`](crate::native::NativeTool::output_schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoAnswer for Json<T> {
    fn into_answer(self) -> Result<Answer, ToolError> {
        serde_json::to_value(self.0)?.into_answer()
    }
}

impl<A: IntoAnswer, E: Into<ToolError>> IntoAnswer for Result<A, E> {
    fn into_answer(self) -> Result<Answer, ToolError> {
        self.map_err(Into::into).and_then(A::into_answer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_usual_value_is_an_answer() {
        assert_eq!("hi".into_answer().unwrap().text(), "hi");
        assert_eq!("hi".to_owned().into_answer().unwrap().text(), "hi");
        assert_eq!(().into_answer().unwrap().text(), "done");
        let object = json!({"a": 1}).into_answer().unwrap();
        assert_eq!(object.structured, Some(json!({"a": 1})));
        let list = Json([1, 2]).into_answer().unwrap();
        assert_eq!((list.text().as_str(), list.structured), ("[1,2]", None));
    }

    #[test]
    fn every_error_is_a_tool_error_with_its_causes() {
        fn fails(how: &str) -> Result<u16, ToolError> {
            match how {
                "anyhow" => Err(anyhow::anyhow!("disk full").context("cannot save"))?,
                "io" => Err(std::io::Error::other("gone"))?,
                "text" => Err("no")?,
                number => Ok(number.parse()?),
            }
        }
        for (how, expected) in [
            ("anyhow", "cannot save: disk full"),
            ("io", "gone"),
            ("text", "no"),
            ("x", "invalid digit found in string"),
        ] {
            assert_eq!(fails(how).unwrap_err().to_string(), expected);
        }
        assert_eq!(fails("7"), Ok(7));
        let rich = ToolError::from_answer(Answer::json(json!({"code": 7})));
        assert_eq!(Err::<(), _>(rich.clone()).into_answer(), Err(rich));
    }
}
