//! Collects attempts, waits, warnings and masked secrets while a call runs, and builds its reply.

use std::time::Duration;

use tokio::time::Instant;

use super::{call_limits::RepeatKey, context::CallContext};
use pegboard_mask::Counts;
use pegboard_tools::outcome::{Presented, Reply};
use pegboard_tools::tool_call::ToolCall;

/// The data for a reply that is collected while the call runs.
#[derive(Debug, Clone)]
pub(super) struct CallRecord {
    started: Instant,
    pub(super) queued: Duration,
    pub(super) attempts: u32,
    /// Whether an attempt before the last one may have been executed.
    pub(super) may_have_run: bool,
    /// Whether the answer came from the cache.
    pub(super) cached: bool,
    /// Warnings for the caller, in addition to the outcome.
    pub(super) warnings: Vec<String>,
    /// The key under which the outcome of the call is reported, if repeated calls are limited.
    pub(super) repeat_key: Option<RepeatKey>,
    /// What was masked before the outcome reached `present`.
    pub(super) masked: Counts,
}

impl CallRecord {
    pub(super) fn open(context: &CallContext<'_>, call: &mut ToolCall) -> Self {
        tracing::debug!(id = %call.id, server = %context.server().name(), tool = %context.tool().name, "call");
        Self {
            started: context.started,
            queued: Duration::ZERO,
            attempts: 0,
            may_have_run: false,
            cached: false,
            warnings: std::mem::take(&mut call.notes),
            repeat_key: None,
            masked: Counts::default(),
        }
    }

    /// Builds the reply. Moves the id and the name out of `call`.
    pub(super) fn close(self, context: &CallContext<'_>, call: &mut ToolCall, presented: Presented) -> Reply {
        let outcome = presented.outcome;
        let (mut warnings, mut masked) = (self.warnings, self.masked);
        masked.add_all(&presented.masked);
        warnings.extend(presented.notes.warnings);
        if !warnings.is_empty() {
            // Warnings may quote a server or a summariser.
            let masker = context.server().masker().current();
            warnings
                .iter_mut()
                .for_each(|warning| masker.mask(warning, &mut masked));
        }
        let latency = self.started.elapsed();
        let id_given = call.has_given_id();
        Reply {
            id: std::mem::take(&mut call.id),
            name: context.tool().dotted_name(),
            id_given,
            asked: call.asked.take().unwrap_or_else(|| std::mem::take(&mut call.name)),
            repaired: None,
            server: Some(context.server().name().clone()),
            tool: Some(context.tool().name.clone()),
            untrusted: !context.config.policy.trust && outcome.may_contain_server_text(),
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
