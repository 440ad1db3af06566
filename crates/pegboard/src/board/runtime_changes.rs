//! Changes while the board runs. A new config is compared with the running one and only what differs is touched; what is displaced ends its
//! calls first, and a replacement that cannot be started does not displace a server that works.

use std::{collections::BTreeMap, sync::PoisonError, sync::atomic::Ordering, time::Duration};

use futures_util::future::join_all;
use serde::Serialize;

use super::{
    Pegboard,
    reconcile::{Change, reconcile, same_connection},
};
use crate::{
    config::{Config, ServerConfig, Start},
    deadline::Deadline,
    name::ServerName,
    server::{DetachedConnections, Outage, Server},
    toolset::Unavailable,
};

/// How much longer than its own limits a start is waited for: by then the server has said itself why it takes so long.
const MARGIN: Duration = Duration::from_secs(1);

/// What a new config has changed.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers that are gone. Their calls under way end first.
    pub removed: Vec<ServerName>,
    /// Servers that are reached in another way now. Calls under way end on the old connection.
    pub replaced: Vec<ServerName>,
    /// Servers whose settings changed while their process or connection stayed, and those that were switched on or off.
    pub retuned: Vec<ServerName>,
    /// Servers that the board has no room for.
    pub refused: Vec<ServerName>,
    /// Servers that could not be started, or whose config cannot be used. One that is new stays on the board and is tried again as its config says; where an older server
    /// worked, that one goes on under its old settings and is not among `replaced`.
    pub errors: Vec<Unavailable>,
}

/// Under which of its lists a change is kind.
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

/// Why [`Pegboard::connect`] did not connect a server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NotConnected {
    /// The board has as many servers as it takes. Nothing has changed.
    #[error(
        "the board takes {most} servers and has them already; raise `max_servers`, or disconnect one that is not needed"
    )]
    TooManyServers {
        /// How many it takes.
        most: usize,
    },
    /// The server cannot be reached. It stays on the board and is tried again as its config says.
    #[error("server `{}` cannot be reached: {}", .0.server, .0.error)]
    Unreachable(Unavailable),
    /// The server cannot be reached, so that the one which has its name and works stays in its place.
    #[error("server `{}` was not replaced, because the new one cannot be reached: {}", .0.server, .0.error)]
    NotReplaced(Unavailable),
    /// The board is closing and takes no more servers.
    #[error("the board is closing and takes no more servers")]
    Closing,
}

