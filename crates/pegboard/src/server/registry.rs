//! The registry of a board: every live server, whether shared by all views, owned by one view, or draining its last calls.
//!
//! A session-scoped server is registered as a *spare*: the next view takes it over with the session that it may have, and a new spare
//! replaces it. Status, readiness, drain, shutdown and every run-time command go through this registry, so none of them can miss a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures_util::future::join_all;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use super::{
    availability::{Availability, DetachedConnections},
    board_shared::BoardShared,
    phase::Phase,
    retirement::Retirement,
    server_handle::Server,
    view_instances::{ViewInstances, sorted},
    view_tag::ViewTag,
};
use crate::{
    deadline::Deadline,
    event::EventSender,
    metrics::BoardCounters,
    name::ServerName,
    session::{HostHandle, Root},
    status::ServerStatus,
};

/// Every live server of one board.
#[derive(Debug)]
pub(crate) struct Registry {
    /// The shared servers and the spares, ordered by name.
    servers: RwLock<Arc<[Server]>>,
    /// Lock order: `state` before `servers`.
    state: Mutex<RegistryState>,
    opened_views: AtomicU64,
    /// Incremented whenever a server is added, removed or changed, or the catalogue of a shared server may have changed.
    revision: Arc<AtomicU64>,
    /// Set once, when the board accepts no more calls.
    is_closing: AtomicBool,
    /// Publishes events to subscribers of the board.
    events: EventSender,
    /// The counters of the board.
    tallies: Arc<BoardCounters>,
    /// The tasks that drain and close servers which were removed from the board.
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct RegistryState {
    views: BTreeMap<u64, Weak<ViewInstances>>,
    /// Servers that were removed from the board and still have calls in flight.
    draining: Vec<Server>,
    /// Servers that are started before they replace others.
    candidates: Vec<Server>,
}

impl Registry {
    pub(crate) fn new(servers: Vec<Server>, shared: &BoardShared) -> Self {
        servers.iter().for_each(Server::unmute);
        let tasks = TaskTracker::new();
        // Closing lets `wait` return; a closed tracker still accepts tasks.
        tasks.close();
        Self {
            servers: RwLock::new(sorted(servers)),
            state: Mutex::default(),
            opened_views: AtomicU64::new(0),
            revision: shared.revision.clone(),
            is_closing: AtomicBool::new(false),
            events: shared.events.clone(),
            tallies: shared.tallies.clone(),
            tasks,
        }
    }

    /// Accepts no more calls and starts no more servers from now on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
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
    pub(crate) fn configured(&self) -> Arc<[Server]> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, name: &ServerName) -> Option<Server> {
        self.configured().iter().find(|server| server.name() == name).cloned()
    }

    /// Every live server: shared ones, spares, those of views, draining ones, and candidates.
    pub(crate) fn all_servers(&self) -> Vec<Server> {
        let state = self.lock();
        let views = open_views(&state);
        let mut servers = self.configured().to_vec();
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
        let state = self.lock();
        let views = open_views(&state);
        let of_views = views.iter().filter_map(|view| view.get(name));
        let instances: Vec<Server> = self.get(name).into_iter().chain(of_views).collect();
        (!instances.is_empty(), instances.iter().map(change).collect())
    }

    /// Closes the draining servers of that name.
    pub(crate) async fn close_draining(&self, name: &ServerName) {
        let mut draining = self.lock().draining.clone();
        draining.retain(|server| server.name() == name);
        join_all(draining.iter().map(Server::close)).await;
    }

    /// Registers servers as candidates, so that shutdown closes them too, until the returned guard is dropped.
    pub(crate) fn track(self: &Arc<Self>, candidates: Vec<Server>) -> Candidates {
        self.lock().candidates.extend_from_slice(&candidates);
        Candidates {
            registry: self.clone(),
            candidates,
        }
    }

    /// The configured server of that name, and then its view instances.
    pub(crate) fn instances(&self, name: &ServerName) -> Vec<Server> {
        let of_views = self.open_views_and_draining().0;
        let of_views = of_views.iter().filter_map(|view| view.get(name));
        self.get(name).into_iter().chain(of_views).collect()
    }

    /// The instances in use: the view instances, or the configured server if no view has one.
    pub(crate) fn instances_in_use(&self, name: &ServerName) -> Vec<Server> {
        let mut instances = self.instances(name);
        if instances.len() > 1 {
            instances.retain(|server| !server.is_spare());
        }
        instances
    }

