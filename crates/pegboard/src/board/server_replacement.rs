//! [`ServerChanges`]: replaces a server of a running board. A replacement that cannot be started does not replace a working server, except where the two must not
//! run at the same time.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};

use super::server_factory::ServerFactory;
use crate::{
    server::{Outage, Registry, Server},
    toolset::Unavailable,
};
use pegboard_base::{
    deadline::Deadline,
    name::{BadServerName, ServerName},
};
use pegboard_client::transport::{Dialer, Target};
use pegboard_config::{Scope, ServerConfig, Start, Transport};

/// Added to a server's own limits while waiting for its start, so that the server reports its own error before the wait times out.
const MARGIN: Duration = Duration::from_secs(1);

/// Why [`Pegboard::connect`](crate::Pegboard::connect) did not connect a server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NotConnected {
    /// The board has reached its limit of servers. Nothing has changed.
    #[error(
        "the board takes {most} servers and has them already; raise `max_servers`, or disconnect one that is not needed"
    )]
    TooManyServers {
        /// The limit.
        most: usize,
    },
    /// The server cannot be reached. It stays on the board and is retried as its config says.
    #[error("server `{}` cannot be reached: {}", .0.server, .0.error)]
    Unreachable(Unavailable),
    /// The server cannot be reached, so the working server of its name was not replaced.
    #[error("server `{}` was not replaced, because the new one cannot be reached: {}", .0.server, .0.error)]
    NotReplaced(Unavailable),
    /// The board is closing and accepts no more servers.
    #[error("the board is closing and takes no more servers")]
    Closing,
    /// The board has a server of that name. Nothing has changed.
    #[error(
        "the board has a server `{0}` already; choose another name, replace the server with `Pegboard::replace_in_process`, \
         or disconnect it first"
    )]
    NameTaken(ServerName),
    /// It cannot be the name of a server. Nothing has changed.
    #[error(transparent)]
    Name(#[from] BadServerName),
}

/// Adds, replaces and starts the servers of a running board.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerChanges<'a> {
    registry: &'a Arc<Registry>,
    factory: &'a ServerFactory,
}

impl<'a> ServerChanges<'a> {
    pub(super) fn new(registry: &'a Arc<Registry>, factory: &'a ServerFactory) -> Self {
        Self { registry, factory }
    }

    /// Connects a server as [`Pegboard::connect`](crate::Pegboard::connect) does.
    pub(super) fn connect(self, name: &'a ServerName, config: ServerConfig) -> BoxFuture<'a, Result<(), NotConnected>> {
        Box::pin(async move {
            self.check_room(name, &config)?;
            let running = self.registry.get(name);
            let is_same = |server: Server| {
                server.spec().target.is_configured()
                    && !server.connections().is_refused()
                    && **server.config() == config
            };
            if running.is_some_and(is_same) {
                self.revive(name).await;
                let started = self.start(name, StartMode::Now).await;
                return started.map_err(NotConnected::Unreachable);
            }
            self.replace(name, None, config, StartMode::Now).await
        })
    }

    /// Adds a server that runs in this process, or replaces the server of its name.
    pub(super) fn put_in_process(
        self,
        name: &'a ServerName,
        dialer: Arc<dyn Dialer>,
        settings: ServerConfig,
    ) -> BoxFuture<'a, Result<(), NotConnected>> {
        Box::pin(async move {
            self.check_room(name, &settings)?;
            self.replace(name, Some(dialer), settings, StartMode::Now).await
        })
    }

    /// Fails if the board is closing, or has no room for an enabled server.
    fn check_room(self, name: &ServerName, config: &ServerConfig) -> Result<(), NotConnected> {
        if self.registry.is_closing() {
            return Err(NotConnected::Closing);
        }
        match self.has_room(name) || !config.enabled {
            true => Ok(()),
            false => Err(NotConnected::TooManyServers {
                most: self.max_servers(),
            }),
        }
    }

    /// Whether the board's limit allows one more enabled server of this name.
    pub(super) fn has_room(self, name: &ServerName) -> bool {
        self.count_others(name) < self.max_servers()
    }

    fn max_servers(self) -> usize {
        self.factory.max_servers.load(Ordering::Relaxed)
    }

    /// How many other servers count towards the board's limit: those that are enabled and not refused.
    fn count_others(self, name: &ServerName) -> usize {
        let servers = self.registry.configured_servers();
        let counts =
            |server: &&Server| server.name() != name && server.is_enabled() && !server.connections().is_refused();
        servers.iter().filter(counts).count()
    }

    /// Reconnects the instances of a server that are disabled or not ready.
    async fn revive(self, name: &ServerName) {
        let mut instances = self.registry.instances(name);
        instances.retain(|server| !server.is_ready());
        instances.iter().for_each(|server| server.activation().reset());
        // They stay disabled if the config disables the server.
        instances.iter().for_each(Server::follow_switch);
        instances.retain(|server| !server.is_spare() && !server.spec().is_private());
        join_all(instances.iter().map(Server::reconnect)).await;
    }

