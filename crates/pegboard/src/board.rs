//! The board: all servers of one config, the views of them, and changes while they run.

mod change;

pub use change::{Applied, NotConnected};

mod health;
mod reconcile;
mod select;
mod view;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use crate::{
    call::{Approvals, Approver, Embedder, Embeddings},
    catalog::store::CatalogStore,
    config::{BoardLimits, BreakerPolicy, Capabilities, Config, Misconfigured, ServerConfig},
    deadline::Deadline,
    event::{EventSender, Events},
    mask::{KnownSecrets, Masking, ServerMasker},
    metrics::Metrics,
    name::{NameStyle, ServerName},
    secret::Secret,
    server::{Backoff, BadSchedule, CatalogChange, Jitter, Links, Outage, Queues, Registry, Server, Shared},
    session::{ClientInfo, DesiredState, EraMemory, Host, ListScope, NoHost, Root, Spec},
    status::{BoardStatus, ServerStatus},
    transport::{ByteBudget, Dialer, StandIns, Target},
};

/// How often it is looked whether the calls under way are done.
const DRAIN_LOOK: Duration = Duration::from_millis(10);

/// All servers of one config. Dropping the last clone ends them; [`Pegboard::shutdown`] also waits for that.
#[derive(Debug, Clone)]
pub struct Pegboard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Arc<Registry>,
    factory: ServerFactory,
    people: HostDefaults,
    /// Who finds tools by meaning for views that name nobody.
    embeddings: Option<Arc<Embeddings>>,
    /// How views name tools unless they say so themselves.
    naming: Mutex<NameStyle>,
    /// One permit, for the one who changes the config.
    changes: Semaphore,
}

/// Who is asked by views that name nobody, and what was agreed to for all views.
#[derive(Clone, Default)]
struct HostDefaults {
    approver: Option<Arc<dyn Approver>>,
    agreed: Approvals,
}

impl std::fmt::Debug for HostDefaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostDefaults")
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}

/// What is needed to make a server of its config.
struct ServerFactory {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    client: Arc<ClientInfo>,
    memory: Arc<EraMemory>,
    /// What configured servers are reached through instead of their transports.
    stand_ins: Option<Box<StandIns>>,
    /// The secrets of all servers, hidden in the words of each.
    secrets: KnownSecrets,
    /// How many servers the board takes.
    most: AtomicUsize,
    /// How many processes it may have.
    processes: AtomicUsize,
    /// How many bytes the messages of all servers may take together.
    budget: ByteBudget,
}

impl ServerFactory {
    /// A server, or one that says that there is no room for it beside `others`.
    fn make(&self, name: ServerName, target: Target, config: ServerConfig, others: usize) -> Server {
        let spec = self.spec(name, target, &config);
        let most = self.most.load(Ordering::Relaxed);
        if others >= most && config.enabled {
            return Server::refused(config, spec, &self.shared, Outage::too_many(most));
        }
        Server::new(config, spec, &self.shared)
    }

    /// Takes over the limits of another config. The number of processes only grows: those that run keep their places.
    fn take_limits(&self, limits: &BoardLimits) {
        self.most.store(limits.servers, Ordering::Relaxed);
        let wanted = limits.processes.min(Semaphore::MAX_PERMITS);
        let before = self.processes.fetch_max(wanted, Ordering::Relaxed);
        self.shared.processes.add_permits(wanted.saturating_sub(before));
        self.budget.raise(limits.buffered);
    }

    fn configured(&self, name: ServerName, config: ServerConfig, others: usize) -> Server {
        let target = match &self.stand_ins {
            Some(stand_ins) => Target::StandIn(stand_ins(&name, &config)),
            None => Target::Configured(Box::new(config.transport.clone())),
        };
        self.make(name, target, config, others)
    }

    /// A server that keeps its row although its config cannot be used.
    fn misconfigured(&self, name: ServerName, misconfigured: &Misconfigured) -> Server {
        let config = misconfigured.placeholder();
        let spec = self.spec(name, Target::Configured(Box::new(config.transport.clone())), &config);
        Server::refused(config, spec, &self.shared, Outage::misconfigured(misconfigured))
    }

