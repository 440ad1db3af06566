//! The registry of a board: every live server, whether all views share it, one view owns it, or it only ends its last calls.
//!
//! A server whose scope is `session` stands here as a *spare*: the next view takes it, with the session that it may have already, and a new
//! spare takes its place. Status, readiness, drain, shutdown and every run-time command are derived from this registry, so that
//! none of them can miss a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::{Availability, DetachedConnections, Phase, Server, Shared, membership::ViewTag};
use crate::{
    deadline::Deadline, event::EventSender, metrics::BoardCounters, name::ServerName, session::Root,
    status::ServerStatus,
};

/// Every live server of one board.
#[derive(Debug)]
pub(crate) struct Registry {
    /// The shared servers and the spares, in order of their names.
    servers: RwLock<Arc<[Server]>>,
    /// Lock order: `state` before `servers`.
    state: Mutex<State>,
    opened_views: AtomicU64,
    /// Raised whenever a server is added, removed or changed, or what a shared server offers may have changed.
    revision: Arc<AtomicU64>,
    /// Set once, when the board takes no more calls.
    is_closing: AtomicBool,
    /// Where events are rung.
    events: EventSender,
    /// The counters of the board.
    tallies: Arc<BoardCounters>,
    /// The tasks that wait for the last calls of servers which have left the board.
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    views: BTreeMap<u64, Weak<ViewServers>>,
    /// Servers that are off the board and still have calls.
    draining: Vec<Server>,
    /// Servers that are started before they take the place of others.
    candidates: Vec<Server>,
}

/// The servers of one view that no other view uses. They end with it.
#[derive(Debug)]
pub(crate) struct ViewServers {
    tag: ViewTag,
    /// The roots of its servers, instead of those of their config.
    roots: Option<Vec<Root>>,
    /// The tools that it brings along.
    brought: Option<Server>,
    /// Its copies of the spares, in order of their names.
    own: RwLock<Arc<[Server]>>,
    registry: Arc<Registry>,
}

impl Registry {
    pub(crate) fn new(servers: Vec<Server>, shared: &Shared) -> Self {
        servers.iter().for_each(Server::unmute);
        let tasks = TaskTracker::new();
        // More may be spawned; it only means that their end can be waited for.
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

    /// Takes no more calls from now on, and starts no more servers.
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

    /// The shared servers and the spares at this moment, one for each configured server.
    pub(crate) fn configured(&self) -> Arc<[Server]> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, name: &ServerName) -> Option<Server> {
        self.configured().iter().find(|server| server.name() == name).cloned()
    }

    /// Every live server: shared ones, spares, those of views, and those that only end their calls.
    pub(crate) fn every_server(&self) -> Vec<Server> {
        // Dropped after the lock, because the last handle of a view takes it.
        let views: Vec<_>;
        let state = self.lock();
        views = open_views(&state);
        let mut servers = self.configured().to_vec();
        for view in &views {
            servers.extend(view.all());
        }
        servers.extend_from_slice(&state.draining);
        servers.extend_from_slice(&state.candidates);
        servers
    }

    /// Changes the server of that name and the copies of it that views have, while no view is opened. Whether there is such a server, and what
    /// must be closed because of the change.
    pub(crate) fn change(
        &self,
        name: &ServerName,
        change: impl Fn(&Server) -> DetachedConnections,
    ) -> (bool, Vec<DetachedConnections>) {
        // Dropped after the lock, because the last handle of a view takes it.
        let views: Vec<_>;
        let state = self.lock();
        views = open_views(&state);
        let of_views = views.iter().filter_map(|view| view.get(name));
        let instances: Vec<Server> = self.get(name).into_iter().chain(of_views).collect();
        (!instances.is_empty(), instances.iter().map(change).collect())
    }

    /// Closes what is off the board and has calls of a server of that name under way.
    pub(crate) async fn close_draining(&self, name: &ServerName) {
        let mut draining = self.lock().draining.clone();
        draining.retain(|server| server.name() == name);
        join_all(draining.iter().map(Server::close)).await;
    }

    /// Counts servers among those that shutdown ends, until what this returns is dropped.
    pub(crate) fn expect(self: &Arc<Self>, candidates: Vec<Server>) -> Expected {
        self.lock().candidates.extend_from_slice(&candidates);
        Expected {
            registry: self.clone(),
            candidates,
        }
    }

