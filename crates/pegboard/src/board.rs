//! The board: all servers of one config, and the views of them.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "used by the board once it takes a new config while it runs")
)]
mod reconcile;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use futures_util::future::join_all;

use crate::{
    config::{Command, Config, ServerConfig, Start, Transport},
    deadline::Deadline,
    name::ServerName,
    server::Server,
    session::{EraMemory, Host, NoHost, Spec, Survey},
    status::{BoardStatus, State, Warning},
    toolset::Toolset,
    transport::{Dialer, Target},
};

/// All servers of one config. Dropping the last clone ends them; [`Pegboard::shutdown`] also waits for that.
#[derive(Debug, Clone)]
pub struct Pegboard {
    servers: Arc<[Server]>,
    revision: Arc<AtomicU64>,
}

/// Sets a board up. See [`Pegboard::builder`].
#[must_use]
pub struct Builder {
    config: Config,
    in_process: Vec<(ServerName, Arc<dyn Dialer>)>,
    host: Arc<dyn Host>,
    memory: Option<PathBuf>,
    survey: Survey,
}

impl Pegboard {
    /// Starts to set a board up.
    pub fn builder(config: Config) -> Builder {
        Builder {
            config,
            in_process: Vec::new(),
            host: Arc::new(NoHost),
            memory: None,
            survey: Survey::Everything,
        }
    }

    /// A board with all defaults. Servers start beside each other in the background; none of them can make this fail.
    pub fn open(config: Config) -> Self {
        Self::builder(config).open()
    }

    /// A view of all servers.
    pub fn toolset(&self) -> Toolset {
        Toolset::new(self.servers.clone(), self.revision.clone())
    }

    /// Starts all enabled servers and waits until each is ready or has failed, at most for `patience`.
    pub async fn settle(&self, patience: Duration) {
        let deadline = Deadline::within(patience);
        let enabled = self.servers.iter().filter(|server| server.config().enabled);
        join_all(enabled.map(|server| server.live(deadline))).await;
    }

    /// The board at this moment.
    pub fn status(&self) -> BoardStatus {
        let servers: Vec<_> = self.servers.iter().map(Server::status).collect();
        let warnings = servers.iter().filter_map(|server| {
            let error = server.last_error.as_ref()?;
            Some(Warning {
                id: format!("mcp_health:{}", server.name),
                category: "mcp_health",
                message: format!("server `{}` is {}", server.name, server.state.as_str()),
                details: error.message.clone(),
                server: server.name.clone(),
                created_at: error.at,
            })
        });
        BoardStatus {
            healthy: servers
                .iter()
                .all(|server| matches!(server.state, State::Ready | State::Idle | State::Disabled)),
            ready: servers
                .iter()
                .filter(|server| server.required)
                .all(|server| server.state == State::Ready),
            warnings: warnings.collect(),
            servers,
        }
    }

    /// Ends all servers and waits until their processes are gone. Every wait is bounded by the servers' limits.
    pub async fn shutdown(&self) {
        join_all(self.servers.iter().map(Server::close)).await;
    }
}

impl Builder {
    /// Adds a server that lives in this process.
    pub fn in_process(mut self, name: ServerName, dialer: impl Dialer) -> Self {
        self.in_process.push((name, Arc::new(dialer)));
        self
    }

    /// Sets who answers what servers ask.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Arc::new(host);
        self
    }

    /// Sets the file in which it is remembered which era each server speaks.
    pub fn era_memory(mut self, file: impl Into<PathBuf>) -> Self {
        self.memory = Some(file.into());
        self
    }

    /// Lists only tools, which makes starting quicker.
    pub fn tools_only(mut self) -> Self {
        self.survey = Survey::Tools;
        self
    }

    /// Opens the board. It must be called within a tokio runtime.
    pub fn open(self) -> Pegboard {
        let revision = Arc::new(AtomicU64::new(1));
        let memory = Arc::new(EraMemory::new(self.memory));
        let spec = |name: ServerName, target: Target, config: &ServerConfig| Spec {
            name,
            target,
            era: config.era.clone(),
            limits: config.limits,
            roots: config.roots.clone(),
            host: self.host.clone(),
            memory: memory.clone(),
        };
        let mut servers: Vec<Server> = Vec::new();
        for (name, config) in self.config.servers {
            let spec = spec(name, Target::Configured(Box::new(config.transport.clone())), &config);
            servers.push(Server::new(config, spec, self.survey, revision.clone()));
        }
        for (name, dialer) in self.in_process {
            let config = in_process_config();
            let spec = spec(name, Target::InProcess(dialer), &config);
            servers.push(Server::new(config, spec, self.survey, revision.clone()));
        }
        servers.sort_by(|a, b| a.name().cmp(b.name()));
        for server in &servers {
            if server.config().start == Start::Eager {
                server.start();
            }
        }
        Pegboard {
            servers: servers.into(),
            revision,
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The settings of a server in this process. Its transport is never looked at: the dialer takes its place.
fn in_process_config() -> ServerConfig {
    ServerConfig::new(Transport::Stdio(Command::new("in-process")))
}
