//! What a server looks like from outside: its figures and its status.

use std::sync::PoisonError;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{health_check::HealthCheck, link::Link, phase::Phase, server_handle::Server};
use crate::{
    catalog::{Catalog, ToolKind},
    config::Scope,
    mask,
    metrics::CallMetrics,
    outcome::{Content, Kind, Outcome, Reply, millis},
    status::{CallCounts, LastError, PoolStatus, ServerStatus},
    transport::Target,
};

/// The longest message that is remembered of a failed call. A tool may answer with a whole page.
const MAX_MESSAGE: usize = 500;

impl Server {
    /// Whose tools its tools are.
    pub(crate) fn tool_kind(&self) -> ToolKind {
        self.0.spec.target.tool_kind()
    }

    /// Counts a call that has ended for the view that owns the server.
    pub(crate) fn count_for_view(&self, reply: &Reply) {
        if self.view().is_some() {
            self.0.calls.record(reply);
        }
    }

    /// Remembers how a call failed that was handed to the server. Calls that were refused before that say nothing about it, and outages are
    /// known already.
    pub(crate) fn remember_failure(&self, reply: &Reply) {
        let kind = reply.outcome.kind();
        if reply.attempts == 0 || matches!(kind, Kind::Ok | Kind::Cancelled) {
            return;
        }
        let message = match &reply.outcome {
            // Without the fence, which is for models.
            Outcome::ToolFailed(answer) => {
                let texts = answer.content.iter().filter_map(|block| match block {
                    Content::Text { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join(" ");
                format!("{} reported an error: {text}", reply.name)
            }
            other => other.text(),
        };
        let error = LastError {
            message: shortened(message),
            hint: reply.outcome.hint().map(str::to_owned),
            at: Timestamp::now(),
            stderr: None,
        };
        let last_error = &self.0.failed_call;
        *last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// What went wrong last. An outage that lasts comes before failed calls, however late they are.
    fn last_error(&self, phase: &Phase) -> Option<LastError> {
        let of_calls = &self.0.failed_call;
        let of_calls = of_calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = match (phase.last_error(), of_calls) {
            (Some(outage), Some(call)) if matches!(phase, Phase::Ready(_)) && call.at > outage.at => call,
            (Some(outage), _) => outage,
            (None, call) => call?,
        };
        Some(self.hidden(last))
    }

    /// The latest check of all its connections.
    fn last_check(&self) -> Option<HealthCheck> {
        let pool = self.pool()?;
        let mut check = pool.links().filter_map(Link::last_check).max_by_key(|check| check.at)?;
        self.masker().hide_in(&mut check.error);
        Some(check)
    }

    /// What it looks like from outside.
    pub(crate) fn status(&self) -> ServerStatus {
        let inner = &self.0;
        let phase = self.phase();
        let queue = inner.gate.stats();
        let session = phase.live().map(|live| &live.session);
        // A server that rests still has what it had; of one that is down nobody knows.
        let catalog = match &phase {
            Phase::Ready(live) => Some(live.catalog().clone()),
            Phase::Idle => self.catalog(),
            Phase::Disabled | Phase::Connecting(_) | Phase::Down(_) | Phase::Closed => None,
        };
        let offers = |count: fn(&Catalog) -> usize| catalog.as_deref().map_or(0, count);
        let check = self.last_check();
        ServerStatus {
            name: inner.name.clone(),
            view: self.view().map(|view| view.name.to_string()),
            draining: self.is_retired(),
            state: phase.state(),
            since: phase.since().unwrap_or_else(Timestamp::now),
            transport: match &inner.spec.target {
                Target::Configured(transport) => transport.kind(),
                Target::InProcess(_) | Target::StandIn(_) => "in_process",
            },
            era: session.map(|session| session.facts.era),
            protocol_version: session.map(|session| session.facts.version.to_string()),
            server_info: session.and_then(|session| session.facts.info.clone()),
            description: self.config().description.clone(),
            scope: match self.config().policy.scope {
                Scope::Shared => "shared",
                Scope::Session => "session",
                Scope::Pool(_) => "pool",
            },
            capabilities: session.map(|session| self.hidden_map(session.facts.capabilities.clone())),
            instructions: session.and_then(|session| session.facts.instructions.clone()),
            tools: offers(|catalog| catalog.tools.len()),
            resources: offers(|catalog| catalog.resources.len()),
            prompts: offers(|catalog| catalog.prompts.len()),
            pid: session.and_then(|session| session.pid()),
            restarts: phase.restarts(),
            in_flight: queue.in_use,
            queued: queue.depth,
            breaker: self.breaker().state(Instant::now()).as_str(),
            required: self.config().required,
            calls: match self.view() {
                Some(_) => inner.calls.status(),
                None => call_counts(&inner.counts.calls()),
            },
            ready_after_ms: phase.live().map(|live| millis(live.start)),
            last_error: self.last_error(&phase),
            checked_at: check.as_ref().map(|check| check.at),
            check_error: check.and_then(|check| check.error),
            pool: self.pool_status(),
        }
    }

    /// Masked once more: a secret may have become known since.
    fn hidden(&self, mut error: LastError) -> LastError {
        self.masker().hide(&mut error.message);
        self.masker().hide_in(&mut error.hint);
        self.masker().hide_in(&mut error.stderr);
        error
    }

    /// What the server said without secrets.
    fn hidden_map(&self, mut said: Map<String, Value>) -> Map<String, Value> {
        self.masker()
            .current()
            .mask_map(&mut said, &mut mask::Counts::default());
        said
    }

    /// The figures of a server that has several connections.
    fn pool_status(&self) -> Option<PoolStatus> {
        let pool = self.pool()?;
        let phases: Vec<Phase> = pool.links().map(Link::phase).collect();
        let live = || phases.iter().filter_map(Phase::live);
        (phases.len() > 1).then(|| PoolStatus {
            size: phases.len(),
            ready: live().count(),
            busy: pool.links().filter(|link| link.uses() > 0).count(),
            pids: live().filter_map(|live| live.session.pid()).collect(),
        })
    }

    /// How many requests are under way or wait for their turn.
    pub(crate) fn busy(&self) -> usize {
        let queue = self.0.gate.stats();
        let uses = self.pool().map_or(0, |pool| pool.uses());
        queue.depth + queue.in_use.max(uses)
    }
}

/// A message of at most [`MAX_MESSAGE`] bytes.
fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
    message
}

/// The plain mean over all calls, not a moving average: it does not depend on when it is read, and the histogram tells the rest.
fn call_counts(calls: &CallMetrics) -> CallCounts {
    CallCounts {
        total: calls.total,
        failed: calls.failed,
        avg_ms: calls.latency.mean_ms().map_or(0.0, |mean| (mean * 1e3).round() / 1e3),
    }
}