    /// The server of that name, the copies of it that views have, or nothing. The spare comes first.
    pub(crate) fn instances(&self, name: &ServerName) -> Vec<Server> {
        let of_views = self.views_and_draining().0;
        let of_views = of_views.iter().filter_map(|view| view.get(name));
        self.get(name).into_iter().chain(of_views).collect()
    }

    /// Those of the instances that are in use: the copies of views, or without views the server itself.
    pub(crate) fn instances_in_use(&self, name: &ServerName) -> Vec<Server> {
        let mut instances = self.instances(name);
        if instances.len() > 1 {
            instances.retain(|server| !server.is_spare());
        }
        instances
    }

    /// One row per live server, by name. A spare without a session is left out where views have the server.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let (views, draining) = self.views_and_draining();
        let owned: Vec<Server> = views.iter().flat_map(|view| view.own().to_vec()).collect();
        let names: BTreeSet<&ServerName> = owned.iter().map(Server::name).collect();
        let is_shown = |server: &&Server| {
            let rests = matches!(server.phase(), Phase::Idle | Phase::Disabled | Phase::Closed) && server.is_spare();
            !rests || !names.contains(server.name())
        };
        let configured = self.configured();
        let shown = configured.iter().filter(is_shown);
        let mut rows: Vec<_> = shown.chain(&owned).chain(&draining).map(Server::status).collect();
        // Stable: shared servers and spares stay before the copies of views, and those before what is draining.
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    /// Opens a view and gives it its own servers. Those that start eagerly are started.
    pub(crate) fn open_view(
        self: &Arc<Self>,
        name: Option<Arc<str>>,
        roots: Option<&[Root]>,
        brought: Option<Server>,
    ) -> Arc<ViewServers> {
        let number = self.opened_views.fetch_add(1, Ordering::Relaxed) + 1;
        let tag = ViewTag {
            name: name.unwrap_or_else(|| format!("view-{number}").into()),
            number,
            revision: Arc::new(AtomicU64::new(1)),
        };
        if let Some(server) = &brought {
            server.belong_to(&tag);
        }
        let view = Arc::new(ViewServers {
            tag,
            roots: roots.map(<[Root]>::to_vec),
            brought,
            own: RwLock::default(),
            registry: self.clone(),
        });
        let mut state = self.lock();
        if !self.is_closing() {
            let spares = self.configured();
            let spares = spares.iter().filter(|server| server.is_spare());
            view.replace_own(spares.map(|spare| self.copy_for(&view, spare)).collect());
        }
        state.views.insert(number, Arc::downgrade(&view));
        drop(state);
        for server in view.own().iter().filter(|server| server.starts_unasked()) {
            server.start();
        }
        view
    }

    /// A server of its own for a view: mostly the spare itself, in whose place a new one is put. Called with the state locked.
    fn copy_for(&self, view: &ViewServers, spare: &Server) -> Server {
        let copy = match &view.roots {
            Some(roots) => {
                let copy = spare.fresh();
                copy.set_roots(roots);
                copy
            }
            None => {
                let next = spare.fresh();
                if spare.was_listed() && !matches!(spare.phase(), Phase::Down(_)) {
                    next.vouch();
                }
                self.exchange(spare.name(), Some(next));
                // A spare that has failed ends here: the view's own start tells how the server is now.
                match spare.phase() {
                    Phase::Down(_) if !spare.is_refused() => spare.fresh(),
                    _ => spare.clone(),
                }
            }
        };
        copy.belong_to(&view.tag);
        copy
    }

    /// Puts a server on the board, in the place of the one that has its name, and gives views copies where each has its own. All servers that it
    /// displaces end, as [`Departure`] says.
    pub(crate) fn put(self: &Arc<Self>, server: &Server) -> Departure {
        self.put_prepared(server, &Prepared::default())
    }

