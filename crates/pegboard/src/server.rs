//! One server's whole life behind a handle: it is started when needed, watched, and ended with its last handle.

mod phase;
mod supervisor;

pub(crate) use phase::{Live, Outage, Phase};

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    config::ServerConfig,
    deadline::Deadline,
    name::ServerName,
    outcome::{Kind, millis},
    session::{Spec, Survey},
    status::{CallCounts, ServerStatus},
    transport::Target,
};
use supervisor::Supervisor;

/// A cheap handle to one server. The server ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: ServerName,
    config: ServerConfig,
    transport: &'static str,
    phase: watch::Receiver<Phase>,
    /// Asks for a start. One place is enough: a start serves everybody who waits.
    nudge: mpsc::Sender<()>,
    turns: Semaphore,
    queued: AtomicUsize,
    counts: Counts,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stops_on_drop: DropGuard,
}

#[derive(Debug, Default)]
struct Counts {
    total: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
}

impl Server {
    /// A server that has not been started yet. `revision` is raised whenever what it offers may have changed.
    pub(crate) fn new(config: ServerConfig, spec: Spec, survey: Survey, revision: Arc<AtomicU64>) -> Self {
        let first = if config.enabled { Phase::Idle } else { Phase::Disabled };
        let (publish, phase) = watch::channel(first);
        let (nudge, nudged) = mpsc::channel(1);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let inner = Inner {
            name: spec.name.clone(),
            transport: match &spec.target {
                Target::Configured(transport) => transport.kind(),
                Target::InProcess(_) => "in_process",
            },
            turns: Semaphore::new(config.limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            queued: AtomicUsize::new(0),
            counts: Counts::default(),
            phase,
            nudge,
            _stops_on_drop: stop.clone().drop_guard(),
            tasks: tasks.clone(),
            stop: stop.clone(),
            config,
        };
        if inner.config.enabled {
            let supervisor = Supervisor {
                spec,
                survey,
                publish,
                nudged,
                revision,
                stop,
                tasks: tasks.clone(),
            };
            tasks.spawn(supervisor.run());
        }
        tasks.close();
        Self(Arc::new(inner))
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.0.name
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    /// Where its life stands.
    pub(crate) fn phase(&self) -> Phase {
        self.0.phase.borrow().clone()
    }

    /// Asks for its start without waiting.
    pub(crate) fn start(&self) {
        // A full channel means that somebody has asked already.
        let _ = self.0.nudge.try_send(());
    }

    /// The server ready for use: at once when it is, otherwise after a start. Everybody who waits shares one attempt.
    pub(crate) async fn live(&self, deadline: Deadline) -> Result<Live, Outage> {
        self.live_after(0, deadline).await
    }

    /// The same, after the start with the number `dead`: its session is known to have ended, even if nobody has noted that yet.
    pub(crate) async fn live_after(&self, dead: u64, deadline: Deadline) -> Result<Live, Outage> {
        let mut phase = self.0.phase.clone();
        let seen = phase.borrow().attempts_ended().max(dead);
        let waiting = async {
            loop {
                match &*phase.borrow_and_update() {
                    Phase::Ready(live) if live.attempt.number > dead => return Ok(live.clone()),
                    Phase::Down(outage) if outage.attempt > seen => return Err(outage.clone()),
                    Phase::Down(_) | Phase::Idle => self.start(),
                    Phase::Connecting(_) | Phase::Ready(_) => {}
                    Phase::Disabled => return Err(Outage::disabled()),
                    Phase::Closed => return Err(Outage::closed()),
                }
                if phase.changed().await.is_err() {
                    return Err(Outage::closed());
                }
            }
        };
        deadline
            .run(waiting)
            .await
            .unwrap_or_else(|_| Err(Outage::still_starting()))
    }

    /// Waits for a turn, at most until the deadline. Calls beyond the queue's length are turned away at once.
    pub(crate) async fn turn(&self, deadline: Deadline) -> Result<Turn<'_>, NoTurn> {
        const MAX_QUEUED: usize = 256;
        if let Ok(permit) = self.0.turns.try_acquire() {
            return Ok(Turn { _permit: permit });
        }
        let queued = Queued::enter(&self.0.queued);
        if queued.place > MAX_QUEUED {
            return Err(NoTurn::Full);
        }
        match deadline.run(self.0.turns.acquire()).await {
            Ok(Ok(permit)) => Ok(Turn { _permit: permit }),
            Ok(Err(_)) => Err(NoTurn::Full),
            Err(_) => Err(NoTurn::Late),
        }
    }

    /// Counts a call that has ended.
    pub(crate) fn count(&self, kind: Kind, took: std::time::Duration) {
        let counts = &self.0.counts;
        counts.total.fetch_add(1, Ordering::Relaxed);
        if kind != Kind::Ok {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// What it looks like from outside.
    pub(crate) fn status(&self) -> ServerStatus {
        let inner = &self.0;
        let phase = self.phase();
        let live = phase.live();
        let session = live.map(|live| &live.session);
        let total = inner.counts.total.load(Ordering::Relaxed);
        let spent = std::time::Duration::from_micros(inner.counts.micros.load(Ordering::Relaxed));
        ServerStatus {
            name: inner.name.clone(),
            state: phase.state(),
            since: phase.since().unwrap_or_else(Timestamp::now),
            transport: inner.transport,
            era: session.map(|session| session.facts.era),
            protocol_version: session.map(|session| session.facts.version.to_string()),
            server_info: session.and_then(|session| session.facts.info.clone()),
            instructions: session.and_then(|session| session.facts.instructions.clone()),
            tools: live.map_or(0, |live| live.catalog.tools.len()),
            resources: live.map_or(0, |live| live.catalog.resources.len()),
            prompts: live.map_or(0, |live| live.catalog.prompts.len()),
            pid: session.and_then(|session| session.pid()),
            restarts: phase.restarts(),
            in_flight: session.map_or(0, |session| session.in_flight()),
            queued: inner.queued.load(Ordering::Relaxed),
            required: inner.config.required,
            calls: CallCounts {
                total,
                failed: inner.counts.failed.load(Ordering::Relaxed),
                avg_ms: spent
                    .checked_div(u32::try_from(total).unwrap_or(u32::MAX))
                    .map_or(0.0, millis),
            },
            last_error: phase.last_error(),
        }
    }

    /// Ends the server and waits until its process is gone.
    pub(crate) async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.wait().await;
    }
}

/// The right to have one call under way.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    _permit: tokio::sync::SemaphorePermit<'a>,
}

/// Why there is no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTurn {
    Full,
    Late,
}

/// A place in the queue, given up when dropped.
struct Queued<'a> {
    count: &'a AtomicUsize,
    place: usize,
}

impl<'a> Queued<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        let place = count.fetch_add(1, Ordering::Relaxed) + 1;
        Self { count, place }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