    /// One status row per live server, by name. A spare without a session is omitted if a view has the server.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let (views, draining) = self.open_views_and_draining();
        let owned: Vec<Server> = views.iter().flat_map(|view| view.own().to_vec()).collect();
        let names: BTreeSet<&ServerName> = owned.iter().map(Server::name).collect();
        let is_shown = |server: &&Server| {
            let is_idle_spare =
                matches!(server.phase(), Phase::Idle | Phase::Disabled | Phase::Closed) && server.is_spare();
            !is_idle_spare || !names.contains(server.name())
        };
        let configured = self.configured();
        let shown = configured.iter().filter(is_shown);
        let mut rows: Vec<_> = shown.chain(&owned).chain(&draining).map(Server::status).collect();
        // Stable: shared servers and spares stay before view instances, and those before draining servers.
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    /// Opens a view with its own instance of each session-scoped server. Those that start eagerly are started.
    pub(super) fn open_view(
        &self,
        name: Option<Arc<str>>,
        roots: Option<&[Root]>,
        host: Option<&HostHandle>,
        brought: Option<Server>,
    ) -> Arc<ViewInstances> {
        let number = self.opened_views.fetch_add(1, Ordering::Relaxed) + 1;
        let tag = ViewTag {
            name: name.unwrap_or_else(|| format!("view-{number}").into()),
            number,
            revision: Arc::new(AtomicU64::new(1)),
        };
        if let Some(server) = &brought {
            server.belong_to(&tag);
        }
        let view = Arc::new(ViewInstances::new(tag, roots, host, brought));
        let mut state = self.lock();
        if !self.is_closing() {
            let spares = self.configured();
            let spares = spares.iter().filter(|server| server.is_spare());
            view.replace_own(spares.map(|spare| self.instance_for(&view, spare)).collect());
        }
        state.views.insert(number, Arc::downgrade(&view));
        drop(state);
        for server in view.own().iter().filter(|server| server.starts_automatically()) {
            server.start();
        }
        view
    }

    /// Gives a view its own instance: the spare itself if possible, which a new spare then replaces. The caller holds the state lock.
    fn instance_for(&self, view: &ViewInstances, spare: &Server) -> Server {
        let copy = match (&view.roots, &view.host) {
            (roots, host) if view.needs_fresh() => {
                let copy = spare.fresh_for(host.as_ref());
                if let Some(roots) = roots {
                    copy.set_roots(roots);
                }
                copy
            }
            _ => {
                let next = spare.fresh();
                if spare.was_listed() && !matches!(spare.phase(), Phase::Down(_)) {
                    next.mark_listed();
                }
                self.swap_configured(spare.name(), Some(next));
                // A failed spare is replaced, because a fresh start shows the current state of the server.
                match spare.phase() {
                    Phase::Down(_) if !spare.is_refused() => spare.fresh(),
                    _ => spare.clone(),
                }
            }
        };
        copy.belong_to(&view.tag);
        copy
    }

    /// Puts a server on the board in place of the one of its name, and gives views new instances if it is session-scoped. All servers that it
    /// replaces are [retired](Retirement).
    pub(crate) fn put(self: &Arc<Self>, server: &Server) -> Retirement {
        self.put_with(server, &ViewReplacements::default())
    }

    /// Like [`Registry::put`], with replacements that were prepared for some views.
    pub(crate) fn put_with(self: &Arc<Self>, server: &Server, replacements: &ViewReplacements) -> Retirement {
        let mut state = self.lock();
        if self.is_closing() {
            drop(server.set_availability(Availability::Closed));
        }
        let views = open_views(&state);
        let name = server.name().clone();
        let is_spare = server.is_spare();
        let old = self.swap_configured(&name, Some(server.clone()));
        let mut displaced = Vec::new();
        for view in &views {
            let own = view.own();
            let (of_name, mut kept): (Vec<_>, Vec<_>) = own.iter().cloned().partition(|own| *own.name() == name);
            if let Some(ready) = replacements.0.get(&view.tag.number) {
                kept.push(ready.clone());
            } else if is_spare && let Some(spare) = self.get(&name) {
                kept.push(self.instance_for(view, &spare));
            }
            let next = kept.iter().find(|own| *own.name() == name);
            for own in &of_name {
                own.hand_over_to(Some(next.unwrap_or(server)));
            }
            displaced.extend(of_name);
            view.replace_own(kept);
        }
        if let Some(old) = &old {
            // A shared server has no successor if its replacement is a spare: view instances are private.
            old.hand_over_to(Some(server).filter(|_| !is_spare));
        }
        server.unmute();
        displaced.extend(old);
        state.draining.extend_from_slice(&displaced);
        drop(state);
        self.bump_revision();
        self.retire(displaced)
    }

    /// Creates replacements for the views whose own instance of the server is ready, to be started before they are used: the candidate itself
    /// for the first view, fresh instances for the others. Empty for a shared server.
    pub(crate) fn prepare_replacements(&self, candidate: &Server) -> ViewReplacements {
        if !candidate.is_spare() {
            return ViewReplacements::default();
        }
        let (views, _) = self.open_views_and_draining();
        let mut replacements = BTreeMap::new();
        let mut first = Some(candidate.clone());
        for view in views {
            if !view.get(candidate.name()).is_some_and(|own| own.is_ready()) {
                continue;
            }
            let server = match (&view.roots, first.take_if(|_| !view.needs_fresh())) {
                (_, Some(candidate)) => candidate,
                (roots, None) => {
                    let copy = candidate.fresh_for(view.host.as_ref());
                    copy.mute();
                    if let Some(roots) = roots {
                        copy.set_roots(roots);
                    }
                    copy
                }
            };
            server.belong_to(&view.tag);
            replacements.insert(view.tag.number, server);
        }
        ViewReplacements(replacements)
    }

