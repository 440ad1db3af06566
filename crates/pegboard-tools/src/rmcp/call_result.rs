//! Converts answers and outcomes of calls from and to rmcp's results.

use ::rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, json};

use super::content::block;
use crate::outcome::{Answer, Failure, Outcome, Reply};

/// The `_meta` key of a result that stands for a call without an answer: the kind of failure, and whether the tool may have run.
const OUTCOME_KEY: &str = "dev.pegboard/outcome";

/// A successful result. A block that rmcp has no type for becomes a text that describes it; [`Answer::error_code`] is lost.
impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let mut result = Self::success(answer.content.into_iter().map(block).collect());
        result.structured_content = answer.structured;
        result.meta = answer.meta.map(MetaObject);
        result
    }
}

/// A refused or lost call becomes an error result with the text for the model. Its `_meta` has `dev.pegboard/outcome` with the kind of the
/// failure and whether the tool may have run. The hint for the operator is lost.
impl From<Outcome> for CallToolResult {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(answer) => answer.into(),
            Outcome::ToolFailed(answer) => from_failed_answer(answer),
            Outcome::Refused(failure) | Outcome::Lost(failure) => from_failure(&failure),
        }
    }
}

/// The outcome of the reply. Everything else about the call is lost.
impl From<Reply> for CallToolResult {
    fn from(reply: Reply) -> Self {
        reply.outcome.into()
    }
}

/// [`Outcome::Done`], or [`Outcome::ToolFailed`] for an error result. Nothing is lost.
impl From<CallToolResult> for Outcome {
    fn from(result: CallToolResult) -> Self {
        let mut answer = Answer::from_content(result.content.into_iter().map(Into::into));
        answer.structured = result.structured_content;
        answer.meta = result.meta.map(|meta| meta.0);
        match result.is_error {
            Some(true) => Self::ToolFailed(answer),
            Some(false) | None => Self::Done(answer),
        }
    }
}

fn from_failed_answer(answer: Answer) -> CallToolResult {
    let is_silent = answer.content.is_empty() && answer.structured.is_none();
    let mut result = match is_silent {
        // A client would show nothing at all.
        true => CallToolResult::error(vec![ContentBlock::text(Outcome::ToolFailed(answer).text())]),
        false => answer.into(),
    };
    result.is_error = Some(true);
    result
}

fn from_failure(failure: &Failure) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(failure.text())]);
    let fate = json!({"kind": failure.kind, "may_have_executed": failure.may_have_executed});
    result.meta = Some(MetaObject(Map::from_iter([(OUTCOME_KEY.to_owned(), fate)])));
    result
}
