//! The status of a server: its state, its counters and its last error.

use pegboard_base::timestamp::Timestamp;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    breaker::BreakerState,
    config_filter::ConfigFilter,
    health_check::HealthCheck,
    link::Link,
    phase::{Attempt, Live, Phase},
    server_handle::Server,
};
use crate::metrics::{CallMetrics, ServerLoad};
use crate::status::{CallCounts, LastError, PoolStatus, SandboxStatus, ServerStatus, ToolCacheState};
use pegboard_client::transport::Target;
use pegboard_config::{SandboxLevel, Scope, Transport};
use pegboard_tools::{
    catalog::Catalog,
    outcome::{Content, Kind, Outcome, Reply, millis},
};

/// The longest remembered message of a failed call, in bytes. A tool may return a whole page.
const MAX_MESSAGE: usize = 500;

impl Server {
    /// Remembers the failure of a call that was sent to the server. Calls that were refused before that say nothing about the server.
    pub(crate) fn remember_failure(&self, reply: &Reply) {
        let kind = reply.outcome.kind();
        if reply.attempts == 0 || matches!(kind, Kind::Ok | Kind::Cancelled) {
            return;
        }
        let message = match &reply.outcome {
            // Without the fence around untrusted text, which is for models.
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
        let diagnosis = reply.outcome.diagnosis().cloned().map(Box::new);
        let error = LastError {
            message: shorten(message),
            hint: reply.outcome.hint().map(str::to_owned),
            at: Timestamp::now(),
            stderr: None,
            code: diagnosis.as_ref().map(|diagnosis| diagnosis.code),
            call: Some(kind.as_str()),
            diagnosis,
        };
        let last_error = &self.0.failed_call;
        *last_error.lock() = Some(error);
    }

    /// The phase as operators see it: a server that failed for one view has failed until an instance of it is ready, also if that view is
    /// closed and others have not used it yet.
    pub(crate) fn reported_phase(&self) -> Phase {
        match self.phase() {
            Phase::Idle if self.activation().is_requested() => self.0.history.outage().map_or(Phase::Idle, Phase::Down),
            Phase::Connecting(attempt) if attempt.after.is_none() => Phase::Connecting(Attempt {
                after: self.0.history.outage(),
                ..attempt
            }),
            // No call retries a spare, and an instance has been ready since.
            Phase::Down(_)
                if self.is_spare() && !self.connections().is_refused() && self.0.history.outage().is_none() =>
            {
                Phase::Idle
            }
            phase => phase,
        }
    }

    /// How busy the server is now.
    pub(crate) fn load(&self) -> ServerLoad {
        let admission = &self.0.admission;
        let queue = admission.stats();
        let mut load = ServerLoad {
            in_use: queue.in_use as u64,
            limit: queue.capacity as u64,
            queued: queue.depth as u64,
            queued_limit: queue.max_depth as u64,
            ..ServerLoad::default()
        };
        match admission.breaker().state(Instant::now()) {
            BreakerState::Closed => load.breakers.closed = 1,
            BreakerState::Open { .. } => load.breakers.open = 1,
            BreakerState::HalfOpen => load.breakers.half_open = 1,
        }
        load
    }

    /// The status row of the server.
    pub(crate) fn status(&self) -> ServerStatus {
        StatusReport(self).row()
    }
}

/// Reports on one server.
struct StatusReport<'a>(&'a Server);

