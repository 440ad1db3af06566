//! Sets up and opens a board.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize},
    },
    time::Duration,
};

use tokio::sync::Semaphore;

use super::{
    GatewaySettings, Inner, Pegboard, approval_defaults::ApprovalDefaults, gateway_settings::PublishedSettings,
    in_process_settings, server_factory::ServerFactory, view_opener::ViewOpener,
};
#[cfg(feature = "oauth")]
use super::{
    sign_in_changes::{watch_caller_tokens, watch_sign_ins},
    sign_in_provider::{SignIns, TokenFolder},
};
use crate::{
    audit::AuditLog,
    call::{
        Approvals, Approver, CallJournal, CallMemories, Embedder, Embeddings, Journal, SharedRates, UsageByPrincipal,
    },
    event::EventSender,
    metrics::{BoardCounters, MetricLabels},
    pin::PinStore,
    server::{Backoff, BadSchedule, BoardShared, Jitter, LinkContext, Queues, Registry, Server, SharedLinks},
};
use pegboard_base::name::{BadServerName, ServerName};
use pegboard_base::{sync::Mutex, telemetry::Telemetry};
use pegboard_client::{
    credential::{CallerTokens, Credentials},
    session::{ClientInfo, EraMemory, Host, ListScope, NoHost},
    transport::{ByteBudget, Dialer, StandIns, Target},
};
use pegboard_config::{BreakerPolicy, Capabilities, Config, ServerConfig};
use pegboard_mask::{KnownSecrets, Masking, ServerMasker};
use pegboard_tools::catalog::store::CatalogStore;

/// Sets up a board. See [`Pegboard::builder`].
#[must_use]
pub struct Builder {
    config: Config,
    in_process: Vec<(ServerName, Arc<dyn Dialer>, ServerConfig)>,
    /// The first name of a server in this process that cannot be one.
    bad_name: Option<BadServerName>,
    host: Arc<dyn Host>,
    client: ClientInfo,
    memory: Option<PathBuf>,
    list_scope: ListScope,
    backoff: Backoff,
    catalogs: Option<CatalogStore>,
    pins: Option<PinStore>,
    breaker: BreakerPolicy,
    approval_defaults: ApprovalDefaults,
    embeddings: Option<Arc<Embeddings>>,
    stand_ins: Option<Box<StandIns>>,
    credentials: Option<Arc<dyn Credentials>>,
    #[cfg(feature = "oauth")]
    tokens: TokenFolder,
    journal: Journal,
    shared_rates: Option<Arc<dyn SharedRates>>,
    telemetry: Option<Arc<dyn Telemetry>>,
    metric_labels: MetricLabels,
    keeps_stdout: bool,
}

impl Pegboard {
    /// Returns a builder for a board with this config.
    pub fn builder(config: Config) -> Builder {
        Builder {
            config,
            in_process: Vec::new(),
            bad_name: None,
            host: Arc::new(NoHost),
            client: ClientInfo::default(),
            memory: None,
            list_scope: ListScope::More(Capabilities::default()),
            backoff: Backoff::default(),
            catalogs: None,
            pins: None,
            breaker: BreakerPolicy::default(),
            approval_defaults: ApprovalDefaults::default(),
            embeddings: None,
            stand_ins: None,
            keeps_stdout: false,
            credentials: None,
            #[cfg(feature = "oauth")]
            tokens: TokenFolder::default(),
            journal: Journal::default(),
            shared_rates: None,
            telemetry: None,
            metric_labels: MetricLabels::default(),
        }
    }

    /// Opens a board with all defaults. Servers start concurrently in the background; a failing server does not make this fail.
    pub fn open(config: Config) -> Self {
        Self::builder(config).open()
    }
}

