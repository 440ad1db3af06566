//! Processes an outcome for the caller. The order is fixed: extract, sanitize, mask, truncate and spill, summarise, render.
//!
//! Only masked text is ever truncated, written to disk or sent to a summariser. A small result skips
//! the steps after masking.

mod binary_content;
mod limit_size;
mod mask_outcome;
mod result_rules;

use super::{
    context::CallContext,
    summarise::{self, summariser::SummaryRequest},
};
use crate::server::Server;
use limit_size::Limited;
use mask_outcome::OutcomeMasking;
use pegboard_base::deadline::Deadline;
use pegboard_client::session::CallResult;
use pegboard_config::{Policy, Results, Structured, Summarise};
use pegboard_mask::Counts;
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    filter,
    outcome::{Answer, Content, Failure, Notes, Outcome, Presented, Rendering},
};
use result_rules::ResultRules;

/// Extract: the outcome of an answered call, with all its content.
pub(super) fn extract(result: CallResult) -> Outcome {
    let answer = Answer {
        content: result.content,
        structured: result.structured,
        meta: result.meta,
        error_code: None,
        executed: true,
        rendering: Rendering::default(),
        raw: result.raw,
    };
    outcome_of(answer, result.is_error)
}

fn outcome_of(answer: Answer, failed: bool) -> Outcome {
    if failed {
        Outcome::ToolFailed(answer)
    } else {
        Outcome::Done(answer)
    }
}

/// Processes an outcome for the caller.
pub(super) async fn present(context: &CallContext<'_>, call: &ToolCall, outcome: Outcome) -> Presented {
    let (policy, options, tool) = (&context.config.policy, &context.view.result_options, context.tool());
    let rules = ResultRules {
        server: context.server().name().as_str(),
        tool: &tool.name,
        listed: context
            .view
            .audience
            .knows_listed_names()
            .then_some(&context.route.name),
        context: call.context.as_deref(),
        caller: context.view.caller(call),
        results: options.apply_size(results_of_tool(policy, &tool.name)),
        hint: tool.max_result,
        summarise: policy.summarise.as_ref(),
        options,
        deadline: context.deadline,
    };
    let original_bytes = payload(&outcome);
    let sanitizes = rules.results.clean && !policy.trust;
    let (outcome, masked) = mask(outcome, sanitizes, context.server(), context.deadline).await;
    if outcome.is_raw() {
        return Presented {
            outcome,
            original_bytes,
            masked,
            notes: Notes::default(),
        };
    }
    rules.shape(outcome, original_bytes, masked).await
}

/// Masks an outcome. If that takes too long, the result is withheld.
pub(super) async fn mask(outcome: Outcome, sanitizes: bool, server: &Server, deadline: Deadline) -> (Outcome, Counts) {
    let masking = OutcomeMasking { sanitizes, deadline };
    masking.mask(outcome, server.masker().current()).await
}

/// The settings for results of a tool: under its name, else under the first glob that matches it, else those of its server.
pub(super) fn results_of_tool(policy: &Policy, tool: &str) -> Results {
    if policy.tool_results.is_empty() {
        return policy.result;
    }
    let fits = |(glob, _): &(&String, &Results)| filter::fits(glob, tool);
    let of_tool = policy.tool_results.get(tool);
    of_tool
        .or_else(|| policy.tool_results.iter().find(fits).map(|(_, results)| results))
        .copied()
        .unwrap_or(policy.result)
}

impl ResultRules<'_> {
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
        let summarise = self
            .summarise
            .filter(|_| !failed && self.options.summarises(self.summarise));
        if binary_content::stays(&self.results) && limit_size::surely_fits(self, &answer, summarise) {
            return outcome_of(answer, failed);
        }
        // Boxed, because most answers are small and every call would pay for the space.
        Box::pin(self.limit(answer, failed, summarise, notes)).await
    }

    async fn limit(
        &self,
        mut answer: Answer,
        failed: bool,
        summarise: Option<&Summarise>,
        notes: &mut Notes,
    ) -> Outcome {
        binary_content::spill(&self.results, self.options, &mut answer, &mut notes.warnings).await;
        let answer = match limit_size::limit(self, answer, failed, summarise, notes).await {
            Limited::Fits(answer) => answer,
            Limited::Refused(failure) => return Outcome::Lost(failure),
            Limited::Cut(mut cut) => {
                let summary = match cut.summarise.take() {
                    Some(text) => self.summary(&text, summarise, notes).await,
                    None => None,
                };
                notes.truncated |= summary.is_some();
                cut.finish(summary)
            }
        };
        outcome_of(answer, failed)
    }

    fn failure(&self, mut failure: Failure, notes: &mut Notes) -> Failure {
        // The advice is never cut.
        let advice = failure.text().len().saturating_sub(failure.message.len());
        let room = self.results.max_bytes.saturating_sub(advice);
        if let Some(cut) = limit_size::message(&failure.message, room) {
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
            fence: self.results.fence.then(|| self.tool_name().into_owned().into()),
        }
    }

    /// Summarise: a summary with a note that it is one, or `None` and a warning.
    async fn summary(&self, text: &str, policy: Option<&Summarise>, notes: &mut Notes) -> Option<String> {
        let defaults = Summarise::default();
        let policy = policy.unwrap_or(&defaults);
        let Some(summariser) = self.options.summariser(policy) else {
            let warning = "the result was not summarised: no summariser is set";
            notes.warnings.push(warning.to_owned());
            return None;
        };
        let limit = policy.timeout.min(self.deadline.remaining());
        let mut request = SummaryRequest::new(self.server, self.tool, text, policy.max_tokens, self.caller);
        if let Some(context) = self.context {
            request = request.context(context);
        }
        match summarise::summary(summariser.as_ref(), &request, limit).await {
            Ok(summary) => {
                let tokens = limit_size::tokens(self.options, text);
                let rest = match &notes.handle {
                    Some(handle) => limit_size::how_to_read(&self.options.reader(), handle),
                    None => "The whole output was not kept.".to_owned(),
                };
                Some(format!(
                    "[NOTE: this is a summary of the output of {}, which has about {tokens} tokens. {rest}]\n\n{summary}",
                    self.tool_name()
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
        Outcome::Done(answer) | Outcome::ToolFailed(answer) if answer.raw.is_some() => {
            answer.raw.as_ref().map_or(0, |raw| raw.payload)
        }
        Outcome::Done(answer) | Outcome::ToolFailed(answer) => match &answer.structured {
            Some(structured) if answer.content.is_empty() => limit_size::json_len(structured, usize::MAX),
            _ => answer.content.iter().map(Content::payload_bytes).sum(),
        },
        Outcome::Refused(_) | Outcome::Lost(_) => 0,
    }
}

#[cfg(test)]
mod tests;
