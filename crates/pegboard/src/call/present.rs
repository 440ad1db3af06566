//! Turns an outcome into what the caller gets. The order is fixed: extract, sanitize, mask, truncate and spill, summarise, render.
//!
//! Only masked text is ever truncated, written to disk or sent to a summariser. A small result costs one look at its length.

mod binary_content;
mod bound;
mod mask_outcome;

use super::{
    CallContext, ToolCall,
    result_options::ResultOptions,
    summarise::{self, SummaryRequest},
};
use crate::{
    config::{Policy, Results, Structured, Summarise},
    deadline::Deadline,
    filter,
    mask::Counts,
    outcome::{Answer, Content, Failure, Notes, Outcome, Presented, Rendering},
    session::CallResult,
};
use bound::Bounded;
use mask_outcome::OutcomeMasking;

/// The `_meta` key in which a server declares how large the results of a tool may be.
pub(crate) const SIZE_HINT: &str = "anthropic/maxResultSizeChars";

/// Extract: the outcome of an answered call, with all its content.
pub(super) fn extract(result: CallResult) -> Outcome {
    let answer = Answer {
        content: result.content,
        structured: result.structured,
        meta: result.meta,
        error_code: None,
        executed: true,
        rendering: Rendering::default(),
    };
    ended(answer, result.is_error)
}

fn ended(answer: Answer, failed: bool) -> Outcome {
    if failed {
        Outcome::ToolFailed(answer)
    } else {
        Outcome::Done(answer)
    }
}

/// Processes an outcome for the caller.
pub(super) async fn present(job: &CallContext<'_>, call: &ToolCall, outcome: Outcome) -> Presented {
    let (policy, outputs, tool) = (&job.config.policy, &job.view.outputs, job.tool());
    let rules = Rules {
        server: job.server().name().as_str(),
        tool: &tool.name,
        context: call.context.as_deref(),
        results: outputs.limited(of_tool(policy, &tool.name)),
        hint: tool.max_result,
        summarise: policy.summarise.as_ref(),
        outputs,
        deadline: job.deadline,
    };
    let original_bytes = payload(&outcome);
    let hiding = OutcomeMasking {
        cleans: rules.results.clean && !policy.trust,
        deadline: job.deadline,
    };
    let (outcome, masked) = hiding.hide(outcome, job.server().masker().current()).await;
    rules.shape(outcome, original_bytes, masked).await
}

/// The limits for results of a tool: under its name, else under the first glob that matches it, else those of its server.
fn of_tool(policy: &Policy, tool: &str) -> Results {
    if policy.tool_results.is_empty() {
        return policy.results;
    }
    let fits = |(glob, _): &(&String, &Results)| filter::fits(glob, tool);
    let said = policy.tool_results.get(tool);
    said.or_else(|| policy.tool_results.iter().find(fits).map(|(_, results)| results))
        .copied()
        .unwrap_or(policy.results)
}

/// The settings for one result.
struct Rules<'a> {
    server: &'a str,
    tool: &'a str,
    /// The conversation that led to the call.
    context: Option<&'a str>,
    results: Results,
    /// The result size that the server declares for the tool.
    hint: Option<usize>,
    summarise: Option<&'a Summarise>,
    outputs: &'a ResultOptions,
    /// The deadline of the call.
    deadline: Deadline,
}

impl Rules<'_> {
    async fn shape(&self, outcome: Outcome, original_bytes: usize, masked: Counts) -> Presented {
        let mut notes = Notes::default();
        let outcome = match outcome {
            Outcome::Done(answer) => self.answer(answer, false, &mut notes).await,
            Outcome::ToolFailed(answer) => self.answer(answer, true, &mut notes).await,
            Outcome::Refused(failure) => Outcome::Refused(self.failure(failure, &mut notes)),
            Outcome::Lost(failure) => Outcome::Lost(self.failure(failure, &mut notes)),
        };
        Presented {
            outcome,
            original_bytes,
            masked,
            notes,
        }
    }

    async fn answer(&self, mut answer: Answer, failed: bool, notes: &mut Notes) -> Outcome {
        answer.rendering = self.rendering(failed);
        let summarise = self.summarise.filter(|_| !failed && self.outputs.summarises());
        if binary_content::are_kept(&self.results) && bound::surely_fits(self, &answer, summarise) {
            return ended(answer, failed);
        }
        // Boxed, because most answers are small and every call would pay for the space.
        Box::pin(self.fitted(answer, failed, summarise, notes)).await
    }

    async fn fitted(
        &self,
        mut answer: Answer,
        failed: bool,
        summarise: Option<&Summarise>,
        notes: &mut Notes,
    ) -> Outcome {
        binary_content::set_apart(&self.results, self.outputs, &mut answer, &mut notes.warnings).await;
        let answer = match bound::bound(self, answer, failed, summarise, notes).await {
            Bounded::Fits(answer) => answer,
            Bounded::Refused(failure) => return Outcome::Lost(failure),
            Bounded::Cut(mut cut) => {
                let summary = match cut.summarise.take() {
                    Some(text) => self.summary(&text, summarise, notes).await,
                    None => None,
                };
                notes.truncated |= summary.is_some();
                cut.finish(summary)
            }
        };
        ended(answer, failed)
    }

    fn failure(&self, mut failure: Failure, notes: &mut Notes) -> Failure {
        if let Some(cut) = bound::message(&failure.message, self.results.max_bytes) {
            failure.message = cut;
            notes.truncated = true;
        }
        failure
    }

    fn rendering(&self, failed: bool) -> Rendering {
        Rendering {
            join: self.results.join,
            structured: match self.results.structured {
                // An error has no structured form; without its blocks nothing would be left.
                Structured::StructuredOnly if failed => Structured::ContentFirst,
                structured => structured,
            },
            fence: self
                .results
                .fence
                .then(|| format!("{}.{}", self.server, self.tool).into()),
        }
    }

    /// Summarise: a summary with a note that it is one, or `None` and a warning.
    async fn summary(&self, text: &str, policy: Option<&Summarise>, notes: &mut Notes) -> Option<String> {
        let defaults = Summarise::default();
        let policy = policy.unwrap_or(&defaults);
        let Some(summariser) = self.outputs.summariser(policy) else {
            let warning = "the result was not summarised: no summariser is set";
            notes.warnings.push(warning.to_owned());
            return None;
        };
        let limit = policy.timeout.min(self.deadline.remaining());
        let request = SummaryRequest::new(self.server, self.tool, self.context, text, policy.max_tokens);
        match summarise::summary(summariser.as_ref(), &request, limit).await {
            Ok(summary) => {
                let tokens = bound::tokens(self.outputs, text);
                let rest = match &notes.handle {
                    Some(handle) => bound::how_to_read(&self.outputs.reader(), handle),
                    None => "The whole output was not kept.".to_owned(),
                };
                Some(format!(
                    "[NOTE: this is a summary of the output of {}.{}, which has about {tokens} tokens. {rest}]\n\n{summary}",
                    self.server, self.tool
                ))
            }
            Err(problem) => {
                tracing::debug!(server = self.server, tool = self.tool, %problem, "no summary");
                notes.warnings.push(format!("the result was not summarised: {problem}"));
                None
            }
        }
    }
}

/// How many bytes of payload a server sent.
fn payload(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Done(answer) | Outcome::ToolFailed(answer) => match &answer.structured {
            Some(structured) if answer.content.is_empty() => bound::json_len(structured, usize::MAX),
            _ => answer.content.iter().map(Content::payload_bytes).sum(),
        },
        Outcome::Refused(_) | Outcome::Lost(_) => 0,
    }
}

#[cfg(test)]
mod tests;
