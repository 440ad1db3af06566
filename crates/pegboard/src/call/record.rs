//! What is written down about a call, from its beginning to its reply.

use std::time::Duration;

use tokio::time::Instant;

use super::{Route, ToolCall};
use crate::{
    mask::Counts,
    outcome::{Content, Outcome, Reply},
};

/// What is written down about a call while it runs.
pub(super) struct Record {
    id: String,
    started: Instant,
    pub(super) queued: Duration,
    pub(super) attempts: u32,
    /// Whether an attempt that was repeated may have been carried out.
    pub(super) may_have_run: bool,
    /// What was hidden in the answer.
    pub(super) masked: Counts,
}

impl Record {
    pub(super) fn open(route: &Route, call: &ToolCall, started: Instant) -> Self {
        tracing::debug!(id = %call.id, server = %route.server.name(), tool = %route.tool.name, "call");
        Self {
            id: call.id.clone(),
            started,
            queued: Duration::ZERO,
            attempts: 0,
            may_have_run: false,
            masked: Counts::default(),
        }
    }

    pub(super) fn close(self, route: &Route, outcome: Outcome) -> Reply {
        let latency = self.started.elapsed();
        route.server.count(outcome.kind(), latency);
        tracing::debug!(id = %self.id, kind = ?outcome.kind(), ?latency, "call ended");
        Reply {
            id: self.id,
            name: route.tool.dotted_name(),
            server: Some(route.server.name().clone()),
            tool: Some(route.tool.name.clone()),
            original_bytes: match &outcome {
                Outcome::Done(answer) | Outcome::ToolFailed(answer) => {
                    answer.content.iter().map(Content::payload_bytes).sum()
                }
                Outcome::Refused(_) | Outcome::Lost(_) => 0,
            },
            outcome,
            attempts: self.attempts,
            latency,
            queued: self.queued,
            masked: self.masked.total(),
            masked_by: self.masked,
        }
    }
}
