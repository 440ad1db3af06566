//! What is written down about a call, from its beginning to its reply.

use std::time::Duration;

use tokio::time::Instant;

use super::{CallContext, ToolCall};
use crate::{
    mask::Counts,
    outcome::{Presented, Reply},
};

/// What is written down about a call while it runs.
#[derive(Debug, Clone)]
pub(super) struct Record {
    started: Instant,
    pub(super) queued: Duration,
    pub(super) attempts: u32,
    /// Whether an attempt that was repeated may have been carried out.
    pub(super) may_have_run: bool,
    /// Whether the answer was kept from an earlier call.
    pub(super) cached: bool,
    /// What the caller should know besides the outcome.
    pub(super) warnings: Vec<String>,
    /// What was hidden in the answer before it came here.
    pub(super) masked: Counts,
}

impl Record {
    pub(super) fn open(job: &CallContext<'_>, call: &mut ToolCall) -> Self {
        tracing::debug!(id = %call.id, server = %job.server().name(), tool = %job.tool().name, "call");
        Self {
            started: job.started,
            queued: Duration::ZERO,
            attempts: 0,
            may_have_run: false,
            cached: false,
            warnings: std::mem::take(&mut call.notes),
            masked: Counts::default(),
        }
    }

    /// The reply. It takes the words of the call that it repeats.
    pub(super) fn close(self, job: &CallContext<'_>, call: &mut ToolCall, presented: Presented) -> Reply {
        let outcome = presented.outcome;
        let (mut warnings, mut masked) = (self.warnings, self.masked);
        masked.add_all(&presented.masked);
        warnings.extend(presented.notes.warnings);
        if !warnings.is_empty() {
            // They may quote what the server or a summariser said.
            let masker = job.server().masker().current();
            warnings
                .iter_mut()
                .for_each(|warning| masker.mask(warning, &mut masked));
        }
        let latency = self.started.elapsed();
        let id_given = call.has_given_id();
        Reply {
            id: std::mem::take(&mut call.id),
            name: job.tool().dotted_name(),
            id_given,
            asked: call.asked.take().unwrap_or_else(|| std::mem::take(&mut call.name)),
            repaired: None,
            server: Some(job.server().name().clone()),
            tool: Some(job.tool().name.clone()),
            untrusted: !job.config.policy.trust && outcome.has_words_of_a_server(),
            outcome,
            original_bytes: presented.original_bytes,
            masked: masked.total(),
            masked_by: masked,
            truncated: presented.notes.truncated,
            handle: presented.notes.handle,
            attempts: self.attempts,
            latency,
            queued: self.queued,
            cached: self.cached,
            warnings,
        }
    }
}