    fn spec(&self, name: ServerName, target: Target, config: &ServerConfig) -> Spec {
        let masker = ServerMasker::new(&config.policy.masking, self.secrets.clone());
        masker.own(config.secrets());
        Spec {
            desired_state: DesiredState::new(&config.roots),
            roots: config.roots.clone(),
            name,
            target,
            era: config.era.clone(),
            limits: config.limits,
            budget: self.budget.clone(),
            host: self.host.clone(),
            client: self.client.clone(),
            memory: self.memory.clone(),
            masker,
        }
    }
}

impl std::fmt::Debug for ServerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerFactory")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

/// Sets a board up. See [`Pegboard::builder`].
#[must_use]
pub struct Builder {
    config: Config,
    in_process: Vec<(ServerName, Arc<dyn Dialer>, ServerConfig)>,
    host: Arc<dyn Host>,
    client: ClientInfo,
    memory: Option<PathBuf>,
    survey: ListScope,
    backoff: Backoff,
    catalogs: Option<CatalogStore>,
    breaker: BreakerPolicy,
    people: HostDefaults,
    embeddings: Option<Arc<Embeddings>>,
    stand_ins: Option<Box<StandIns>>,
}

impl Pegboard {
    /// Starts to set a board up.
    pub fn builder(config: Config) -> Builder {
        Builder {
            config,
            in_process: Vec::new(),
            host: Arc::new(NoHost),
            client: ClientInfo::default(),
            memory: None,
            survey: ListScope::More(Capabilities::default()),
            backoff: Backoff::default(),
            catalogs: None,
            breaker: BreakerPolicy::default(),
            people: HostDefaults::default(),
            embeddings: None,
            stand_ins: None,
        }
    }

    /// A board with all defaults. Servers start beside each other in the background; none of them can make this fail.
    pub fn open(config: Config) -> Self {
        Self::builder(config).open()
    }

    /// Starts all enabled servers, but for those that wait until the program asks for them, and waits until each is ready or has failed, at
    /// most for `patience`. Of a server that each view has for itself, the views' own are waited for, or without views one that the next view
    /// takes over.
    pub async fn settle(&self, patience: Duration) {
        let deadline = Deadline::within(patience);
        let configured = self.0.registry.configured();
        let wanted = configured.iter().filter(|server| server.is_asked_for());
        let instances: Vec<_> = wanted
            .flat_map(|server| self.0.registry.instances_in_use(server.name()))
            .filter(|server| server.is_enabled())
            .collect();
        join_all(instances.iter().map(|server| server.live(deadline))).await;
    }

    /// The board at this moment: one row for each live server, with the view that owns it where one does.
    pub fn status(&self) -> BoardStatus {
        let servers = self.0.registry.status();
        BoardStatus {
            queues: self.0.factory.shared.queues.status(),
            healthy: health::is_healthy(&servers),
            ready: self.is_ready(&servers),
            warnings: health::warnings(&servers),
            servers,
        }
    }

    /// Whether every required server is ready.
    fn is_ready(&self, rows: &[ServerStatus]) -> bool {
        let configured = self.0.registry.configured();
        let mut required = configured.iter().filter(|server| server.config().required);
        required.all(|server| health::is_served(server, rows))
    }

    /// Sets the roots that a server may work in, instead of those of its config, until it is switched off. A server with a handshake is told
    /// of the change; one that had no roots at all when it was started learns of them at its next start. This holds for every view, also one
    /// that has roots of its own. `false` when there is no server of that name that is switched on.
    pub fn set_roots(&self, name: &ServerName, roots: &[Root]) -> bool {
        let instances = self.0.registry.instances(name);
        let set = instances.iter().filter(|server| server.set_roots(roots)).count();
        set > 0
    }

