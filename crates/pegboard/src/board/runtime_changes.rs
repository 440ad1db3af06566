//! Changes at run time. A new config is compared with the running one, and only differences are applied. A replaced server completes its
//! calls first.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use futures_util::future::join_all;
use serde::Serialize;

use super::{
    GatewaySettings, Pegboard,
    reconcile::{Change, reconcile, same_connection},
    server_replacement::{NotConnected, StartMode},
};
use crate::{
    server::{DetachedConnections, Outage, Server},
    toolset::Unavailable,
};
use pegboard_base::name::ServerName;
use pegboard_config::{Config, ServerConfig};

/// What a new config has changed.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Applied {
    /// New servers.
    pub added: Vec<ServerName>,
    /// Removed servers. Their calls in flight complete first.
    pub removed: Vec<ServerName>,
    /// Servers with new connection settings. Calls in flight complete on the old connection.
    pub replaced: Vec<ServerName>,
    /// Servers whose settings changed without a new process or connection, and those that were enabled or disabled.
    pub retuned: Vec<ServerName>,
    /// Servers that the board has no room for.
    pub refused: Vec<ServerName>,
    /// Servers that go on under their old settings, because the new ones do not work. `errors` says why. The next [`Pegboard::apply`] tries
    /// the new settings again.
    pub kept: Vec<ServerName>,
    /// Servers that could not be started, or whose config is invalid. A new one stays on the board and is retried as its config says. If an
    /// older server worked, it continues under its old settings and is not among `replaced`, unless it was a shared process: that has ended before
    /// the new one is started.
    pub errors: Vec<Unavailable>,
}

/// The list of [`Applied`] in which a change is reported.
#[derive(Debug, Clone, Copy)]
enum ChangeKind {
    Replaced,
    Retuned,
}

impl Applied {
    fn record(&mut self, name: ServerName, kind: ChangeKind) {
        let list = match kind {
            ChangeKind::Replaced => &mut self.replaced,
            ChangeKind::Retuned => &mut self.retuned,
        };
        list.push(name);
    }
}

impl Pegboard {
    /// Changes the board to match `config`, in every open view. Unchanged servers keep their process. Servers that are removed, replaced or
    /// disabled accept no more calls; their calls in flight complete on the old connection, within the server's own limit for a call.
    ///
    /// A replacement is started first, and the old server stays if that fails. A shared process is ended first, because two of them could fight over
    /// a lock, a port or a file: while its calls in flight complete, new calls wait for the replacement, but this does not.
    ///
    /// Changes run one after the other: a second call of this or of [`Pegboard::connect`] waits for the first.
    ///
    /// New and newly enabled servers are started, unless they start lazily and are not required. Each start is awaited within the server's
    /// own limits, and errors are in the result. [`Pegboard::enable`] and [`Pegboard::disable`] take precedence until the config changes
    /// `enabled`. Servers in this process stay, and the config's settings for their names are ignored. A closing board changes nothing.
    ///
    /// If a source of the config could not be read, its servers are missing from it: see [`Loaded::readable`](crate::Loaded::readable).
    pub async fn apply(&self, mut config: Config) -> Applied {
        let _turn = self.0.changes.acquire().await;
        if self.0.registry.is_closing() {
            return Applied::default();
        }
        config.servers.retain(|name, _| !self.has_in_process(name));
        config.misconfigured.retain(|name, _| !self.has_in_process(name));
        for (name, queue) in &config.queues {
            self.0.factory.shared.queues.grow(name, queue.concurrent);
        }
        self.0.factory.take_limits(&config.limits);
        self.forget_refused().await;
        *self.0.naming.lock() = config.naming.clone();
        self.0.gateway.store(Arc::new(GatewaySettings::new(
            std::mem::take(&mut config.views),
            std::mem::take(&mut config.serve),
        )));
        self.0.gateway_changed.send_replace(());
        let mut applied = Applied::default();
        self.keep_misconfigured(&mut config, &mut applied).await;
        let (mut replacements, mut added) = (Vec::new(), Vec::new());
        // Servers are stopped before others are started, so that slots, ports and locks are free.
        for change in reconcile(&self.configured_servers(), &config.servers) {
            match change {
                Change::Remove(name) => {
                    self.0.registry.remove(&name).wait().await;
                    applied.removed.push(name);
                }
                Change::Disable(name, config) => {
                    self.swap(&name, None, *config).await;
                    applied.retuned.push(name);
                }
                Change::Retune(name, config) if self.keeps_connection(&name, &config) => {
                    self.retune(&name, &config).await;
                    applied.retuned.push(name);
                }
                Change::Retune(name, config) | Change::Enable(name, config) => {
                    replacements.push((name, *config, ChangeKind::Retuned));
                }
                Change::Replace(name, config) => replacements.push((name, *config, ChangeKind::Replaced)),
                Change::Add(name, config) => added.push((name, *config)),
            }
        }
        let replaced = replacements.into_iter().map(async |(name, config, kind)| {
            let replaced = self.replace(&name, None, config, StartMode::AsConfigured).await;
            (name, replaced, kind)
        });
        for (name, replaced, kind) in join_all(replaced).await {
            match replaced {
                Ok(()) => applied.record(name, kind),
                Err(NotConnected::Unreachable(error)) => {
                    applied.record(name, kind);
                    applied.errors.push(error);
                }
                Err(NotConnected::NotReplaced(error)) => {
                    applied.kept.push(name);
                    applied.errors.push(error);
                }
                Err(NotConnected::TooManyServers { .. } | NotConnected::Closing | NotConnected::NameTaken(_)) => {
                    applied.refused.push(name);
                }
            }
        }
        let mut starting = Vec::new();
        for (name, config) in added {
            if self.swap(&name, None, config).await.is_refused() {
                applied.refused.push(name);
            } else {
                starting.push(name.clone());
                applied.added.push(name);
            }
        }
        let started = starting.iter().map(|name| self.start(name, StartMode::AsConfigured));
        let errors = join_all(started).await.into_iter().filter_map(Result::err);
        applied.errors.extend(errors);
        applied
    }

