//! Validates structured results against the tool's output schema.

use super::context::CallContext;
use pegboard_client::session::CallResult;
use pegboard_config::OutputCheck;
use pegboard_tools::outcome::{Answer, Outcome};

/// Returns the outcome of a result that counts as failed because it does not match the schema. Where the policy only warns, adds to
/// `warnings`.
pub(super) fn check(context: &CallContext<'_>, result: &CallResult, warnings: &mut Vec<String>) -> Option<Outcome> {
    let (tool, policy) = (context.tool(), context.config.policy.output_check);
    let schema = tool.output_schema.as_ref()?;
    // The schema describes successful results only.
    if policy == OutputCheck::Off || result.is_error {
        return None;
    }
    let problems = match &result.structured {
        Some(structured) => {
            let compiled = &context.view.compiled_schemas;
            tool.checks
                .output
                .structured_output(structured, schema.as_str(), compiled)
        }
        None => vec!["there is none".to_owned()],
    };
    if problems.is_empty() {
        return None;
    }
    let text = format!(
        "the structured answer of {} does not fit its output schema: {}",
        context.tool_name(),
        problems.join("; ")
    );
    tracing::warn!(server = %tool.server, tool = %tool.name, problems = problems.len(), "a structured answer is not as promised");
    if policy == OutputCheck::Error {
        return Some(Outcome::ToolFailed(Answer::from_text(text)));
    }
    warnings.push(text);
    None
}
