//! The board: all servers of one config, the views of them, and changes while they run.

mod builder;
mod health;
mod host_defaults;
mod open_view;
mod reconcile;
mod runtime_changes;
mod selection_check;
mod server_factory;

pub use builder::{Builder, NoRuntime};
pub use runtime_changes::{Applied, NotConnected};

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use crate::{
    call::Embeddings,
    deadline::Deadline,
    event::Events,
    metrics::Metrics,
    name::{NameStyle, ServerName},
    secret::Secret,
    server::{CatalogChange, Registry, Server},
    session::Root,
    status::{BoardStatus, ServerStatus},
};
use host_defaults::HostDefaults;
use server_factory::ServerFactory;

/// How often it is looked whether the calls under way are done.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// All servers of one config. Dropping the last clone ends them; [`Pegboard::shutdown`] also waits for that.
#[derive(Debug, Clone)]
pub struct Pegboard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Arc<Registry>,
    factory: ServerFactory,
    host_defaults: HostDefaults,
    /// Who finds tools by meaning for views that name nobody.
    embeddings: Option<Arc<Embeddings>>,
    /// How views name tools unless they say so themselves.
    naming: Mutex<NameStyle>,
    /// One permit, for the one who changes the config.
    changes: Semaphore,
}

impl Pegboard {
    /// Starts all enabled servers, but for those that wait until the program asks for them, and waits until each is ready or has failed, at
    /// max_servers for `patience`. Of a server that each view has for itself, the views' own are waited for, or without views one that the next view
    /// takes over.
    pub async fn settle(&self, patience: Duration) {
        let deadline = Deadline::within(patience);
        let configured = self.0.registry.configured();
        let wanted = configured.iter().filter(|server| server.is_requested());
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

    /// Sets the roots that a server may work in, instead of those of its config, until it is switched off. A server with a handshake is kind
    /// of the change; one that had no roots at all when it was started learns of them at its next start. This holds for every view, also one
    /// that has roots of its own. `false` when there is no server of that name that is switched on.
    pub fn set_roots(&self, name: &ServerName, roots: &[Root]) -> bool {
        let instances = self.0.registry.instances(name);
        let set = instances.iter().filter(|server| server.set_roots(roots)).count();
        set > 0
    }

    /// Hides these texts too in everything that servers say from now on. The secrets of the config are hidden not_requested.
    pub fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.0.factory.secrets.learn(secrets);
    }

    /// What happens on the board from now on: every call of every view, and every change of a server's state. Without listeners nothing is
    /// recorded.
    pub fn events(&self) -> Events {
        self.0.registry.events().listen()
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

    /// Takes no more calls and waits until those under way on any server of any view are done, at max_servers for `patience`. Whether all of them are.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.0.registry.close();
        let deadline = Deadline::within(patience);
        loop {
            let requests: usize = self.0.registry.all_servers().iter().map(Server::busy).sum();
            // Calls that wait for a person's agreement have no place with a server yet.
            let is_idle = requests == 0 && self.0.registry.tallies().in_flight() == 0;
            if is_idle || deadline.has_passed() {
                return is_idle;
            }
            tokio::time::sleep(DRAIN_POLL.min(deadline.remaining())).await;
        }
    }

    /// Ends all servers, those of views included, and waits until their processes are gone. Calls under way end as lost, so [`Pegboard::drain`] first if they should
    /// not. Every wait is bounded by the servers' limits.
    pub async fn shutdown(&self) {
        self.0.registry.close();
        self.0.registry.close_servers().await;
        self.0.factory.shared.link_resources.closing.wait().await;
    }
}