    /// Adds a server, or replaces the one of its name, and connects it, regardless of its `start` setting. A working server is replaced only
    /// when the new one is ready, and completes its calls in flight; a shared process has ended before the new one is started. If the server has these settings already, its unconnected instances are
    /// connected.
    ///
    /// When this returns, the server is connected in every open view; for a session-scoped server without open views, one is connected for
    /// the next view.
    pub async fn connect(&self, name: ServerName, config: ServerConfig) -> Result<(), NotConnected> {
        let _turn = self.0.changes.acquire().await;
        if self.0.registry.is_closing() {
            return Err(NotConnected::Closing);
        }
        let max_servers = self.0.factory.max_servers.load(Ordering::Relaxed);
        if config.enabled && self.others(&name) >= max_servers {
            return Err(NotConnected::TooManyServers { most: max_servers });
        }
        let running = self.0.registry.get(&name);
        let is_same = |server: Server| server.is_configured() && !server.is_refused() && **server.config() == config;
        if running.is_some_and(is_same) {
            self.revive(&name).await;
            let started = self.start(&name, StartMode::Now).await;
            return started.map_err(NotConnected::Unreachable);
        }
        self.replace(&name, None, config, StartMode::Now).await
    }

    /// Removes a server from the board, in every view: new calls find none of its tools, and calls in flight complete first. The server is
    /// closed when this returns, unless such a call is still in flight. Returns `false` if there is no server of that name.
    pub async fn disconnect(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let retirement = self.0.registry.remove(name);
        let exists = !retirement.is_empty();
        retirement.wait().await;
        exists
    }

    /// Restarts a server at once, in every view and in any state. Its calls in flight fail as lost. Returns `false` if there is no server of
    /// that name.
    pub async fn reconnect(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let instances = self.0.registry.instances_to_restart(name);
        join_all(instances.iter().map(Server::reconnect)).await;
        !instances.is_empty()
    }

    /// Permits the start of a server whose config says `start = "explicit"`: from now on it is started when it is needed. Returns `false` if
    /// there is no server of that name.
    pub fn request(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let instances = self.0.registry.instances(&name);
        let is_new = instances.iter().any(|server| !server.is_requested());
        instances.iter().for_each(Server::request);
        if is_new {
            self.0.registry.bump_revision();
        }
        !instances.is_empty()
    }

    /// Lists a server again in every view where it is connected. Returns `false` if it is connected in none.
    pub fn refresh(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let mut connected = self.0.registry.instances(name);
        connected.retain(Server::is_ready);
        connected.iter().for_each(Server::refresh);
        !connected.is_empty()
    }

