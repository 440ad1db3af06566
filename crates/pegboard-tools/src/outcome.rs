//! [`Outcome`]: how a call ended. It has a text for the model in every case, and a kind and details for the program.

mod advice;
mod answer;
mod call_error;
mod cause;
mod compat_shapes;
mod content;
mod error_text;
mod failure;
mod forwarded_result;
pub mod inline_images;
mod mask;
mod raw_result;
mod render;
mod reply;
mod resources_prompts;
mod sanitize;
pub(crate) mod stored_millis;
mod stored_reply;
pub mod truncate;
mod typed_answer;
mod untrusted_fence;

pub use advice::Advice;
pub use answer::Answer;
pub use answer::Rendering;
pub use call_error::{CallError, UnreadableAnswer};
pub use content::Content;
pub use error_text::error_text;
pub use failure::{Failure, Kind};
pub use forwarded_result::{ForwardedResult, ResultKind};
pub use mask::is_longer_than;
pub use render::is_json_of;
pub use reply::{ContentType, Reply};
pub use reply::{Notes, Presented, millis};
pub use resources_prompts::{BadBlob, Body, Completion, FilledPrompt, PromptMessage, ResourceContents, Role, TextPage};
pub use sanitize::{sanitize_error, sanitize_map};
pub use untrusted_fence::around as fence;
pub use untrusted_fence::number as fence_number;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use pegboard_base::diagnosis::Diagnosis;

/// The text of an error result without content.
const SILENT: &str = "the tool reported an error without saying why";

/// How a call ended. A refused call, a failed one and a lost one are distinct.
///
/// In JSON its `status` is `done`, `tool_failed`, `refused` or `lost`, beside the fields of the [`Answer`] or [`Failure`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// The tool ran and answered.
    Done(Answer),
    /// The tool, or its server, answered with an error.
    ToolFailed(Answer),
    /// The call was not executed.
    Refused(Failure),
    /// The call was sent and no usable answer came back.
    Lost(Failure),
}

impl Outcome {
    /// The kind of outcome, a stable name for programs.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Done(_) => Kind::Ok,
            Self::ToolFailed(_) => Kind::ToolError,
            Self::Refused(failure) | Self::Lost(failure) => failure.kind,
        }
    }

    /// Returns whether the model should see this as an error.
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Done(_))
    }

    /// Returns whether the tool may have run. `false` is certain, `true` is not.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Done(_) => true,
            Self::ToolFailed(answer) => answer.executed,
            Self::Refused(_) => false,
            Self::Lost(failure) => failure.may_have_executed,
        }
    }

    /// What an operator can do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Done(_) | Self::ToolFailed(_) => None,
            Self::Refused(failure) | Self::Lost(failure) => failure.hint.as_deref(),
        }
    }

    /// The code of the JSON-RPC error that the server sent in place of a result.
    pub fn error_code(&self) -> Option<i64> {
        match self {
            Self::Done(_) => None,
            Self::ToolFailed(answer) => answer.error_code,
            Self::Refused(failure) | Self::Lost(failure) => failure.code,
        }
    }

    /// What is wrong with the server, as data.
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        match self {
            Self::Done(_) | Self::ToolFailed(_) => None,
            Self::Refused(failure) | Self::Lost(failure) => failure.diagnosis.as_deref(),
        }
    }

    /// How long to wait before the next call, if that is known: see [`Failure`].
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Done(_) | Self::ToolFailed(_) => None,
            Self::Refused(failure) | Self::Lost(failure) => failure.retry_after,
        }
    }

    /// The text for a model that reads text.
    pub fn text(&self) -> String {
        match self {
            Self::ToolFailed(answer) if answer.is_blank() => SILENT.to_owned(),
            Self::Done(answer) | Self::ToolFailed(answer) => answer.text(),
            Self::Refused(failure) | Self::Lost(failure) => failure.text(),
        }
    }

    /// Returns whether its text may contain text of a server, as opposed to Pegboard's own.
    #[doc(hidden)]
    pub fn may_contain_server_text(&self) -> bool {
        match self {
            Self::Done(_) | Self::ToolFailed(_) | Self::Lost(_) => true,
            Self::Refused(failure) => !matches!(
                failure.kind,
                Kind::NotPermitted | Kind::InvalidArguments | Kind::LimitExceeded | Kind::Cancelled | Kind::Timeout
            ),
        }
    }

    /// The name of the variant in JSON: `done`, `tool_failed`, `refused` or `lost`.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::ToolFailed(_) => "tool_failed",
            Self::Refused(_) => "refused",
            Self::Lost(_) => "lost",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for Outcome {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Done(_) | Self::ToolFailed(_) => None,
            Self::Refused(failure) | Self::Lost(failure) => std::error::Error::source(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_blocks_are_joined_by_newlines_and_images_are_named() {
        let mut answer = Answer::from_text("one");
        answer.content.push(Content::text("two"));
        answer
            .content
            .push(serde_json::from_str(r#"{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}"#).unwrap());
        assert_eq!(answer.text(), "one\ntwo\n[image image/png, 5 bytes]");
    }

    #[test]
    fn an_answer_with_only_a_structured_form_is_shown_as_json() {
        let mut answer = Answer::from_text("");
        answer.content.clear();
        answer.structured = Some(serde_json::json!({"b": 1, "a": [2]}));
        assert_eq!(answer.text(), r#"{"a":[2],"b":1}"#);
    }

    #[test]
    fn an_answer_is_made_of_a_text_of_json_or_of_blocks() {
        assert_eq!(Answer::from("one"), Answer::from_text("one"));
        assert_eq!(Answer::from("one".to_owned()), Answer::from_text("one"));
        let structured = Answer::json(serde_json::json!({"a": 1}));
        assert_eq!(structured.structured, Some(serde_json::json!({"a": 1})));
        assert_eq!(structured.text(), r#"{"a":1}"#);
        let blocks = Answer::from_content([Content::text("one"), Content::text("two")]);
        assert_eq!(blocks.text(), "one\ntwo");
    }

    #[test]
    fn the_list_of_kinds_has_each_at_its_place_under_its_name() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(serde_json::json!(kind), kind.as_str());
        }
    }

    #[test]
    fn a_failure_is_an_error_like_any_other() {
        fn fails() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            Err(Failure::new(Kind::Timeout, "too late"))?;
            Ok(())
        }
        assert_eq!(fails().unwrap_err().to_string(), "too late");
    }

    #[test]
    fn a_model_is_told_what_to_do_next_and_a_person_is_not() {
        let wait = Duration::from_millis(1500);
        let failure = Failure::new(Kind::LimitExceeded, "the limit is reached.").retry_after(wait);
        let failure = failure.advice(Advice::Wait);
        assert_eq!(failure.to_string(), "the limit is reached.");
        assert_eq!(
            Outcome::Refused(failure.clone()).text(),
            "the limit is reached. Call again in 2 s, or go on without it."
        );
        assert_eq!(
            failure.text_with(Advice::Leave),
            "the limit is reached. Go on without it."
        );
        let lines = Failure::new(Kind::Unavailable, "it is down: exit code 1\nno token").advice(Advice::Later);
        assert_eq!(
            lines.text(),
            "it is down: exit code 1\nno token\nCall again later, or go on without it."
        );
    }

    #[test]
    fn a_refused_call_has_surely_not_run_and_a_lost_one_may_have() {
        let failure = Failure::new(Kind::Transport, "gone").after_sending();
        assert!(Outcome::Lost(failure.clone()).may_have_executed());
        assert!(!Outcome::Refused(failure).may_have_executed());
    }
}