impl Pegboard {
    /// Makes the board what `config` says, in every open view. Servers that did not change keep their process. Servers that are removed,
    /// replaced or switched off take no more calls, and those under way end on the old connection, within the server's own limit for a call.
    ///
    /// Changes are made one after the other: a second call of this or of [`Pegboard::connect`] waits for the first.
    ///
    /// Servers that are new or switched on are started, unless they start lazily, and waited for at max_servers as long as their own limits say; the
    /// errors are in the result. What an operator said with [`Pegboard::enable`] or [`Pegboard::disable`] holds until the config says something else
    /// about `enabled`. Servers in this process stay, and what the config says under their names is passed over. A board that is closing changes
    /// nothing.
    ///
    /// A config of which a source could not be read lacks what that source says: see [`Loaded::readable`](crate::Loaded::readable).
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
        *self.0.naming.lock().unwrap_or_else(PoisonError::into_inner) = config.naming.clone();
        let mut applied = Applied::default();
        self.keep_misconfigured(&mut config, &mut applied).await;
        let (mut replacements, mut added) = (Vec::new(), Vec::new());
        // What ends comes before what begins, so that a place, a port or a lock is free.
        for change in reconcile(&self.configured_servers(), &config.servers) {
            match change {
                Change::Remove(name) => {
                    self.0.registry.remove(&name).wait().await;
                    applied.removed.push(name);
                }
                Change::Disable(name, config) => {
                    self.swap(&name, *config).await;
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
            let replaced = self.replace(&name, config, StartMode::AsConfigured).await;
            (name, replaced, kind)
        });
        for (name, replaced, kind) in join_all(replaced).await {
            match replaced {
                Ok(()) => applied.record(name, kind),
                Err(NotConnected::Unreachable(error)) => {
                    applied.record(name, kind);
                    applied.errors.push(error);
                }
                Err(NotConnected::NotReplaced(error)) => applied.errors.push(error),
                Err(NotConnected::TooManyServers { .. } | NotConnected::Closing) => applied.refused.push(name),
            }
        }
        let mut starting = Vec::new();
        for (name, config) in added {
            if self.swap(&name, config).await.is_refused() {
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

    /// Adds a server, or replaces the one that has its name, and connects it, whatever its config says about when to start. An older server that
    /// works is replaced only when the new one is ready, and ends its calls under way. With the settings that the server has already, what is not
    /// connected is connected.
    ///
    /// In every open view the server is connected when this returns; where each view has the server for itself and no view is open, one is
    /// connected for the next view.
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
        self.replace(&name, config, StartMode::Now).await
    }

    /// Takes a server off the board, in every view: new calls find no tool of it, those under way end first. It is closed when this returns,
    /// unless such a call goes on. `false` when there is no server of that name.
    pub async fn disconnect(&self, name: &ServerName) -> bool {
        let retirement = self.0.registry.remove(name);
        let was_there = !retirement.is_empty();
        retirement.wait().await;
        was_there
    }

    /// Starts a server anew at once, in every view and whatever its state. Calls under way on it end as lost. `false` when there is no server of
    /// that name.
    pub async fn reconnect(&self, name: &ServerName) -> bool {
        let instances = self.0.registry.instances_in_use(name);
        join_all(instances.iter().map(Server::reconnect)).await;
        !instances.is_empty()
    }

    /// Lists a server again in every view where it is connected. `false` when it is connected in none.
    pub fn refresh(&self, name: &ServerName) -> bool {
        let mut connected = self.0.registry.instances(name);
        connected.retain(Server::is_ready);
        connected.iter().for_each(Server::refresh);
        !connected.is_empty()
    }

    /// Switches a server on in every view and starts it. `false` when there is no server of that name, no room for one more, or no config that can
    /// be used.
    pub async fn enable(&self, name: &ServerName) -> bool {
        let Some(server) = self.0.registry.get(name) else {
            return false;
        };
        let has_room = self.others(name) < self.0.factory.max_servers.load(Ordering::Relaxed);
        if !has_room || self.0.registry.is_closing() || server.is_misconfigured() {
            return false;
        }
        if server.is_refused() {
            // There is room for it now.
            self.swap(name, server.config().as_ref().clone()).await;
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

    /// Switches a server off at once, in every view: its process ends, unless another server shares it, its tools disappear, and calls under
    /// way on it end as lost, also on a server of that name that only ended its calls. To let those end first, apply a config that switches it
    /// off. `false` when there is no server of that name.
    pub async fn disable(&self, name: &ServerName) -> bool {
        let (was_there, left) = self.0.registry.change(name, |server| {
            server.set_switch(false);
            server.switch_off()
        });
        join_all(left.into_iter().map(DetachedConnections::close)).await;
        self.0.registry.close_draining(name).await;
        was_there
    }

    /// Puts a server in the place of the one that has its name. Where that works, in any view, the new one must be ready there first.
    async fn replace(&self, name: &ServerName, config: ServerConfig, mode: StartMode) -> Result<(), NotConnected> {
        let registry = &self.0.registry;
        let works = |server: &Server| server.is_ready() || (server.is_enabled() && server.is_idle_and_listed());
        let works = registry.instances(name).iter().any(works);
        if !works || !config.enabled {
            let new = self.swap(name, config).await;
            if new.is_refused() {
                let max_servers = self.0.factory.max_servers.load(Ordering::Relaxed);
                return Err(NotConnected::TooManyServers { most: max_servers });
            }
            return self.start(name, mode).await.map_err(NotConnected::Unreachable);
        }
        let candidate = self.make(name, config);
        candidate.mute();
        candidate.request();
        let replacements = registry.prepare_replacements(&candidate);
        let candidates: Vec<_> = std::iter::once(&candidate)
            .chain(replacements.servers())
            .cloned()
            .collect();
        let expected = registry.track(candidates.clone());
        let reached: Result<Vec<()>, _> = join_all(candidates.iter().map(wait_ready)).await.into_iter().collect();
        // What an operator did meanwhile holds.
        let old = registry.get(name).filter(|_| !registry.is_closing());
        let (Ok(_), Some(old)) = (&reached, old) else {
            expected.close().await;
            let error = reached.err();
            let error = error.unwrap_or_else(|| Unavailable::of(&candidate, &Outage::removed()));
            return Err(NotConnected::NotReplaced(error));
        };
        for candidate in &candidates {
            candidate.inherit_switch(&old);
        }
        let server = match candidate.view() {
            Some(_) => candidate.fresh(),
            None => candidate.clone(),
        };
        registry.put_with(&server, &replacements).wait().await;
        self.start(name, mode).await.map_err(NotConnected::Unreachable)
    }

    /// Puts a server that is not started yet in the place of the one that has its name.
    async fn swap(&self, name: &ServerName, config: ServerConfig) -> Server {
        let new = self.make(name, config);
        if let Some(old) = self.0.registry.get(name) {
            new.inherit_switch(&old);
        }
        self.0.registry.put(&new).wait().await;
        new
    }

    fn make(&self, name: &ServerName, config: ServerConfig) -> Server {
        self.0.factory.configured(name.clone(), config, self.others(name))
    }

    /// Starts a server in every view and waits until each is ready or has failed. The first failure is kind.
    async fn start(&self, name: &ServerName, mode: StartMode) -> Result<(), Unavailable> {
        let mut instances = self.0.registry.instances_in_use(name);
        instances.retain(|server| {
            let config = server.config();
            let is_due = mode == StartMode::Now || config.start != Start::Lazy || config.required;
            server.is_enabled() && is_due
        });
        instances.iter().for_each(Server::request);
        join_all(instances.iter().map(wait_ready)).await.into_iter().collect()
    }

    /// Tries those instances of a server again that are switched off or not ready.
    async fn revive(&self, name: &ServerName) {
        let mut instances = self.0.registry.instances(name);
        instances.retain(|server| !server.is_ready());
        instances.iter().for_each(Server::reset_switch);
        // A config that switches it off holds here too.
        instances.iter().for_each(Server::follow_switch);
        instances.retain(|server| !server.is_spare());
        join_all(instances.iter().map(Server::reconnect)).await;
    }

    /// Whether a server can take over these settings without another connection.
    fn keeps_connection(&self, name: &ServerName, wanted: &ServerConfig) -> bool {
        let server = self.0.registry.get(name);
        server.is_some_and(|server| same_connection(&server.config(), wanted))
    }

    /// Gives a server other settings in every view, under which it is reached as before.
    async fn retune(&self, name: &ServerName, wanted: &ServerConfig) {
        let (_, left) = self.0.registry.change(name, |server| server.retune(wanted));
        join_all(left.into_iter().map(DetachedConnections::close)).await;
        self.0.registry.bump_revision();
    }

    /// How many servers there are besides the one of that name. Those that are switched off by their config or were refused do not count.
    fn others(&self, name: &ServerName) -> usize {
        let servers = self.0.registry.configured();
        let counts = |server: &&Server| server.name() != name && server.is_enabled() && !server.is_refused();
        servers.iter().filter(counts).count()
    }

    fn has_in_process(&self, name: &ServerName) -> bool {
        let server = self.0.registry.get(name);
        server.is_some_and(|server| !server.is_configured())
    }

    /// A server whose new config cannot be used goes on under its old one; without an old one it has a row that says why.
    async fn keep_misconfigured(&self, config: &mut Config, applied: &mut Applied) {
        for (name, misconfigured) in &config.misconfigured {
            let placeholder = self.0.factory.misconfigured(name.clone(), misconfigured);
            let server = match self.0.registry.get(name) {
                Some(running) if !running.is_misconfigured() || running.is_refused_like(&placeholder) => running,
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

    /// Servers that were refused may find room in a new config.
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

/// Whether a server is started that its config would start only when it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartMode {
    AsConfigured,
    Now,
}

/// Starts a server and waits until it is ready, at max_servers as long as its own limits say.
async fn wait_ready(server: &Server) -> Result<(), Unavailable> {
    let limits = server.config().limits;
    let deadline = Deadline::within(limits.connect + limits.list + MARGIN);
    match server.live(deadline).await {
        Ok(_) => Ok(()),
        Err(outage) => Err(Unavailable::of(server, &outage)),
    }
}
