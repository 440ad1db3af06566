//! The registry itself: its servers, and what is derived from all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures_util::future::{BoxFuture, join_all};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::principals::Principals;
use crate::status::ServerStatus;
use crate::{
    event::EventSender,
    metrics::BoardCounters,
    server::{
        availability::DetachedConnections,
        board_shared::BoardShared,
        phase::Phase,
        server_handle::Server,
        view_instances::{ViewInstances, sort},
    },
};
use pegboard_base::{
    deadline::Deadline,
    name::ServerName,
    sync::{Mutex, RwLock},
};

/// Every live server of one board.
#[derive(Debug)]
pub(crate) struct Registry {
    /// The shared servers and the spares, ordered by name.
    pub(super) servers: RwLock<Arc<[Server]>>,
    /// Lock order: `state` before `servers`.
    pub(super) state: Mutex<RegistryState>,
    pub(super) opened_views: AtomicU64,
    /// Numbers the owners of servers: views and principals.
    pub(super) next_owner: AtomicU64,
    /// Incremented whenever a server is added, removed or changed, or the catalogue of a shared server may have changed.
    revision: Arc<AtomicU64>,
    /// Set once, when the board accepts no more calls.
    is_closing: AtomicBool,
    /// Cancelled when the board closes or is dropped.
    pub(super) closing: CancellationToken,
    _closes_on_drop: DropGuard,
    /// Publishes events to subscribers of the board.
    events: EventSender,
    /// The counters of the board.
    tallies: Arc<BoardCounters>,
    /// The tasks that drain and close servers which were removed from the board.
    pub(super) tasks: TaskTracker,
}

#[derive(Debug, Default)]
pub(super) struct RegistryState {
    pub(super) views: BTreeMap<u64, Weak<ViewInstances>>,
    pub(super) principals: Principals,
    /// Servers that were removed from the board and still have calls in flight.
    pub(super) draining: Vec<Server>,
    /// Servers that are started before they replace others.
    pub(super) candidates: Vec<Server>,
}

impl Registry {
    pub(crate) fn new(servers: Vec<Server>, shared: &BoardShared) -> Self {
        servers.iter().for_each(Server::unmute);
        let tasks = TaskTracker::new();
        // Closing lets `wait` return; a closed tracker still accepts tasks.
        tasks.close();
        let closing = CancellationToken::new();
        Self {
            servers: RwLock::new(sort(servers)),
            state: Mutex::default(),
            opened_views: AtomicU64::new(0),
            next_owner: AtomicU64::new(1),
            revision: shared.revision.clone(),
            is_closing: AtomicBool::new(false),
            _closes_on_drop: closing.clone().drop_guard(),
            closing,
            events: shared.events.clone(),
            tallies: shared.tallies.clone(),
            tasks,
        }
    }