impl Builder {
    /// Adds a server that runs in this process. A name that cannot be a server's makes [`Builder::try_open`] fail. The server replaces a server of the same name: one in the config, which is then not started, now or
    /// by [`Pegboard::apply`], or one that was added here before.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pegboard::{Answer, Config, NativeTool, NativeTools, Pegboard, ServerName, ToolCall, serde_json::json};
    ///
    /// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    /// let shout = NativeTool::new("shout", "Says it louder.", schema, |arguments| async move {
    ///     let text = arguments["text"].as_str().ok_or("`text` must be a text")?;
    ///     Ok(Answer::from_text(text.to_uppercase()))
    /// });
    /// let board = Pegboard::builder(Config::default())
    ///     .in_process(ServerName::parse("local")?, NativeTools::new([shout]))
    ///     .open();
    ///
    /// let call = ToolCall::new("local.shout").arguments(json!({"text": "hello"}));
    /// assert_eq!(board.toolset().call(call).await.text(), "HELLO");
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_process<N>(self, name: N, dialer: impl Dialer) -> Self
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        let settings = in_process_settings::default_settings(&dialer);
        self.in_process_with(name, dialer, settings)
    }

    /// Like [`Builder::in_process`] with custom settings, such as a changed [`ServerConfig::in_process`]. Their transport is ignored.
    pub fn in_process_with<N>(mut self, name: N, dialer: impl Dialer, settings: ServerConfig) -> Self
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        match name.try_into() {
            Ok(name) => {
                self.in_process.retain(|(other, _, _)| *other != name);
                self.in_process.push((name, Arc::new(dialer), settings));
            }
            Err(error) => {
                self.bad_name.get_or_insert(BadServerName::from(error));
            }
        }
        self
    }

    /// Sets the client name and version that servers see, instead of Pegboard's.
    pub fn client_info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client = ClientInfo {
            name: name.into(),
            version: version.into(),
        };
        self
    }

    /// Sets the host that answers requests of servers, such as sampling and elicitation. What it offers is what servers are offered on connections
    /// that views share; a view may have a host of its own that answers for its calls, see [`View::host`](crate::View::host).
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Arc::new(host);
        self
    }

    /// Sets the approver for calls that need approval, for all views without their own.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approval_defaults.approver = Some(Arc::new(approver));
        self
    }

    /// Sets earlier approvals. New ones that are given for always are added to them. Each holds for the views of its principal.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approval_defaults.approvals = approvals;
        self
    }

    /// Sets the provider of credentials for the board's own connections: those of all views without a principal. It is asked for every server
    /// that it [covers](Credentials::covers), also for servers that are added later. In-process servers take no credentials.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pegboard::{BoxFuture, Config, Credential, Credentials, Pegboard, credential::{CredentialError, CredentialRequest}};
    ///
    /// struct Vault;
    ///
    /// impl Credentials for Vault {
    ///     fn credential<'a>(
    ///         &'a self,
    ///         request: CredentialRequest<'a>,
    ///     ) -> BoxFuture<'a, Result<Credential, CredentialError>> {
    ///         Box::pin(async move {
    ///             let token = format!("token-for-{}", request.server); // Read from the vault.
    ///             Ok(Credential::bearer(token).valid_for(Duration::from_secs(300)))
    ///         })
    ///     }
    /// }
    ///
    /// let builder = Pegboard::builder(Config::default()).credentials(Vault);
    /// ```
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// Sets the folder that stores the tokens of sign-ins, in files that only the user can read. Programs that share it share the sign-ins. Without
    /// it, sign-ins end with the board.
    #[cfg(feature = "oauth")]
    pub fn token_store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tokens.folder = Some(folder.into());
        self
    }

    /// Encrypts the files of [`Builder::token_store`] with the key in a file outside of the folder, for machines without a keyring: 32 random
    /// bytes in base64, as `openssl rand -base64 32` prints them. While the file is missing or wrong, sign-ins fail and nothing is written. It
    /// comes before a keyring.
    #[cfg(feature = "oauth")]
    pub fn token_key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tokens.key_file = Some(path.into());
        self
    }

    /// Encrypts the files of [`Builder::token_store`] with a key in the keyring of the operating system: the Secret Service of a Linux desktop
    /// (through `secret-tool`) or the keychain of macOS. The key is created when it is needed first. On a machine without such a keyring the files
    /// are not encrypted, and a keyring that is locked makes sign-ins fail until it is unlocked.
    #[cfg(all(feature = "keyring", feature = "oauth"))]
    pub fn keyring(mut self) -> Self {
        self.tokens.uses_keyring = true;
        self
    }

    /// Sets the journal of calls in flight, by which a program can tell after a crash which calls may have run.
    pub fn journal(mut self, journal: impl CallJournal) -> Self {
        self.journal = Journal::new(journal);
        self
    }

    /// Counts the rates of principals together with other processes.
    pub fn shared_rates(mut self, rates: impl SharedRates + 'static) -> Self {
        self.shared_rates = Some(Arc::new(rates));
        self
    }

    /// Sets what receives the spans of requests to servers, and their durations. Without it there are none, and calls cost nothing more.
    ///
    /// A call is part of the trace that its `_meta` names ([`ToolCall::traceparent`](crate::ToolCall::traceparent)), and begins one otherwise. The
    /// server gets the context of the span in `_meta`.
    ///
    /// ```
    /// use pegboard::{Config, Pegboard, telemetry::{Span, Telemetry, TraceContext, TraceId}};
    ///
    /// #[derive(Debug)]
    /// struct Printer;
    ///
    /// impl Telemetry for Printer {
    ///     fn samples(&self, _: TraceId, parent: Option<&TraceContext>) -> bool {
    ///         parent.is_none_or(TraceContext::is_sampled)
    ///     }
    ///
    ///     fn finish(&self, span: Span) {
    ///         println!("{} took {:?}", span.name, span.took);
    ///     }
    /// }
    ///
    /// let builder = Pegboard::builder(Config::default()).telemetry(Printer);
    /// ```
    pub fn telemetry(mut self, telemetry: impl Telemetry) -> Self {
        self.telemetry = Some(Arc::new(telemetry));
        self
    }

    /// Counts calls by tool, by principal and by the [label](crate::View::label) of their view, each for so many names. The first ones to be seen have
    /// a label of their own, and the rest are counted as `other`; a tool or principal of that name has the label `other'`. Without this, no name of a
    /// tool or a principal is in the metrics, and calls cost nothing for it.
    ///
    /// ```
    /// use pegboard::{Config, Pegboard, metrics::MetricLabels};
    ///
    /// let builder = Pegboard::builder(Config::default()).metric_labels(MetricLabels::new(200, 100, 100));
    /// ```
    pub fn metric_labels(mut self, labels: MetricLabels) -> Self {
        self.metric_labels = labels;
        self
    }

    /// Sets the embedder for semantic search of tools, for all views without their own. See [`View::embedder`](crate::View::embedder).
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embeddings = Some(Arc::new(Embeddings::new(embedder)));
        self
    }

    /// Sets the file that stores which protocol era each server speaks (with a handshake or without), so that a start need not probe for it.
    pub fn era_memory(mut self, file: impl Into<PathBuf>) -> Self {
        self.memory = Some(file.into());
        self
    }

    /// Sets the folder that stores catalogs, so that the tools of a lazily started server can be listed before it runs, and those of a slow one
    /// while it starts ([`View::list_known`](crate::View::list_known)). It has a file for each server and config: at most 256 files with 64 MiB
    /// together, each used for 30 days after the server was listed last.
    pub fn catalog_store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.catalogs = Some(CatalogStore::new(folder));
        self
    }

    /// Keeps an audit log that the config sends to stdout from there, because the program prints something else: it counts as one that cannot be
    /// written.
    #[doc(hidden)]
    pub fn keeps_stdout(mut self) -> Self {
        self.keeps_stdout = true;
        self
    }

    /// Like [`Builder::catalog_store`], for catalogs that another supervisor passes on under its own `rules` for each server: what it passes on
    /// under others may differ.
    #[doc(hidden)]
    pub fn catalog_store_under(mut self, folder: impl Into<PathBuf>, rules: BTreeMap<ServerName, String>) -> Self {
        self.catalogs = Some(CatalogStore::new(folder).under(rules));
        self
    }

    /// Sets the folder that stores the pinned definitions of tools. Without it, definitions are compared only within the life of the board,
    /// and a server with `pins = "block"` or `"approve"` is not started.
    pub fn pins(mut self, folder: impl Into<PathBuf>) -> Self {
        self.pins = Some(PinStore::new(folder));
        self
    }

    /// Lists only tools, not resources and prompts, which makes starts faster.
    pub fn tools_only(mut self) -> Self {
        self.list_scope = ListScope::Tools;
        self
    }

    /// Sets the waits before each restart of a failed server; the last one repeats. A server's own config takes precedence.
    pub fn restart_schedule(mut self, waits: Vec<Duration>) -> Result<Self, BadSchedule> {
        self.backoff = Backoff::new(waits, Jitter::Uniform(0.2))?;
        Ok(self)
    }

    /// Disables the circuit breaker. By default, calls to a server fail at once for a while after five failures in a row. A server's own
    /// config takes precedence.
    pub fn without_breaker(mut self) -> Self {
        self.breaker = BreakerPolicy::Off;
        self
    }

    /// Disables the jitter of the restart schedule. For tests on paused time.
    pub fn without_jitter(mut self) -> Self {
        self.backoff = self.backoff.with_jitter(Jitter::Off);
        self
    }

    /// Connects to all configured servers through the dialers that `stand_ins` returns, never through their transports. This includes the
    /// servers of configs that are [applied](Pegboard::apply) later. For tests on paused time.
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
    /// Panics where [`Builder::try_open`] returns an error.
    pub fn open(self) -> Pegboard {
        match self.try_open() {
            Ok(board) => board,
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens the board, or fails without a tokio runtime in which its servers could run, and if a server in this process was given a name that is
    /// none.
    ///
    /// ```
    /// let refused = pegboard::Pegboard::builder(pegboard::Config::default()).try_open();
    /// assert!(refused.unwrap_err().to_string().contains("#[tokio::main]"));
    /// ```
    pub fn try_open(mut self) -> Result<Pegboard, OpenError> {
        if let Some(error) = self.bad_name.take() {
            return Err(OpenError::Name(error));
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        Ok(self.build())
    }

    fn build(mut self) -> Pegboard {
        let limits = self.config.limits;
        let caller_tokens = CallerTokens::default();
        let secrets = KnownSecrets::default();
        let factory = ServerFactory {
            shared: Arc::new(BoardShared {
                revision: Arc::new(AtomicU64::new(1)),
                link_context: LinkContext {
                    list_scope: self.list_scope,
                    starts: Arc::new(Semaphore::new(limits.max_starts.max(1))),
                    processes: Arc::new(Semaphore::new(limits.max_processes.min(Semaphore::MAX_PERMITS))),
                    generations: Arc::default(),
                    backoff: self.backoff,
                    closing: Arc::default(),
                },
                links: SharedLinks::default(),
                queues: Queues::new(&self.config.queues),
                breaker: self.breaker,
                catalogs: self.catalogs,
                pins: self.pins.clone().unwrap_or_else(PinStore::in_memory),
                next_server: AtomicU64::new(1),
                events: EventSender::default(),
                tallies: Arc::new(BoardCounters::new(self.metric_labels)),
            }),
            host: self.host,
            client: Arc::new(self.client),
            memory: Arc::new(EraMemory::new(self.memory)),
            stand_ins: self.stand_ins,
            credentials: self.credentials,
            #[cfg(feature = "oauth")]
            sign_ins: SignIns::new(self.tokens, caller_tokens.clone(), secrets.clone()),
            caller_tokens,
            secrets,
            max_servers: AtomicUsize::new(limits.max_servers),
            processes: AtomicUsize::new(limits.max_processes.min(Semaphore::MAX_PERMITS)),
            budget: ByteBudget::new(limits.max_buffered),
            keeps_pins: self.pins.is_some(),
        };
        // All secrets must be known before the first server starts: one server may print the secret of another.
        let in_process = self.in_process.iter().map(|(_, _, settings)| settings);
        let configs = self.config.servers.values().chain(in_process);
        factory.secrets.learn(self.config.removed_secrets.iter().cloned());
        let early = ServerMasker::new(&Masking::default(), factory.secrets.clone());
        early.own_secrets(configs.flat_map(ServerConfig::secrets));
        let gateway = PublishedSettings::new(GatewaySettings::take(&mut self.config));
        let audit = self.config.audit;
        let audit = audit.map(|config| AuditLog::open(config, factory.shared.events.clone(), !self.keeps_stdout));
        let mut servers: Vec<Server> = Vec::new();
        let mut configured = self.config.servers;
        for (name, _, _) in &self.in_process {
            if configured.remove(name).is_some() {
                tracing::warn!(server = %name, "a server in this process takes the place of the one in the config");
            }
        }
        for (name, config) in configured {
            let others = count(&servers);
            servers.push(factory.make_configured(name, config, others));
        }
        for (name, misconfigured) in &self.config.misconfigured {
            if !self.in_process.iter().any(|(other, _, _)| other == name) {
                servers.push(factory.make_misconfigured(name.clone(), misconfigured));
            }
        }
        for (name, dialer, settings) in self.in_process {
            let others = count(&servers);
            servers.push(factory.make(name, Target::InProcess(dialer), settings, others));
        }
        drop(early);
        for server in servers.iter().filter(|server| server.starts_automatically()) {
            server.connections().start();
        }
        let registry = Arc::new(Registry::new(servers, &factory.shared));
        let board = Pegboard(Arc::new(Inner {
            registry,
            factory,
            views: ViewOpener {
                approval_defaults: self.approval_defaults,
                embeddings: self.embeddings,
                audit,
                journal: self.journal,
                telemetry: self.telemetry,
                snapshots: Arc::default(),
                compiled_schemas: Arc::default(),
                usage: UsageByPrincipal::new(self.shared_rates),
                memories: CallMemories::default(),
                naming: Mutex::new(self.config.naming),
            },
            gateway,
            changes: Semaphore::new(1),
        }));
        #[cfg(feature = "oauth")]
        watch_sign_ins(&board);
        #[cfg(feature = "oauth")]
        watch_caller_tokens(&board);
        board
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Why a board cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no tokio runtime in which its servers could run.
    #[error(
        "a Pegboard runs its servers in tokio tasks, and there is no tokio runtime here: open it in a function under `#[tokio::main]`, \
         within `Runtime::block_on`, or while a guard of `Runtime::enter` is held"
    )]
    NoRuntime,
    /// A server in this process was given a name that cannot be one.
    #[error(transparent)]
    Name(#[from] BadServerName),
}

/// How many servers count towards the board's limit: those that are enabled and not refused.
fn count(servers: &[Server]) -> usize {
    let counts = |server: &&Server| server.is_enabled() && !server.connections().is_refused();
    servers.iter().filter(counts).count()
}
