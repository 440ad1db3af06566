//! What a server looks like from outside: its figures and its status.

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Phase, Server, link::Link};
use crate::{
    catalog::Catalog,
    metrics::CallMetrics,
    outcome::millis,
    status::{CallCounts, LastError, PoolStatus, ServerStatus},
    transport::Target,
};

impl Server {
    /// What it looks like from outside.
    pub(crate) fn status(&self) -> ServerStatus {
        let inner = &self.0;
        let phase = self.phase();
        let queue = inner.gate.numbers();
        let session = phase.live().map(|live| &live.session);
        // A server that rests still has what it had; of one that is down nobody knows.
        let catalog = match &phase {
            Phase::Ready(live) => Some(live.catalog().clone()),
            Phase::Idle => self.catalog(),
            Phase::Disabled | Phase::Connecting(_) | Phase::Down(_) | Phase::Closed => None,
        };
        let offers = |count: fn(&Catalog) -> usize| catalog.as_deref().map_or(0, count);
        ServerStatus {
            name: inner.name.clone(),
            state: phase.state(),
            since: phase.since().unwrap_or_else(Timestamp::now),
            transport: match &inner.spec.target {
                Target::Configured(transport) => transport.kind(),
                Target::InProcess(_) => "in_process",
            },
            era: session.map(|session| session.facts.era),
            protocol_version: session.map(|session| session.facts.version.to_string()),
            server_info: session.and_then(|session| session.facts.info.clone()),
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
            calls: call_counts(&inner.counts.calls()),
            ready_after_ms: phase.live().map(|live| millis(live.start)),
            last_error: phase.last_error().map(|error| self.hidden(error)),
            pool: self.pool_status(),
        }
    }

    /// Masked once more: a secret may have become known since.
    fn hidden(&self, mut error: LastError) -> LastError {
        self.veil().hide(&mut error.message);
        self.veil().hide_in(&mut error.hint);
        self.veil().hide_in(&mut error.stderr);
        error
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

    /// How many calls are under way or wait for their turn.
    pub(crate) fn busy(&self) -> usize {
        let queue = self.0.gate.numbers();
        queue.in_use + queue.depth
    }
}

/// The plain mean over all calls, not a moving average: it does not depend on when it is read, and the histogram tells the rest.
fn call_counts(calls: &CallMetrics) -> CallCounts {
    CallCounts {
        total: calls.total,
        failed: calls.failed,
        avg_ms: calls.latency.mean_ms().map_or(0.0, |mean| (mean * 1e3).round() / 1e3),
    }
}