    /// Hides these texts too in everything that servers say from now on. The secrets of the config are hidden unasked.
    pub fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.0.factory.secrets.learn(secrets);
    }

    /// What happens on the board from now on: every call of every view, and every change of a server's state. Without listeners nothing is
    /// recorded.
    pub fn events(&self) -> Events {
        self.0.registry.events().subscribe()
    }

    /// The counters and histograms of the board, since it was opened. Reading them stops no call.
    pub fn metrics(&self) -> Metrics {
        let registry = &self.0.registry;
        let buffered = u64::try_from(self.0.factory.budget.used()).unwrap_or(u64::MAX);
        registry.tallies().read(registry.events().lost(), buffered)
    }

    /// How the catalogue of a server changed since the board was opened, the newest change last. Where each view has the server for itself,
    /// the changes that each of the open views has seen.
    pub fn changes(&self, name: &ServerName) -> Vec<CatalogChange> {
        let instances = self.0.registry.instances(name);
        let mut changes: Vec<_> = instances.iter().flat_map(Server::changes).collect();
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// Takes no more calls and waits until those under way on any server of any view are done, at most for `patience`. Whether all of them are.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.0.registry.close();
        let deadline = Deadline::within(patience);
        loop {
            let requests: usize = self.0.registry.every_server().iter().map(Server::busy).sum();
            // Calls that wait for a person's agreement have no place with a server yet.
            let is_idle = requests == 0 && self.0.registry.tallies().in_flight() == 0;
            if is_idle || deadline.has_passed() {
                return is_idle;
            }
            tokio::time::sleep(DRAIN_LOOK.min(deadline.remaining())).await;
        }
    }

    /// Ends all servers, those of views included, and waits until their processes are gone. Calls under way end as lost, so [`Pegboard::drain`] first if they should
    /// not. Every wait is bounded by the servers' limits.
    pub async fn shutdown(&self) {
        self.0.registry.close();
        self.0.registry.close_servers().await;
        self.0.factory.shared.ending.wait().await;
    }
}

impl Builder {
    /// Adds a server that lives in this process. It takes the place of a server of the same name: of one in the config, which is then not
    /// started, now or by [`Pegboard::apply`], or of one that was added here before.
    pub fn in_process(self, name: ServerName, dialer: impl Dialer) -> Self {
        self.in_process_with(name, dialer, ServerConfig::in_process())
    }

    /// The same with settings of its own, such as [`ServerConfig::in_process`] with some of them changed. Their transport is not looked at.
    pub fn in_process_with(mut self, name: ServerName, dialer: impl Dialer, settings: ServerConfig) -> Self {
        self.in_process.retain(|(other, _, _)| *other != name);
        self.in_process.push((name, Arc::new(dialer), settings));
        self
    }

