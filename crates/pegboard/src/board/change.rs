//! Changes while the board runs: a new config is compared with the old one, and only what differs is touched.

use std::{collections::BTreeMap, sync::PoisonError};

use serde::Serialize;

use super::{
    Pegboard,
    reconcile::{Change, reconcile},
    start_if_wanted,
};
use crate::{
    config::{Config, ServerConfig},
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
}

impl Pegboard {
    /// Makes the board what `config` says. Servers that did not change keep their process; the others are ended in good order. Servers in
    /// this process stay.
    pub async fn apply(&self, config: Config) -> Applied {
        for (name, queue) in &config.queues {
            self.0.maker.shared.queues.grow(name, queue.concurrent);
        }
        *self.0.naming.lock().unwrap_or_else(PoisonError::into_inner) = config.naming.clone();
        let running = self.configured_servers();
        let mut applied = Applied::default();
        let mut ended: Vec<Server> = Vec::new();
        for change in reconcile(&running, &config.servers) {
            let name = change.server().clone();
            match change {
                Change::Remove(_) => {
                    ended.extend(self.0.shelf.take(&name));
                    applied.removed.push(name);
                }
                Change::Add(_, config) => {
                    self.put(name.clone(), *config);
                    applied.added.push(name);
                }
                Change::Replace(_, config) => {
                    ended.extend(self.put(name.clone(), *config));
                    applied.replaced.push(name);
                }
                Change::Retune(_, config) | Change::Enable(_, config) | Change::Disable(_, config) => {
                    self.retune(&name, *config).await;
                    applied.retuned.push(name);
                }
            }
        }
        futures_util::future::join_all(ended.iter().map(Server::close)).await;
        applied
    }

    /// Adds one server, or replaces the one that has its name.
    pub async fn connect(&self, name: ServerName, config: ServerConfig) {
        if let Some(old) = self.put(name, config) {
            old.close().await;
        }
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
            server.reconnect().await;
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

    /// Switches one server on. `false` when there is none of that name.
    pub async fn enable(&self, name: &ServerName) -> bool {
        self.switch(name, true).await
    }

    /// Switches one server off: its process ends and its tools disappear. `false` when there is none of that name.
    pub async fn disable(&self, name: &ServerName) -> bool {
        self.switch(name, false).await
    }

    async fn switch(&self, name: &ServerName, on: bool) -> bool {
        let server = self.0.shelf.get(name);
        if let Some(server) = &server {
            server.enable(on).await;
        }
        server.is_some()
    }

    fn put(&self, name: ServerName, config: ServerConfig) -> Option<Server> {
        let server = self.0.maker.configured(name, config);
        start_if_wanted(&server);
        self.0.shelf.put(server)
    }

    async fn retune(&self, name: &ServerName, wanted: ServerConfig) {
        let Some(server) = self.0.shelf.get(name) else { return };
        let (was_enabled, is_enabled) = (server.config().enabled, wanted.enabled);
        server.retune(wanted);
        if was_enabled != is_enabled {
            server.enable(is_enabled).await;
        }
        self.0.shelf.touch();
    }

    fn configured_servers(&self) -> BTreeMap<ServerName, ServerConfig> {
        let servers = self.0.shelf.all();
        let configured = servers.iter().filter(|server| server.is_configured());
        configured
            .map(|server| (server.name().clone(), server.config().as_ref().clone()))
            .collect()
    }
}
