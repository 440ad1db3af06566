//! Changes while the board runs: a new config is compared with the old one, and only what differs is touched.

use std::{collections::BTreeMap, sync::PoisonError, sync::atomic::Ordering};

use futures_util::future::join_all;
use serde::Serialize;

use super::{
    Pegboard, is_started_by_board,
    reconcile::{Change, reconcile, same_connection},
    start_if_wanted,
};
use crate::{
    config::{Config, Scope, ServerConfig, Start},
    name::ServerName,
    server::Server,
};

/// What a new config has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers that are gone.
    pub removed: Vec<ServerName>,
    /// Servers that are reached in another way and were started anew.
    pub replaced: Vec<ServerName>,
    /// Servers whose settings changed while their process or connection stayed.
    pub retuned: Vec<ServerName>,
    /// Servers that the board has no room for.
    pub refused: Vec<ServerName>,
}

/// The board has as many servers as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the board takes {most} servers and has them already; raise `max_servers`, or disconnect one that is not needed"
)]
#[non_exhaustive]
pub struct TooManyServers {
    /// How many it takes.
    pub most: usize,
}

impl Pegboard {
    /// Makes the board what `config` says. Servers that did not change keep their process; the others are ended in good order. Servers in
    /// this process stay, and what the config says under their names is passed over.
    pub async fn apply(&self, mut config: Config) -> Applied {
        config.servers.retain(|name, _| !self.has_in_process(name));
        for (name, queue) in &config.queues {
            self.0.maker.shared.queues.grow(name, queue.concurrent);
        }
        self.0.maker.most.store(config.limits.servers, Ordering::Relaxed);
        self.forget_refused();
        *self.0.naming.lock().unwrap_or_else(PoisonError::into_inner) = config.naming.clone();
        let running = self.configured_servers();
        let mut applied = Applied::default();
        let changes = reconcile(&running, &config.servers);
        // These end first, so that a port, a lock or a connection is free for whoever takes it over.
        for change in &changes {
            if let Change::Remove(name) = change {
                applied.removed.push(name.clone());
            }
        }
        let removed: Vec<_> = applied
            .removed
            .iter()
            .filter_map(|name| self.0.shelf.take(name))
            .collect();
        join_all(removed.iter().map(Server::close)).await;
        let mut ended: Vec<Server> = Vec::new();
        for change in changes {
            let name = change.server().clone();
            match change {
                Change::Remove(_) => {}
                Change::Add(_, config) => {
                    let refused = self.put(name.clone(), *config).1.is_refused();
                    let told = if refused {
                        &mut applied.refused
                    } else {
                        &mut applied.added
                    };
                    told.push(name);
                }
                Change::Replace(_, config) => {
                    ended.extend(self.put(name.clone(), *config).0);
                    applied.replaced.push(name);
                }
                Change::Retune(_, config) | Change::Enable(_, config) | Change::Disable(_, config) => {
                    ended.extend(self.retune(&name, *config).await);
                    applied.retuned.push(name);
                }
            }
        }
        join_all(ended.iter().map(Server::close)).await;
        applied
    }

    /// Adds one server, or replaces the one that has its name, and starts it unless it starts lazily.
    pub async fn connect(&self, name: ServerName, config: ServerConfig) -> Result<(), TooManyServers> {
        let most = self.0.maker.most.load(Ordering::Relaxed);
        if self.others(&name) >= most {
            return Err(TooManyServers { most });
        }
        let (old, server) = self.put(name, config);
        server.ask_for();
        if server.config().start != Start::Lazy && is_started_by_board(&server) {
            server.start();
        }
        if let Some(old) = old {
            old.close().await;
        }
        Ok(())
    }

    /// Takes one server off the board and ends it. `false` when there is none of that name.
    pub async fn disconnect(&self, name: &ServerName) -> bool {
        match self.0.shelf.take(name) {
            Some(server) => {
                server.close().await;
                true
            }
            None => false,
        }
    }

    /// Starts one server anew, whatever its state. `false` when there is none of that name.
    pub async fn reconnect(&self, name: &ServerName) -> bool {
        let server = self.0.shelf.get(name);
        if let Some(server) = &server {
            server.ask_for();
            let is_for_views = server.config().policy.scope == Scope::Session;
            if !is_for_views || server.phase().live().is_some() {
                server.reconnect().await;
            }
        }
        server.is_some()
    }

    /// Lists one server again. `false` when there is none of that name.
    pub fn refresh(&self, name: &ServerName) -> bool {
        let server = self.0.shelf.get(name);
        if let Some(server) = &server {
            server.refresh();
        }
        server.is_some()
    }

    /// Switches one server on and starts it. `false` when there is none of that name.
    #[expect(clippy::unused_async, reason = "switching off waits, and both are used alike")]
    pub async fn enable(&self, name: &ServerName) -> bool {
        let server = self.0.shelf.get(name);
        if let Some(server) = &server {
            server.ask_for();
            server.switch_on();
            if server.config().policy.scope != Scope::Session {
                server.start();
            }
        }
        server.is_some()
    }

    /// Switches one server off: its process ends, unless another server shares it, and its tools disappear. `false` when there is none of
    /// that name.
    pub async fn disable(&self, name: &ServerName) -> bool {
        let server = self.0.shelf.get(name);
        if let Some(server) = &server {
            server.disable().await;
        }
        server.is_some()
    }

    /// Puts a server in the place of the one that has its name. Gives back both.
    fn put(&self, name: ServerName, config: ServerConfig) -> (Option<Server>, Server) {
        let others = self.others(&name);
        let server = self.0.maker.configured(name, config, others);
        start_if_wanted(&server);
        (self.0.shelf.put(server.clone()), server)
    }

    /// Gives a server other settings. What must be ended because it is reached in another way now is given back.
    async fn retune(&self, name: &ServerName, wanted: ServerConfig) -> Option<Server> {
        let server = self.0.shelf.get(name)?;
        let old = server.config();
        if !same_connection(&old, &wanted) {
            return self.put(name.clone(), wanted).0;
        }
        let is_enabled = wanted.enabled;
        if old.enabled && !is_enabled {
            server.disable().await;
        }
        server.retune(wanted).await;
        if !old.enabled && is_enabled {
            server.switch_on();
            start_if_wanted(&server);
        }
        self.0.shelf.touch();
        None
    }

    /// How many servers there are besides the one of that name. Those that were refused do not count.
    fn others(&self, name: &ServerName) -> usize {
        let servers = self.0.shelf.all();
        let counts = |server: &&Server| server.name() != name && !server.is_refused();
        servers.iter().filter(counts).count()
    }

    fn has_in_process(&self, name: &ServerName) -> bool {
        self.0.shelf.get(name).is_some_and(|server| !server.is_configured())
    }

    /// Servers that were refused may find room in a new config.
    fn forget_refused(&self) {
        let servers = self.0.shelf.all();
        let refused = servers
            .iter()
            .filter(|server| server.is_configured() && server.is_refused());
        for server in refused {
            self.0.shelf.take(server.name());
        }
    }

    fn configured_servers(&self) -> BTreeMap<ServerName, ServerConfig> {
        let servers = self.0.shelf.all();
        let configured = servers.iter().filter(|server| server.is_configured());
        configured
            .map(|server| (server.name().clone(), server.config().as_ref().clone()))
            .collect()
    }
}
