//! Whether a structured answer is what the tool's schema promised.

use super::CallContext;
use crate::{
    config::OutputCheck,
    outcome::{Answer, Outcome},
    session::CallResult,
};

/// The outcome of an answer that counts as failed because it is not as promised. Where that only deserves a warning, it is told in `warnings`.
pub(super) fn misfit(job: &CallContext<'_>, result: &CallResult, warnings: &mut Vec<String>) -> Option<Outcome> {
    let (tool, policy) = (job.tool(), job.config.policy.output_check);
    let schema = tool.output_schema.as_ref()?;
    // What a tool says about its failure is not what it promised.
    if policy == OutputCheck::Off || result.is_error {
        return None;
    }
    let problems = match &result.structured {
        Some(structured) => tool.checks.output.structured_output(structured, schema.tree()),
        None => vec!["there is none".to_owned()],
    };
    if problems.is_empty() {
        return None;
    }
    let text = format!(
        "the structured answer of {} does not fit its output schema: {}",
        tool.dotted_name(),
        problems.join("; ")
    );
    tracing::warn!(server = %tool.server, tool = %tool.name, problems = problems.len(), "a structured answer is not as promised");
    if policy == OutputCheck::Error {
        return Some(Outcome::ToolFailed(Answer::from_text(text)));
    }
    warnings.push(text);
    None
}