    /// Enables a server in every view and starts it. Returns `false` if there is no server of that name, its config is invalid, or the board
    /// has no room for it or is closing.
    pub async fn enable(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let Some(server) = self.0.registry.get(name) else {
            return false;
        };
        let has_room = self.others(name) < self.0.factory.max_servers.load(Ordering::Relaxed);
        if !has_room || self.0.registry.is_closing() || server.is_misconfigured() {
            return false;
        }
        if server.is_refused() {
            // There is room for it now.
            self.swap(name, server.dialer(), server.config().as_ref().clone()).await;
        }
        let (_, _) = self.0.registry.change(name, |server| {
            server.set_switch(true);
            server.request();
            server.switch_on();
            DetachedConnections::default()
        });
        for server in self.0.registry.instances_in_use(name) {
            server.start();
        }
        true
    }

    /// Disables a server at once, in every view: its process ends, unless another server shares it, its tools disappear, and its calls in
    /// flight fail as lost, including those of a draining server of that name. To let them complete, apply a config that disables the server.
    /// Returns `false` if there is no server of that name.
    pub async fn disable(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let (exists, detached) = self.0.registry.change(name, |server| {
            server.set_switch(false);
            server.switch_off()
        });
        join_all(detached.into_iter().map(DetachedConnections::close)).await;
        self.0.registry.close_draining(name).await;
        exists
    }

    /// Reconnects the instances of a server that are disabled or not ready.
    async fn revive(&self, name: &ServerName) {
        let mut instances = self.0.registry.instances(name);
        instances.retain(|server| !server.is_ready());
        instances.iter().for_each(Server::reset_switch);
        // They stay disabled if the config disables the server.
        instances.iter().for_each(Server::follow_switch);
        instances.retain(|server| !server.is_spare() && !server.is_private());
        join_all(instances.iter().map(Server::reconnect)).await;
    }

    /// Whether a server can apply these settings without a new connection.
    fn keeps_connection(&self, name: &ServerName, wanted: &ServerConfig) -> bool {
        let server = self.0.registry.get(name);
        server.is_some_and(|server| same_connection(&server.config(), wanted))
    }

    /// Applies settings that need no new connection, in every view.
    async fn retune(&self, name: &ServerName, wanted: &ServerConfig) {
        let (_, detached) = self.0.registry.change(name, |server| server.retune(wanted));
        join_all(detached.into_iter().map(DetachedConnections::close)).await;
        self.0.registry.bump_revision();
    }

    /// How many other servers count towards the board's limit: those that are enabled and not refused.
    pub(super) fn others(&self, name: &ServerName) -> usize {
        let servers = self.0.registry.configured();
        let counts = |server: &&Server| server.name() != name && server.is_enabled() && !server.is_refused();
        servers.iter().filter(counts).count()
    }

    fn has_in_process(&self, name: &ServerName) -> bool {
        let server = self.0.registry.get(name);
        server.is_some_and(|server| !server.is_configured())
    }

    /// Keeps servers with an invalid new config running under their old one. A server without an old one gets a status row that says why.
    async fn keep_misconfigured(&self, config: &mut Config, applied: &mut Applied) {
        for (name, misconfigured) in &config.misconfigured {
            let placeholder = self.0.factory.misconfigured(name.clone(), misconfigured);
            let server = match self.0.registry.get(name) {
                Some(running) if !running.is_misconfigured() => {
                    applied.kept.push(name.clone());
                    running
                }
                Some(running) if running.is_refused_like(&placeholder) => running,
                _ => {
                    self.0.registry.put(&placeholder).wait().await;
                    placeholder
                }
            };
            config.servers.insert(name.clone(), server.config().as_ref().clone());
            let outage = Outage::misconfigured(misconfigured);
            applied.errors.push(Unavailable::of(&server, &outage));
        }
    }

    /// Removes refused servers, which may fit into the new config.
    async fn forget_refused(&self) {
        let servers = self.0.registry.configured();
        let refused = servers
            .iter()
            .filter(|server| server.is_configured() && server.is_refused() && !server.is_misconfigured());
        for server in refused {
            self.0.registry.remove(server.name()).wait().await;
        }
    }

    fn configured_servers(&self) -> BTreeMap<ServerName, ServerConfig> {
        let servers = self.0.registry.configured();
        let configured = servers.iter().filter(|server| server.is_configured());
        configured
            .map(|server| (server.name().clone(), server.config().as_ref().clone()))
            .collect()
    }
}
