//! [`ConfigChange`]: applies a new config to the servers of a running board. It is compared with the running one, and only differences are applied.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;

use super::{
    reconcile::{Change, reconcile},
    server_factory::ServerFactory,
    server_replacement::{NotConnected, ServerChanges, StartMode},
};
use crate::{
    server::{DetachedConnections, Outage, Registry},
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
    /// Servers that go on under their old settings, because the new ones do not work. `errors` says why. The next [`Pegboard::apply`](crate::Pegboard::apply) tries
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

/// Applies a config to the servers of a board.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfigChange<'a> {
    registry: &'a Arc<Registry>,
    factory: &'a ServerFactory,
    changes: ServerChanges<'a>,
}

impl<'a> ConfigChange<'a> {
    pub(super) fn new(registry: &'a Arc<Registry>, factory: &'a ServerFactory) -> Self {
        Self {
            registry,
            factory,
            changes: ServerChanges::new(registry, factory),
        }
    }

    /// Takes over the limits and queues of `config`, and removes from it what is not applied: the settings of servers in this process.
    pub(super) fn prepare(self, config: &'a mut Config) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            config.servers.retain(|name, _| !self.has_in_process(name));
            config.misconfigured.retain(|name, _| !self.has_in_process(name));
            self.factory.shared.queues.apply(&config.queues);
            self.factory.take_limits(&config.limits);
            self.forget_refused().await;
        })
    }

    /// Changes the servers to match `config`, and waits until those that are started are ready or have failed.
    pub(super) fn apply(self, mut config: Config) -> BoxFuture<'a, Applied> {
        Box::pin(async move {
            let mut applied = Applied::default();
            self.keep_misconfigured(&mut config, &mut applied).await;
            let (mut replacements, mut added) = (Vec::new(), Vec::new());
            // Servers are stopped before others are started, so that slots, ports and locks are free.
            for change in reconcile(&self.list_configured(), &config.servers) {
                match change {
                    Change::Remove(name) => {
                        self.registry.remove(&name).wait().await;
                        applied.removed.push(name);
                    }
                    Change::Disable(name, config) => {
                        self.changes.swap(&name, None, *config).await;
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
                let replaced = self.changes.replace(&name, None, config, StartMode::AsConfigured).await;
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
                    Err(
                        NotConnected::TooManyServers { .. }
                        | NotConnected::Closing
                        | NotConnected::NameTaken(_)
                        | NotConnected::Name(_),
                    ) => {
                        applied.refused.push(name);
                    }
                }
            }
            let mut starting = Vec::new();
            for (name, config) in added {
                if self.changes.swap(&name, None, config).await.connections().is_refused() {
                    applied.refused.push(name);
                } else {
                    starting.push(name.clone());
                    applied.added.push(name);
                }
            }
            let started = starting
                .iter()
                .map(|name| self.changes.start(name, StartMode::AsConfigured));
            let errors = join_all(started).await.into_iter().filter_map(Result::err);
            applied.errors.extend(errors);
            applied
        })
    }

    fn has_in_process(self, name: &ServerName) -> bool {
        let server = self.registry.get(name);
        server.is_some_and(|server| !server.spec().target.is_configured())
    }

    /// Whether a server can apply these settings without a new connection.
    fn keeps_connection(self, name: &ServerName, wanted: &ServerConfig) -> bool {
        let server = self.registry.get(name);
        server.is_some_and(|server| server.config().serves(wanted))
    }

    /// Applies settings that need no new connection, in every view.
    async fn retune(self, name: &ServerName, wanted: &ServerConfig) {
        let (_, detached) = self.registry.change(name, |server| server.retune(wanted));
        join_all(detached.into_iter().map(DetachedConnections::close)).await;
        self.registry.bump_revision();
    }

    /// Keeps servers with an invalid new config running under their old one. A server without an old one gets a status row that says why.
    async fn keep_misconfigured(self, config: &mut Config, applied: &mut Applied) {
        for (name, misconfigured) in &config.misconfigured {
            let placeholder = self.factory.make_misconfigured(name.clone(), misconfigured);
            let server = match self.registry.get(name) {
                Some(running) if !running.connections().is_misconfigured() => {
                    applied.kept.push(name.clone());
                    running
                }
                Some(running) if running.connections().is_refused_like(placeholder.connections()) => running,
                _ => {
                    self.registry.put(&placeholder).wait().await;
                    placeholder
                }
            };
            config.servers.insert(name.clone(), server.config().as_ref().clone());
            let outage = Outage::misconfigured(misconfigured);
            applied.errors.push(Unavailable::from_outage(&server, &outage));
        }
    }

    /// Removes refused servers, which may fit into the new config.
    async fn forget_refused(self) {
        let servers = self.registry.configured_servers();
        let refused = servers.iter().filter(|server| {
            server.spec().target.is_configured()
                && server.connections().is_refused()
                && !server.connections().is_misconfigured()
        });
        for server in refused {
            self.registry.remove(server.name()).wait().await;
        }
    }

    fn list_configured(self) -> BTreeMap<ServerName, ServerConfig> {
        let servers = self.registry.configured_servers();
        let configured = servers.iter().filter(|server| server.spec().target.is_configured());
        configured
            .map(|server| (server.name().clone(), server.config().as_ref().clone()))
            .collect()
    }
}
