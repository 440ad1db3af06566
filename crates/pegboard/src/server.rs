//! One server's whole life behind a handle: it is started when needed, watched, and ended with its last handle.

mod admit;
pub(crate) mod backoff;
mod breaker;
mod budget;
mod known;
mod phase;
mod probe;
mod shelf;
mod supervisor;

pub(crate) use admit::{Queues, Refused};
pub use backoff::BadSchedule;
pub(crate) use backoff::{Backoff, Jitter};
pub(crate) use breaker::{BreakerConfig, Open};
pub(crate) use budget::RetryBudget;
pub use known::CatalogChange;
pub(crate) use phase::{Live, Outage, Phase};
pub(crate) use shelf::Shelf;

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::Instant,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    catalog::{Catalog, store::CatalogStore},
    config::ServerConfig,
    deadline::Deadline,
    mask::Veil,
    name::ServerName,
    outcome::{Kind, millis},
    session::{Spec, Survey},
    status::{CallCounts, LastError, ServerStatus},
    transport::Target,
};
use admit::{Gate, Permit};
use breaker::Breaker;
use known::Known;
use supervisor::{Command, Memory, Supervisor};

/// How long a switch may take: a server has as long to end.
const SWITCH: std::time::Duration = std::time::Duration::from_secs(15);
/// How often a supervisor is reminded by those who wait.
const REMIND: std::time::Duration = std::time::Duration::from_secs(1);
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
    /// The queues that calls of several servers wait in.
    pub(crate) queues: Queues,
    /// When callers are turned away from a server that answers nobody.
    pub(crate) breaker: BreakerConfig,
    /// Where catalogues are kept between programs.
    pub(crate) catalogs: Option<CatalogStore>,
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
    gate: Gate,
    retries: RetryBudget,
    breaker: Breaker,
    counts: Counts,
    known: Arc<Known>,
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
        let enabled = config.enabled;
        let (server, supervisor) = Self::unattended(config, spec, shared);
        server.0.tasks.spawn(supervisor.run(enabled));
        server.0.tasks.close();
        server
    }

    /// A server, and its supervisor that does not run yet.
    fn unattended(config: ServerConfig, spec: Spec, shared: &Shared) -> (Self, Supervisor) {
        let (publish, phase) = watch::channel(Phase::Idle);
        let (commands, asked) = mpsc::channel(COMMANDS);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let kept = match &spec.target {
            Target::Configured(transport) => shared.catalogs.clone().zip(Some(transport.fingerprint())),
            Target::InProcess(_) => None,
        };
        let known = Arc::new(Known::new(spec.name.clone(), kept));
        let supervisor = Supervisor {
            known: known.clone(),
            spec: Arc::new(spec.clone()),
            survey: shared.survey,
            publish,
            commands: asked,
            revision: shared.revision.clone(),
            stop: stop.clone(),
            starts: shared.starts.clone(),
            memory: Memory::new(shared.backoff.clone()),
            tasks: tasks.clone(),
        };
        let server = Self(Arc::new(Inner {
            name: spec.name.clone(),
            transport: match &spec.target {
                Target::Configured(transport) => transport.kind(),
                Target::InProcess(_) => "in_process",
            },
            gate: shared
                .queues
                .gate(spec.name.as_str(), places(&config), config.policy.queue.as_deref()),
            retries: RetryBudget::new(Instant::now()),
            breaker: Breaker::new(shared.breaker),
            counts: Counts::default(),
            known,
            phase,
            commands,
            _stops_on_drop: stop.clone().drop_guard(),
            tasks,
            stop,
            config: RwLock::new(Arc::new(config)),
            spec,
        }));
        (server, supervisor)
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.0.name
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.0.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over settings that need no new connection.
    pub(crate) fn retune(&self, config: ServerConfig) {
        self.0.gate.grow(places(&config));
        self.0.spec.veil.follow(&config.policy.masking);
        self.0.spec.veil.learn(config.secrets());
        *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// What stands between its words and everybody else.
    pub(crate) fn veil(&self) -> &Veil {
        &self.0.spec.veil
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

    /// What it offers, or offered when it was there last. Nothing while it is switched off.
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        match &*self.0.phase.borrow() {
            Phase::Ready(live) => Some(live.catalog.clone()),
            Phase::Disabled | Phase::Closed => None,
            Phase::Idle | Phase::Connecting(_) | Phase::Down(_) => self.0.known.latest(),
        }
    }

    /// How its catalogue changed, the newest change last.
    pub(crate) fn changes(&self) -> Vec<CatalogChange> {
        self.0.known.changes()
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

    /// Lists the server again, unless that was done since `live` was had, and waits until the listing has ended, well or not.
    pub(crate) async fn relisted(&self, live: &Live, deadline: Deadline) {
        let mut phase = self.0.phase.clone();
        let is_as_it_was = |phase: &Phase| {
            let now = phase.live();
            now.is_some_and(|now| Arc::ptr_eq(&now.catalog, &live.catalog))
        };
        if is_as_it_was(&phase.borrow_and_update()) {
            self.refresh();
            let _ = deadline.run(phase.changed()).await;
        }
    }

    /// Starts the server anew, and waits until the old session is left.
    pub(crate) async fn reconnect(&self) {
        self.0.breaker.reset();
        let old = self.phase().live().map(|live| live.generation);
        self.ask(Command::Reconnect);
        self.until(|phase| phase.live().is_none_or(|live| Some(live.generation) != old))
            .await;
    }

    /// Switches the server on or off, and waits until that is so.
    pub(crate) async fn enable(&self, on: bool) {
        self.ask(if on { Command::Enable } else { Command::Disable });
        self.until(|phase| matches!(phase, Phase::Disabled) != on).await;
    }

    /// Waits until its phase is as wanted, or closed, but not for ever: closing a server is bounded, so that is never cut short.
    async fn until(&self, is_wanted: impl Fn(&Phase) -> bool) {
        let mut phase = self.0.phase.clone();
        let waiting = phase.wait_for(|phase| is_wanted(phase) || matches!(phase, Phase::Closed));
        let _ = tokio::time::timeout(SWITCH, waiting).await;
    }

    fn ask(&self, command: Command) {
        let _ = self.0.commands.try_send(command);
    }

    /// The server ready for use: at once when it is, after its start when that is under way. When it is down, the outage.
    pub(crate) async fn live(&self, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        self.live_after(0, deadline).await
    }

    /// The server ready for use, in a session later than `generation`.
    pub(crate) async fn live_after(&self, generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        let mut phase = self.0.phase.clone();
        let waiting = async {
            loop {
                match &*phase.borrow_and_update() {
                    Phase::Ready(live) if live.generation > generation => return Ok(live.clone()),
                    Phase::Ready(_) => self.replace(generation),
                    Phase::Connecting(_) => {}
                    Phase::Down(outage) => return Err(outage.clone()),
                    Phase::Idle => self.start(),
                    Phase::Disabled => return Err(Outage::disabled().into()),
                    Phase::Closed => return Err(Outage::closed().into()),
                }
                // A command that found the supervisor's mailbox full is given again.
                if let Ok(Err(_)) = tokio::time::timeout(REMIND, phase.changed()).await {
                    return Err(Outage::closed().into());
                }
            }
        };
        deadline.run(waiting).await.unwrap_or_else(|_| {
            let restarts = self.phase().restarts();
            Err(Outage::still_starting().after_restarts(restarts).into())
        })
    }

    /// Waits for a turn, at most until the deadline.
    pub(crate) async fn turn(&self, deadline: Deadline) -> Result<Permit, Refused> {
        self.0.gate.enter(deadline).await
    }

    /// The repetitions that calls of this server may make.
    pub(crate) fn retries(&self) -> &RetryBudget {
        &self.0.retries
    }

    /// Turns callers away from a server that answers nobody.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.0.breaker
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
        let queue = inner.gate.numbers();
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
            in_flight: queue.in_use,
            queued: queue.depth,
            breaker: inner.breaker.state(Instant::now()).as_str(),
            required: self.config().required,
            calls: CallCounts {
                total,
                failed: inner.counts.failed.load(Ordering::Relaxed),
                avg_ms: spent
                    .checked_div(u32::try_from(total).unwrap_or(u32::MAX))
                    .map_or(0.0, millis),
            },
            last_error: phase.last_error().map(|error| self.hidden(error)),
        }
    }

    /// Masked once more: a secret may have become known since.
    fn hidden(&self, mut error: LastError) -> LastError {
        self.veil().hide(&mut error.message);
        self.veil().hide_in(&mut error.hint);
        self.veil().hide_in(&mut error.stderr);
        error
    }

    /// How many calls are under way or wait for their turn.
    pub(crate) fn busy(&self) -> usize {
        let queue = self.0.gate.numbers();
        queue.in_use + queue.depth
    }

    /// Ends the server and waits until its process is gone.
    pub(crate) async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.wait().await;
    }
}

/// How many calls of a server may be under way at once.
fn places(config: &ServerConfig) -> usize {
    if config.policy.serial {
        1
    } else {
        config.limits.in_flight
    }
}