    /// The same with servers for some views that are ready already.
    pub(crate) fn put_prepared(self: &Arc<Self>, server: &Server, prepared: &Prepared) -> Departure {
        // Dropped after the lock, because the last handle of a view takes it.
        let views: Vec<_>;
        let mut state = self.lock();
        if self.is_closing() {
            drop(server.stand(Availability::Closed));
        }
        views = open_views(&state);
        let name = server.name().clone();
        let is_spare = server.is_spare();
        let old = self.exchange(&name, Some(server.clone()));
        let mut displaced = Vec::new();
        for view in &views {
            let own = view.own();
            let (of_name, mut kept): (Vec<_>, Vec<_>) = own.iter().cloned().partition(|own| *own.name() == name);
            if let Some(ready) = prepared.0.get(&view.tag.number) {
                kept.push(ready.clone());
            } else if is_spare && let Some(spare) = self.get(&name) {
                kept.push(self.copy_for(view, &spare));
            }
            let next = kept.iter().find(|own| *own.name() == name);
            for own in &of_name {
                own.leave_to(Some(next.unwrap_or(server)));
            }
            displaced.extend(of_name);
            view.replace_own(kept);
        }
        if let Some(old) = &old {
            // A shared server has no successor among servers of views: those are private.
            old.leave_to(Some(server).filter(|_| !is_spare));
        }
        server.unmute();
        displaced.extend(old);
        state.draining.extend_from_slice(&displaced);
        drop(state);
        self.touch();
        self.retire(displaced)
    }

    /// Servers for the views whose own server of that name works, to be started before they take its place: the candidate itself for the first
    /// of them, copies of it for the others. None where all views share the server.
    pub(crate) fn prepare(&self, candidate: &Server) -> Prepared {
        if !candidate.is_spare() {
            return Prepared::default();
        }
        let (views, _) = self.views_and_draining();
        let mut prepared = BTreeMap::new();
        let mut first = Some(candidate.clone());
        for view in views {
            if !view.get(candidate.name()).is_some_and(|own| own.is_ready()) {
                continue;
            }
            let server = match (&view.roots, first.take_if(|_| view.roots.is_none())) {
                (_, Some(candidate)) => candidate,
                (roots, None) => {
                    let copy = candidate.fresh();
                    copy.mute();
                    if let Some(roots) = roots {
                        copy.set_roots(roots);
                    }
                    copy
                }
            };
            server.belong_to(&view.tag);
            prepared.insert(view.tag.number, server);
        }
        Prepared(prepared)
    }

    /// Takes a server off the board, and the copies of it off the views. All of them end, as [`Departure`] says.
    pub(crate) fn take(self: &Arc<Self>, name: &ServerName) -> Departure {
        // Dropped after the lock, because the last handle of a view takes it.
        let views: Vec<_>;
        let mut state = self.lock();
        views = open_views(&state);
        let mut displaced: Vec<Server> = self.exchange(name, None).into_iter().collect();
        for view in &views {
            let own = view.own();
            let (of_name, kept): (Vec<_>, Vec<_>) = own.iter().cloned().partition(|own| own.name() == name);
            displaced.extend(of_name);
            view.replace_own(kept);
        }
        for server in &displaced {
            server.leave_to(None);
        }
        state.draining.extend_from_slice(&displaced);
        drop(state);
        self.touch();
        self.retire(displaced)
    }