impl StatusReport<'_> {
    fn row(&self) -> ServerStatus {
        let (server, inner) = (self.0, &self.0.0);
        let phase = server.reported_phase();
        let queue = inner.admission.stats();
        let session = phase.as_live().map(|live| &live.session);
        // Without a session, the catalogue is the last known one.
        let catalog = match &phase {
            Phase::Ready(live) => Some(live.catalog().clone()),
            Phase::Idle | Phase::Connecting(_) | Phase::Down(_) => server.listing().last(),
            Phase::Disabled | Phase::Closed => None,
        };
        let offers = |count: fn(&Catalog) -> usize| catalog.as_deref().map_or(0, count);
        let filter = ConfigFilter::new(server);
        let shown = catalog.as_deref().map_or(0, |catalog| {
            catalog.tools.iter().filter(|tool| filter.shows(tool)).count()
        });
        let check = self.last_check();
        ServerStatus {
            name: server.name().clone(),
            view: inner
                .owner
                .tag()
                .and_then(|view| view.name.as_ref())
                .map(ToString::to_string),
            principal: inner.owner.principal().cloned(),
            draining: inner.succession.is_retired(),
            state: phase.state(),
            since: phase.since().unwrap_or_else(Timestamp::now),
            transport: match &inner.spec.target {
                Target::Configured(transport) => transport.kind(),
                Target::InProcess(_) | Target::StandIn(_) => "in_process",
            },
            era: session.map(|session| session.peer.era),
            protocol_version: session.map(|session| session.peer.version.to_string()),
            server_info: session.and_then(|session| session.peer.info.clone()),
            description: server.config().description.clone(),
            scope: match server.config().policy.scope {
                Scope::Shared => "shared",
                Scope::Session => "session",
                Scope::Pool(_) => "pool",
            },
            capabilities: session.map(|session| self.mask_map(session.peer.capabilities.clone())),
            instructions: server.listing().instructions(),
            held: server.listing().held_tools().len(),
            hidden: offers(|catalog| catalog.tools.len()) - shown,
            tool_cache: cache_state(&phase, catalog.is_some()),
            tools: shown,
            resources: offers(|catalog| catalog.resources.len()),
            prompts: offers(|catalog| catalog.prompts.len()),
            pid: session.and_then(|session| session.pid()),
            sandbox: session
                .and_then(|session| session.sandbox())
                .or_else(|| self.requested_sandbox()),
            restarts: phase.restarts(),
            in_flight: queue.in_use,
            queued: queue.depth,
            breaker: inner.admission.breaker().state(Instant::now()).as_str(),
            required: server.config().required,
            awaits_connect: self.awaits_connect(),
            calls: match inner.owner.calls() {
                Some(calls) => calls,
                None => call_counts(&inner.counts.calls()),
            },
            ready_after_ms: phase.as_live().map(|live| millis(live.start)),
            last_error: self.last_error(&phase),
            checked_at: check.as_ref().map(|check| check.at),
            check_error: check.and_then(|check| check.error),
            pool: self.pool_status(),
        }
    }

    /// Whether the server starts only once the program connects it.
    fn awaits_connect(&self) -> bool {
        let is_requested = self.0.activation().is_requested();
        !is_requested && self.0.is_enabled() && !self.0.succession().is_retired()
    }

    /// The sandbox that the config requests, while no process runs.
    fn requested_sandbox(&self) -> Option<SandboxStatus> {
        let Target::Configured(transport) = &self.0.spec().target else {
            return None;
        };
        match &**transport {
            Transport::Stdio(command) if command.sandbox.level != SandboxLevel::Off => {
                Some(SandboxStatus::from_requested(command.sandbox.level.as_str()))
            }
            _ => None,
        }
    }

    /// Masks the error again: a secret may have become known since it was recorded.
    fn mask(&self, mut error: LastError) -> LastError {
        self.0.masker().hide(&mut error.message);
        self.0.masker().hide_in(&mut error.hint);
        self.0.masker().hide_in(&mut error.stderr);
        for text in error.diagnosis.iter_mut().flat_map(|diagnosis| diagnosis.texts_mut()) {
            self.0.masker().hide(text);
        }
        error
    }

    /// Masks a JSON object of the server.
    fn mask_map(&self, mut object: Map<String, Value>) -> Map<String, Value> {
        self.0
            .masker()
            .current()
            .mask_map(&mut object, &mut pegboard_mask::Counts::default());
        object
    }

    /// The status of a server's connections, if it has several.
    fn pool_status(&self) -> Option<PoolStatus> {
        let pool = self.0.connections().pool()?;
        let phases: Vec<Phase> = pool.links().map(Link::phase).collect();
        let live = || phases.iter().filter_map(Phase::as_live);
        (phases.len() > 1).then(|| PoolStatus {
            size: phases.len(),
            ready: live().count(),
            busy: pool.links().filter(|link| link.uses() > 0).count(),
            pids: live().filter_map(|live| live.session.pid()).collect(),
        })
    }

    /// The last error. A current outage takes precedence over failed calls, even later ones.
    fn last_error(&self, phase: &Phase) -> Option<LastError> {
        let of_calls = &self.0.0.failed_call;
        let of_calls = of_calls.lock().clone();
        let last = match (phase.last_error(self.0.name().as_str()), of_calls) {
            (Some(outage), Some(call)) if matches!(phase, Phase::Ready(_)) && call.at > outage.at => call,
            (Some(outage), _) => outage,
            (None, call) => call?,
        };
        Some(self.mask(last))
    }

    /// The newest health check of all connections.
    fn last_check(&self) -> Option<HealthCheck> {
        let pool = self.0.connections().pool()?;
        let mut check = pool.links().filter_map(Link::last_check).max_by_key(|check| check.at)?;
        self.0.masker().hide_in(&mut check.error);
        Some(check)
    }
}

/// What is known of a server's tools.
fn cache_state(phase: &Phase, is_known: bool) -> ToolCacheState {
    let is_expired = |live: &Live| live.stale_at.is_some_and(|at| at <= Instant::now());
    match phase {
        Phase::Ready(live) if !is_expired(live) => ToolCacheState::Ready,
        Phase::Disabled | Phase::Closed => ToolCacheState::Empty,
        _ if is_known => ToolCacheState::Stale,
        Phase::Connecting(_) => ToolCacheState::Populating,
        _ => ToolCacheState::Empty,
    }
}

/// Truncates a message to [`MAX_MESSAGE`] bytes.
fn shorten(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
    message
}

/// The mean over all calls, not a moving average: it does not depend on when it is read, and the histogram has the details.
fn call_counts(calls: &CallMetrics) -> CallCounts {
    CallCounts {
        total: calls.total,
        failed: calls.failed,
        avg_ms: calls.latency.mean_ms().map_or(0.0, |mean| (mean * 1e3).round() / 1e3),
    }
}