    /// Removes a server and its view instances. All of them are [retired](Retirement).
    pub(crate) fn remove(self: &Arc<Self>, name: &ServerName) -> Retirement {
        let mut state = self.lock();
        let views = open_views(&state);
        let mut displaced: Vec<Server> = self.swap_configured(name, None).into_iter().collect();
        for view in &views {
            let own = view.own();
            let (of_name, kept): (Vec<_>, Vec<_>) = own.iter().cloned().partition(|own| own.name() == name);
            displaced.extend(of_name);
            view.replace_own(kept);
        }
        for server in &displaced {
            server.hand_over_to(None);
        }
        state.draining.extend_from_slice(&displaced);
        drop(state);
        self.bump_revision();
        self.retire(displaced)
    }

    fn swap_configured(&self, name: &ServerName, new: Option<Server>) -> Option<Server> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let (mut old, mut kept): (Vec<_>, Vec<_>) = servers.iter().cloned().partition(|server| server.name() == name);
        kept.extend(new);
        *servers = sorted(kept);
        old.pop()
    }

    /// Closes removed servers, each in its own task, which continues if the caller is cancelled.
    fn retire(self: &Arc<Self>, servers: Vec<Server>) -> Retirement {
        let mut retirement = Retirement {
            count: servers.len(),
            idle: Vec::new(),
        };
        for server in servers {
            // Only a ready session can have calls in flight; calls that wait for a start go to the successor.
            let has_calls = server.is_ready() && server.busy() > 0;
            let limit = server.config().limits.call_total;
            let registry = Arc::downgrade(self);
            let closing = self.tasks.spawn(async move {
                match has_calls || server.is_ready() {
                    true => server.drain(Deadline::within(limit)).await,
                    false => server.close().await,
                }
                if let Some(registry) = registry.upgrade() {
                    registry.lock().draining.retain(|other| !other.is(&server));
                }
            });
            if !has_calls {
                retirement.idle.push(closing);
            }
        }
        retirement
    }

    /// Closes every server and waits until all are closed. Call [`Registry::close`] first, so that none is added meanwhile.
    pub(crate) async fn close_servers(&self) {
        join_all(self.all_servers().iter().map(Server::close)).await;
        self.tasks.wait().await;
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Makes all views rebuild their snapshots.
    pub(crate) fn bump_revision(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// Removes a view and returns its servers. If it was the last view, required spares are started, so that the servers stay ready.
    pub(super) fn forget_view(&self, view: &ViewInstances) -> ForgottenView {
        let mut state = self.lock();
        // Taken before the view is removed, so that a shutdown sees either the view or the token.
        let token = self.tasks.token();
        // A closed view is removed once more when its last handle is dropped.
        let was_open = state.views.remove(&view.tag.number).is_some();
        let was_last = was_open && state.views.is_empty();
        let servers = view.all();
        view.replace_own(Vec::new());
        drop(state);
        // While a view is open, it has its own instance of every session-scoped server.
        if was_last && !self.is_closing() {
            for spare in self.configured().iter().filter(|server| server.is_spare()) {
                if spare.config().required && spare.starts_automatically() {
                    if servers.iter().any(|own| own.name() == spare.name() && own.is_ready()) {
                        spare.mark_listed();
                    }
                    spare.start();
                }
            }
        }
        ForgottenView { servers, _token: token }
    }

    /// How many views are open.
    #[cfg(test)]
    pub(crate) fn open_views(&self) -> usize {
        self.lock().views.len()
    }

    fn open_views_and_draining(&self) -> (Vec<Arc<ViewInstances>>, Vec<Server>) {
        let state = self.lock();
        (open_views(&state), state.draining.clone())
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_views(state: &RegistryState) -> Vec<Arc<ViewInstances>> {
    state.views.values().filter_map(Weak::upgrade).collect()
}

/// The servers of a view that was removed. Shutdown waits until this is dropped, which closes them.
pub(super) struct ForgottenView {
    pub(super) servers: Vec<Server>,
    /// Released after the servers, because fields are dropped in order.
    _token: TaskTrackerToken,
}

/// Servers that are started before they replace others. Shutdown closes them too.
pub(crate) struct Candidates {
    registry: Arc<Registry>,
    candidates: Vec<Server>,
}

impl Candidates {
    /// Closes the candidates, because they are not used after all.
    pub(crate) async fn close(&self) {
        join_all(self.candidates.iter().map(Server::close)).await;
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        let is_ours = |server: &Server| self.candidates.iter().any(|candidate| candidate.is(server));
        self.registry.lock().candidates.retain(|server| !is_ours(server));
    }
}

/// Replacements for view instances, by view number.
#[derive(Debug, Default)]
pub(crate) struct ViewReplacements(BTreeMap<u64, Server>);

impl ViewReplacements {
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.0.values()
    }
}