    fn exchange(&self, name: &ServerName, new: Option<Server>) -> Option<Server> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let (mut old, mut kept): (Vec<_>, Vec<_>) = servers.iter().cloned().partition(|server| server.name() == name);
        kept.extend(new);
        *servers = sorted(kept);
        old.pop()
    }

    /// Ends servers that have left the board, each in a task of its own, which goes on when the caller gives up.
    fn retire(self: &Arc<Self>, servers: Vec<Server>) -> Departure {
        let mut departure = Departure {
            count: servers.len(),
            idle: Vec::new(),
        };
        for server in servers {
            // Only a session that is ready can have calls; those that wait for a start go to the successor.
            let has_calls = server.is_ready() && server.busy() > 0;
            let limit = server.config().limits.call_total;
            let registry = Arc::downgrade(self);
            let ending = self.tasks.spawn(async move {
                match has_calls || server.is_ready() {
                    true => server.drain(Deadline::within(limit)).await,
                    false => server.close().await,
                }
                if let Some(registry) = registry.upgrade() {
                    registry.lock().draining.retain(|other| !other.is(&server));
                }
            });
            if !has_calls {
                departure.idle.push(ending);
            }
        }
        departure
    }

    /// Closes every server and waits until they are closed. [`Registry::close`] comes first, so that none is added meanwhile.
    pub(crate) async fn close_servers(&self) {
        join_all(self.every_server().iter().map(Server::close)).await;
        self.tasks.wait().await;
    }

    /// Something has changed: what views have derived from shared servers must be derived again.
    pub(crate) fn touch(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// Forgets a view and gives back the servers that it had. A required server must not be without a session because its last view left.
    fn forget(&self, view: &ViewServers) -> Vec<Server> {
        // Dropped after the lock, because the last handle of a view takes it.
        let other: Option<_>;
        let mut state = self.lock();
        // A view that was closed is forgotten once more when its last call drops it.
        let was_open = state.views.remove(&view.tag.number).is_some();
        other = state.views.values().find_map(Weak::upgrade);
        let servers = view.all();
        view.replace_own(Vec::new());
        drop(state);
        // Every open view has a copy of each spare.
        if was_open && other.is_none() && !self.is_closing() {
            for spare in self.configured().iter().filter(|server| server.is_spare()) {
                if spare.config().required && spare.starts_unasked() {
                    if servers.iter().any(|own| own.name() == spare.name() && own.is_ready()) {
                        spare.vouch();
                    }
                    spare.start();
                }
            }
        }
        servers
    }

    /// How many views are open.
    #[cfg(test)]
    pub(crate) fn open_views(&self) -> usize {
        self.lock().views.len()
    }

    fn views_and_draining(&self) -> (Vec<Arc<ViewServers>>, Vec<Server>) {
        let state = self.lock();
        (open_views(&state), state.draining.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_views(state: &State) -> Vec<Arc<ViewServers>> {
    state.views.values().filter_map(Weak::upgrade).collect()
}

impl ViewServers {
    /// Its copies of the spares.
    fn own(&self) -> Arc<[Server]> {
        self.own.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_own(&self, own: Vec<Server>) {
        *self.own.write().unwrap_or_else(PoisonError::into_inner) = sorted(own);
        self.tag.revision.fetch_add(1, Ordering::Release);
    }

    fn get(&self, name: &ServerName) -> Option<Server> {
        self.own().iter().find(|server| server.name() == name).cloned()
    }

    /// All servers that end with the view.
    fn all(&self) -> Vec<Server> {
        self.brought.iter().chain(&*self.own()).cloned().collect()
    }

    /// All servers that the view can use at this moment, in order of their names. The tools that it brings along come first.
    pub(crate) fn usable(&self) -> Vec<Server> {
        let brought = self.brought.as_ref();
        let is_other = |server: &&Server| brought.is_none_or(|brought| brought.name() != server.name());
        let (configured, own) = (self.registry.configured(), self.own());
        let shared = configured.iter().filter(|server| !server.is_spare());
        let mut servers: Vec<_> = shared.chain(&*own).filter(is_other).cloned().collect();
        servers.sort_by(|a, b| a.name().cmp(b.name()));
        servers.splice(0..0, brought.cloned());
        servers
    }

    /// Changes whenever a server of the view, or what it offers, may have changed.
    pub(crate) fn revision(&self) -> (u64, u64) {
        let board = self.registry.revision.load(Ordering::Acquire);
        (board, self.tag.revision.load(Ordering::Acquire))
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Ends the servers of the view and waits until they are closed.
    pub(crate) async fn close(&self) {
        let servers = self.registry.forget(self);
        join_all(servers.iter().map(Server::close)).await;
    }
}

impl Drop for ViewServers {
    fn drop(&mut self) {
        self.registry.forget(self);
    }
}

/// Servers that are being started before they take the place of others.
pub(crate) struct Expected {
    registry: Arc<Registry>,
    candidates: Vec<Server>,
}

impl Expected {
    /// Closes them, because they are not used after all.
    pub(crate) async fn close(&self) {
        join_all(self.candidates.iter().map(Server::close)).await;
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let is_ours = |server: &Server| self.candidates.iter().any(|candidate| candidate.is(server));
        self.registry.lock().candidates.retain(|server| !is_ours(server));
    }
}

/// Servers for views that are not theirs yet, by the numbers of the views.
#[derive(Debug, Default)]
pub(crate) struct Prepared(BTreeMap<u64, Server>);

impl Prepared {
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.0.values()
    }
}

/// The end of servers that have left the board. Those with calls under way take no more and are closed when these have ended, at the latest when
/// no call of theirs may go on. The others are closed at once, and [`Departure::closed`] waits for them.
#[must_use = "servers without calls should have ended before what takes their place begins"]
pub(crate) struct Departure {
    count: usize,
    idle: Vec<JoinHandle<()>>,
}

impl Departure {
    /// Whether no server has left.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Waits until the servers without calls are closed.
    pub(crate) async fn closed(self) {
        join_all(self.idle).await;
    }
}

fn sorted(mut servers: Vec<Server>) -> Arc<[Server]> {
    servers.sort_by(|a, b| a.name().cmp(b.name()));
    servers.into()
}