    /// Accepts no more calls and starts no more servers from now on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.closing.cancel();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn events(&self) -> &EventSender {
        &self.events
    }

    pub(crate) fn tallies(&self) -> &Arc<BoardCounters> {
        &self.tallies
    }

    /// The shared servers and the spares, one for each configured server.
    pub(crate) fn configured_servers(&self) -> Arc<[Server]> {
        self.servers.read().clone()
    }

    pub(crate) fn get(&self, name: &ServerName) -> Option<Server> {
        self.configured_servers()
            .iter()
            .find(|server| server.name() == name)
            .cloned()
    }

    /// Every live server: shared ones, spares, those of views, draining ones, and candidates.
    pub(crate) fn all_servers(&self) -> Vec<Server> {
        let state = self.state.lock();
        let views = owners(&state);
        let mut servers = self.configured_servers().to_vec();
        for view in &views {
            servers.extend(view.all());
        }
        servers.extend_from_slice(&state.draining);
        servers.extend_from_slice(&state.candidates);
        servers
    }

    /// Changes the server of that name and its view instances, while no view can be opened. Returns whether there is such a server, and the
    /// connections that the change detached.
    pub(crate) fn change(
        &self,
        name: &ServerName,
        change: impl Fn(&Server) -> DetachedConnections,
    ) -> (bool, Vec<DetachedConnections>) {
        let state = self.state.lock();
        let views = owners(&state);
        let of_views = views.iter().filter_map(|view| view.get(name));
        let instances: Vec<Server> = self.get(name).into_iter().chain(of_views).collect();
        (!instances.is_empty(), instances.iter().map(change).collect())
    }

    /// Closes the draining servers of that name.
    pub(crate) fn close_draining<'a>(&'a self, name: &'a ServerName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut draining = self.state.lock().draining.clone();
            draining.retain(|server| server.name() == name);
            join_all(draining.iter().map(Server::close)).await;
        })
    }

    /// The configured server of that name, and then its view instances.
    pub(crate) fn instances(&self, name: &ServerName) -> Vec<Server> {
        let of_views = self.owners_and_draining().0;
        let of_views = of_views.iter().filter_map(|view| view.get(name));
        self.get(name).into_iter().chain(of_views).collect()
    }

    /// The instances that start on command: the view instances, or the configured server if no view has one. Those with
    /// credentials of their own start when they are used.
    pub(crate) fn instances_in_use(&self, name: &ServerName) -> Vec<Server> {
        let mut instances = self.instances(name);
        instances.retain(|server| !server.spec().is_private());
        if instances.len() > 1 {
            instances.retain(|server| !server.is_spare());
        }
        instances
    }

    /// The instances that a restart of the server restarts: those in use, and those with credentials of their own that have a
    /// connection.
    pub(crate) fn instances_to_restart(&self, name: &ServerName) -> Vec<Server> {
        let mut instances = self.instances(name);
        instances.retain(|server| server.spec().is_private() && !is_unused(server));
        instances.extend(self.instances_in_use(name));
        instances
    }

    /// One status row per live server, by name. A spare without a session is omitted if a view has the server, and so is a principal's server
    /// without one.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let (views, draining) = self.owners_and_draining();
        let mut owned: Vec<Server> = views.iter().flat_map(|view| view.own_instances().to_vec()).collect();
        owned.retain(|server| !server.owner().is_principal() || !is_unused(server));
        let names: BTreeSet<&ServerName> = owned.iter().map(Server::name).collect();
        let is_shown = |server: &&Server| {
            let is_idle_spare =
                server.is_spare() && (is_unused(server) || matches!(server.reported_phase(), Phase::Idle));
            !is_idle_spare || !names.contains(server.name())
        };
        let configured = self.configured_servers();
        let shown = configured.iter().filter(is_shown);
        let mut rows: Vec<_> = shown.chain(&owned).chain(&draining).map(Server::status).collect();
        // Stable: shared servers and spares stay before view instances, and those before draining servers.
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    /// Waits until every server that shall run is ready or has failed, at most until the deadline.
    pub(crate) fn settle(&self, deadline: Deadline) -> BoxFuture<'_, ()> {
        self.settle_those(|server| server.activation().is_requested(), deadline)
    }

    /// Waits until every server that starts with the board is ready or has failed, at most until the deadline.
    pub(crate) fn settle_started(&self, deadline: Deadline) -> BoxFuture<'_, ()> {
        self.settle_those(Server::starts_automatically, deadline)
    }

    fn settle_those(&self, is_wanted: fn(&Server) -> bool, deadline: Deadline) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let configured = self.configured_servers();
            let wanted = configured.iter().filter(|server| is_wanted(server));
            let instances: Vec<_> = wanted
                .flat_map(|server| self.instances_in_use(server.name()))
                .filter(Server::is_enabled)
                .collect();
            join_all(instances.iter().map(|server| server.ensure_live(deadline))).await;
        })
    }

    /// Closes every server and waits until all are closed. Call [`Registry::close`] first, so that none is added meanwhile.
    pub(crate) fn close_servers(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (_, others) = self.end_sessions(self.all_servers());
            join_all(others.iter().map(Server::close)).await;
            self.tasks.wait().await;
        })
    }

    /// Runs a task that a shutdown waits for.
    pub(in crate::server) fn spawn_on(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        runtime: &Handle,
    ) -> JoinHandle<()> {
        self.tasks.spawn_on(task, runtime)
    }

    pub(in crate::server) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Makes all views rebuild their snapshots.
    pub(crate) fn bump_revision(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// How many views are open.
    #[cfg(test)]
    pub(crate) fn open_views(&self) -> usize {
        self.state.lock().views.len()
    }

    pub(super) fn owners_and_draining(&self) -> (Vec<Arc<ViewInstances>>, Vec<Server>) {
        let state = self.state.lock();
        (owners(&state), state.draining.clone())
    }
}

/// The owners of servers: the open views and the known principals.
pub(super) fn owners(state: &RegistryState) -> Vec<Arc<ViewInstances>> {
    let views = state.views.values().filter_map(Weak::upgrade);
    views.chain(state.principals.all().cloned()).collect()
}

fn is_unused(server: &Server) -> bool {
    matches!(server.phase(), Phase::Idle | Phase::Disabled | Phase::Closed)
}
