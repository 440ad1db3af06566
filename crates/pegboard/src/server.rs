//! One server's whole life behind a handle: it is started when needed, watched, and ended with its last handle.

mod backoff;
mod phase;
mod probe;
mod shelf;
mod supervisor;

pub(crate) use backoff::Backoff;
pub(crate) use phase::{Live, Outage, Phase};
pub(crate) use shelf::Shelf;

use std::sync::{
    Arc, PoisonError, RwLock,
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
use supervisor::{Command, Memory, Supervisor};

/// How many commands wait for a supervisor that is busy.
const COMMANDS: usize = 32;

/// What all servers of one board share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) survey: Survey,
    /// Raised whenever what a server offers may have changed.
    pub(crate) revision: Arc<AtomicU64>,
    /// How many servers may be starting at once.
    pub(crate) starts: Arc<Semaphore>,
    /// The schedule of restarts.
    pub(crate) backoff: Backoff,
}

/// A cheap handle to one server. The server ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: ServerName,
    /// Replaced as a whole when a setting changes that needs no new connection.
    config: RwLock<Arc<ServerConfig>>,
    spec: Spec,
    transport: &'static str,
    phase: watch::Receiver<Phase>,
    /// What is asked of the supervisor. A full channel loses only what others have asked for as well.
    commands: mpsc::Sender<Command>,
    in_flight: AtomicUsize,
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
    /// A server that has not been started yet.
    pub(crate) fn new(config: ServerConfig, spec: Spec, shared: &Shared) -> Self {
        let (publish, phase) = watch::channel(Phase::Idle);
        let (commands, asked) = mpsc::channel(COMMANDS);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let supervisor = Supervisor {
            spec: Arc::new(spec.clone()),
            survey: shared.survey,
            publish,
            commands: asked,
            revision: shared.revision.clone(),
            stop: stop.clone(),
            starts: shared.starts.clone(),
            memory: Memory::new(shared.backoff.clone()),
        };
        tasks.spawn(supervisor.run(config.enabled));
        tasks.close();
        Self(Arc::new(Inner {
            name: spec.name.clone(),
            transport: match &spec.target {
                Target::Configured(transport) => transport.kind(),
                Target::InProcess(_) => "in_process",
            },
            turns: Semaphore::new(config.limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            queued: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            counts: Counts::default(),
            phase,
            commands,
            _stops_on_drop: stop.clone().drop_guard(),
            tasks,
            stop,
            config: RwLock::new(Arc::new(config)),
            spec,
        }))
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.0.name
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.0.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over settings that need no new connection.
    pub(crate) fn retune(&self, config: ServerConfig) {
        let (before, after) = (self.config().limits.in_flight, config.limits.in_flight);
        if after > before {
            self.0.turns.add_permits(after - before);
        } else {
            self.0.turns.forget_permits(before - after);
        }
        *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Another server with the same settings and a process or connection of its own.
    pub(crate) fn fresh(&self, shared: &Shared) -> Self {
        Self::new(self.config().as_ref().clone(), self.0.spec.clone(), shared)
    }

    /// Whether it comes from a config, not from this program.
    pub(crate) fn is_configured(&self) -> bool {
        matches!(self.0.spec.target, Target::Configured(_))
    }

    /// Where its life stands.
    pub(crate) fn phase(&self) -> Phase {
        self.0.phase.borrow().clone()
    }

    /// Asks for its start without waiting.
    pub(crate) fn start(&self) {
        self.ask(Command::Start);
    }

    /// The session of this generation is of no use any more. Later generations are left alone.
    pub(crate) fn replace(&self, generation: u64) {
        self.ask(Command::Replace(generation));
    }

    /// The session of this generation may be dead: it is probed, and replaced if that is so.
    pub(crate) fn suspect(&self, generation: u64) {
        self.ask(Command::Suspect(generation));
    }

    /// Lists the server again.
    pub(crate) fn refresh(&self) {
        self.ask(Command::Refresh);
    }

    /// Starts the server anew.
    pub(crate) fn reconnect(&self) {
        self.ask(Command::Reconnect);
    }

    /// Switches the server on or off.
    pub(crate) fn enable(&self, on: bool) {
        self.ask(if on { Command::Enable } else { Command::Disable });
    }

    fn ask(&self, command: Command) {
        let _ = self.0.commands.try_send(command);
    }

    /// The server ready for use: at once when it is, after its start when that is under way. When it is down, the outage.
    pub(crate) async fn live(&self, deadline: Deadline) -> Result<Live, Outage> {
        self.live_after(0, deadline).await
    }

    /// The server ready for use, in a session later than `generation`.
    pub(crate) async fn live_after(&self, generation: u64, deadline: Deadline) -> Result<Live, Outage> {
        let mut phase = self.0.phase.clone();
        let waiting = async {
            loop {
                match &*phase.borrow_and_update() {
                    Phase::Ready(live) if live.generation > generation => return Ok(live.clone()),
                    Phase::Ready(_) | Phase::Connecting(_) => {}
                    Phase::Down(outage) => return Err(outage.clone()),
                    Phase::Idle => self.start(),
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
            return Ok(Turn::new(permit, &self.0.in_flight));
        }
        let queued = Queued::enter(&self.0.queued);
        if queued.place > MAX_QUEUED {
            return Err(NoTurn::Full);
        }
        match deadline.run(self.0.turns.acquire()).await {
            Ok(Ok(permit)) => Ok(Turn::new(permit, &self.0.in_flight)),
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
            in_flight: inner.in_flight.load(Ordering::Relaxed),
            queued: inner.queued.load(Ordering::Relaxed),
            required: self.config().required,
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
    in_flight: &'a AtomicUsize,
}

impl<'a> Turn<'a> {
    fn new(permit: tokio::sync::SemaphorePermit<'a>, in_flight: &'a AtomicUsize) -> Self {
        in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            _permit: permit,
            in_flight,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
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