    /// Sets the name and version under which this program introduces itself to servers, instead of Pegboard's.
    pub fn client_info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client = ClientInfo {
            name: name.into(),
            version: version.into(),
        };
        self
    }

    /// Sets who answers what servers ask.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Arc::new(host);
        self
    }

    /// Sets who is asked when a call needs a person's agreement, for all views that name nobody themselves.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.people.approver = Some(Arc::new(approver));
        self
    }

    /// Sets what was agreed to earlier for all views. Whatever is agreed to for all of them is added to it.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.people.agreed = approvals;
        self
    }

    /// Sets who turns texts into vectors, so that tools are found by meaning, for all views that name nobody themselves. See
    /// [`View::embedder`](crate::View::embedder).
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embeddings = Some(Arc::new(Embeddings::new(embedder)));
        self
    }

    /// Sets the file in which it is remembered which era each server speaks.
    pub fn era_memory(mut self, file: impl Into<PathBuf>) -> Self {
        self.memory = Some(file.into());
        self
    }

    /// Sets the folder in which catalogues are kept, so that the tools of a server that starts lazily can be listed before it runs.
    pub fn catalog_store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.catalogs = Some(CatalogStore::new(folder));
        self
    }

    /// Lists only tools, which makes starting quicker.
    pub fn tools_only(mut self) -> Self {
        self.survey = ListScope::Tools;
        self
    }

    /// Sets the waits before each new start of a server that failed; the last one repeats. What a server's own config says wins.
    pub fn restart_schedule(mut self, waits: Vec<Duration>) -> Result<Self, BadSchedule> {
        self.backoff = Backoff::new(waits, Jitter::Uniform(0.2))?;
        Ok(self)
    }

    /// Lets calls through to servers that answer nobody. Without this they are left alone for a while after five failures in a row. What a
    /// server's own config says wins.
    pub fn without_breaker(mut self) -> Self {
        self.breaker = BreakerPolicy::Off;
        self
    }

    /// Keeps restarts to their schedule exactly, without the jitter that spreads them. For tests on paused time.
    pub fn without_jitter(mut self) -> Self {
        self.backoff = self.backoff.with_jitter(Jitter::Off);
        self
    }

    /// Reaches the servers of every config, also of one that is [applied](Pegboard::apply) later, through the dialers that `stand_ins` gives for
    /// them, and never through their transports. For tests on paused time.
    pub fn stand_ins(
        mut self,
        stand_ins: impl Fn(&ServerName, &ServerConfig) -> Arc<dyn Dialer> + Send + Sync + 'static,
    ) -> Self {
        self.stand_ins = Some(Box::new(stand_ins));
        self
    }

    /// Opens the board.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime; [`Builder::try_open`] returns an error there.
    pub fn open(self) -> Pegboard {
        match self.try_open() {
            Ok(board) => board,
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens the board, or fails if there is no tokio runtime in which its servers could run.
    ///
    /// ```
    /// let refused = pegboard::Pegboard::builder(pegboard::Config::default()).try_open();
    /// assert!(refused.unwrap_err().to_string().contains("#[tokio::main]"));
    /// ```
    pub fn try_open(self) -> Result<Pegboard, NoRuntime> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(NoRuntime);
        }
        Ok(self.opened())
    }

    fn opened(self) -> Pegboard {
        let limits = self.config.limits;
        let factory = ServerFactory {
            shared: Arc::new(Shared {
                survey: self.survey,
                revision: Arc::new(AtomicU64::new(1)),
                starts: Arc::new(Semaphore::new(limits.starts.max(1))),
                processes: Arc::new(Semaphore::new(limits.processes.min(Semaphore::MAX_PERMITS))),
                generations: Arc::default(),
                links: Links::default(),
                ending: Arc::default(),
                made: AtomicU64::new(1),
                events: EventSender::default(),
                tallies: Arc::default(),
                backoff: self.backoff,
                queues: Queues::new(&self.config.queues),
                catalogs: self.catalogs,
                breaker: self.breaker,
            }),
            host: self.host,
            client: Arc::new(self.client),
            memory: Arc::new(EraMemory::new(self.memory)),
            stand_ins: self.stand_ins,
            secrets: KnownSecrets::default(),
            most: AtomicUsize::new(limits.servers),
            processes: AtomicUsize::new(limits.processes.min(Semaphore::MAX_PERMITS)),
            budget: ByteBudget::new(limits.buffered),
        };
        // All of them are known before the first server says a word. Each server owns its secrets from when it is made.
        let in_process = self.in_process.iter().map(|(_, _, settings)| settings);
        let configs = self.config.servers.values().chain(in_process);
        let early = ServerMasker::new(&Masking::default(), factory.secrets.clone());
        early.own(configs.flat_map(ServerConfig::secrets));
        let naming = Mutex::new(self.config.naming);
        let mut servers: Vec<Server> = Vec::new();
        let mut configured = self.config.servers;
        for (name, _, _) in &self.in_process {
            if configured.remove(name).is_some() {
                tracing::warn!(server = %name, "a server in this process takes the place of the one in the config");
            }
        }
        for (name, config) in configured {
            let others = counted(&servers);
            servers.push(factory.configured(name, config, others));
        }
        for (name, misconfigured) in &self.config.misconfigured {
            if !self.in_process.iter().any(|(other, _, _)| other == name) {
                servers.push(factory.misconfigured(name.clone(), misconfigured));
            }
        }
        for (name, dialer, settings) in self.in_process {
            let others = counted(&servers);
            servers.push(factory.make(name, Target::InProcess(dialer), settings, others));
        }
        drop(early);
        for server in servers.iter().filter(|server| server.starts_unasked()) {
            server.start();
        }
        let registry = Arc::new(Registry::new(servers, &factory.shared));
        let people = self.people;
        Pegboard(Arc::new(Inner {
            registry,
            factory,
            people,
            embeddings: self.embeddings,
            naming,
            changes: Semaphore::new(1),
        }))
    }
}

/// A board was opened outside of a tokio runtime. See [`Builder::try_open`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a Pegboard runs its servers in tokio tasks, and there is no tokio runtime here: open it in a function under `#[tokio::main]`, \
     within `Runtime::block_on`, or while a guard of `Runtime::enter` is held"
)]
pub struct NoRuntime;

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// How many servers count towards the board's limit: those that are switched on and can be used.
fn counted(servers: &[Server]) -> usize {
    let counts = |server: &&Server| server.is_enabled() && !server.is_refused();
    servers.iter().filter(counts).count()
}