    /// Replaces the server of that name. If an instance of it works, in any view, the new one must be ready there first, unless the two must not
    /// run at the same time.
    pub(super) async fn replace(
        self,
        name: &ServerName,
        dialer: Option<Arc<dyn Dialer>>,
        config: ServerConfig,
        mode: StartMode,
    ) -> Result<(), NotConnected> {
        let registry = self.registry;
        // Connections with credentials of their own say nothing about a connection without them.
        let works = |server: &Server| {
            let is_idle = || server.phase().is_idle() && server.listing().was_listed();
            let is_up = server.is_ready() || (server.is_enabled() && is_idle());
            is_up && !server.spec().is_private()
        };
        let works = registry.instances(name).iter().any(works);
        // A server whose new settings cannot be kept must not go on under the old ones.
        let old = registry.get(name).filter(Server::runs_alone);
        let old = old.filter(|_| dialer.is_none() && runs_alone(&config));
        let has_candidate = works && config.enabled && old.is_none();
        let candidate = has_candidate.then(|| self.make(name, dialer.clone(), config.clone()));
        let Some(candidate) = candidate.filter(|candidate| !candidate.connections().is_refused()) else {
            let was_running = old.is_some_and(|old| old.is_ready());
            let new = self.swap(name, dialer, config).await;
            return match new.connections().refusal() {
                Some(_) if !self.has_room(name) => Err(NotConnected::TooManyServers {
                    most: self.max_servers(),
                }),
                Some(outage) => Err(NotConnected::Unreachable(Unavailable::from_outage(&new, &outage))),
                None => {
                    let started = self.start_after_old(&new, mode, was_running).await;
                    started.map_err(NotConnected::Unreachable)
                }
            };
        };
        candidate.mute();
        candidate.activation().request();
        let replacements = registry.prepare_replacements(&candidate);
        let candidates: Vec<_> = std::iter::once(&candidate)
            .chain(replacements.servers())
            .cloned()
            .collect();
        let expected = registry.track(candidates.clone());
        let reached: Result<Vec<()>, _> = join_all(candidates.iter().map(wait_ready)).await.into_iter().collect();
        // A change by an operator in the meantime takes precedence.
        let old = registry.get(name).filter(|_| !registry.is_closing());
        let (Ok(_), Some(old)) = (&reached, old) else {
            expected.close().await;
            let error = reached.err();
            let error = error.unwrap_or_else(|| Unavailable::from_outage(&candidate, &Outage::removed()));
            return Err(NotConnected::NotReplaced(error));
        };
        for candidate in &candidates {
            candidate.inherit_switch(&old);
        }
        let server = match candidate.owner().tag() {
            Some(_) => candidate.new_instance(None),
            None => candidate.clone(),
        };
        registry.put_with(&server, &replacements).wait().await;
        self.start(name, mode).await.map_err(NotConnected::Unreachable)
    }

    /// Starts a server after the one that it replaces has ended. A new config does not wait for the calls in flight of the old one; the start then
    /// follows by itself.
    async fn start_after_old(self, new: &Server, mode: StartMode, was_running: bool) -> Result<(), Unavailable> {
        let started = if was_running { StartMode::Now } else { mode };
        self.request_due(new.name(), started)
            .iter()
            .for_each(|server| server.connections().start());
        if mode == StartMode::AsConfigured && new.connections().waits_for_predecessor() {
            return Ok(());
        }
        new.connections().await_predecessor().await;
        self.start(new.name(), started).await
    }

    /// Replaces the server of that name with one that is not started yet.
    pub(super) async fn swap(self, name: &ServerName, dialer: Option<Arc<dyn Dialer>>, config: ServerConfig) -> Server {
        let new = self.make(name, dialer, config);
        if let Some(old) = self.registry.get(name) {
            new.inherit_switch(&old);
            if old.is_ready() {
                new.activation().request();
            }
        }
        self.registry.put(&new).wait().await;
        new
    }

    /// Creates a server: in this process if there is a dialer, otherwise as its config says.
    fn make(self, name: &ServerName, dialer: Option<Arc<dyn Dialer>>, config: ServerConfig) -> Server {
        let (factory, others) = (self.factory, self.count_others(name));
        match dialer {
            Some(dialer) => factory.make(name.clone(), Target::InProcess(dialer), config, others),
            None => factory.make_configured(name.clone(), config, others),
        }
    }

    /// Starts a server in every view and waits until each instance is ready or has failed. Returns the first failure.
    pub(super) async fn start(self, name: &ServerName, mode: StartMode) -> Result<(), Unavailable> {
        let instances = self.request_due(name, mode);
        join_all(instances.iter().map(wait_ready)).await.into_iter().collect()
    }

    /// The instances of a server that are to be started, and may be from now on.
    fn request_due(self, name: &ServerName, mode: StartMode) -> Vec<Server> {
        let mut instances = self.registry.instances_in_use(name);
        instances.retain(|server| {
            let config = server.config();
            let is_due = mode == StartMode::Now || config.start != Start::Lazy || config.required;
            server.is_enabled() && is_due
        });
        instances.iter().for_each(|server| server.activation().request());
        instances
    }
}

/// Whether to start a server with lazy start before its first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartMode {
    AsConfigured,
    Now,
}

/// Starts a server and waits until it is ready, within its own limits.
async fn wait_ready(server: &Server) -> Result<(), Unavailable> {
    let limits = server.config().limits;
    let deadline = Deadline::within(limits.connect_timeout + limits.list_timeout + MARGIN);
    match server.ensure_live(deadline).await {
        Ok(_) => Ok(()),
        Err(outage) => Err(Unavailable::from_outage(server, &outage)),
    }
}

/// Whether a server with these settings is one process for all callers.
fn runs_alone(config: &ServerConfig) -> bool {
    matches!(config.transport, Transport::Stdio(_)) && config.policy.scope == Scope::Shared
}
