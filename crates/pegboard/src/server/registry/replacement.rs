//! Replaces and removes servers of the board, with the instances of views and principals.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;

use super::board_registry::{Registry, owners};
use crate::server::{
    availability::Availability,
    retirement::Retirement,
    server_handle::Server,
    view_identity::{ServerKind, kind},
    view_instances::{ViewInstances, sort},
};
use pegboard_base::{deadline::Deadline, name::ServerName};

impl Registry {
    /// Registers servers as candidates, so that shutdown closes them too, until the returned guard is dropped.
    pub(crate) fn track(self: &Arc<Self>, candidates: Vec<Server>) -> Candidates {
        self.state.lock().candidates.extend_from_slice(&candidates);
        Candidates {
            registry: self.clone(),
            candidates,
        }
    }

    /// Puts a server on the board in place of the one of its name, and gives new instances to the views and principals that have their own. All
    /// servers that it replaces are [retired](Retirement). One that [runs alone](Server::runs_alone) is started after they have ended.
    pub(crate) fn put(self: &Arc<Self>, server: &Server) -> Retirement {
        self.put_with(server, &ViewReplacements::default())
    }

    /// Like [`Registry::put`], with replacements that were prepared for some views.
    pub(crate) fn put_with(self: &Arc<Self>, server: &Server, replacements: &ViewReplacements) -> Retirement {
        // Runs the program's code, so before the state is locked.
        let covering = self.covering_owners(server);
        let mut state = self.state.lock();
        if self.is_closing() {
            drop(server.connections().set(Availability::Closed));
        }
        let is_per_view = kind(server) == ServerKind::PerView;
        // Asked now, because the first view may take the spare over.
        let is_spare = server.is_spare();
        let (private, others): (Vec<_>, Vec<_>) = owners(&state)
            .into_iter()
            .partition(|owner| owner.is_private() || is_per_view);
        let mut displaced = Vec::new();
        // Before the server is on the board, so that no view sees it there that has its own instance.
        for owner in &private {
            // An owner that was not asked gets an instance of its own, to be safe.
            let is_covered = covering.get(&owner.tag.number).copied().unwrap_or(true);
            let next = owner.owns(server, is_covered).then(|| self.instance_for(owner, server));
            displaced.extend(replace_instance(owner, server.name(), next, None));
        }
        let old = self.swap_configured(server.name(), Some(server.clone()));
        for owner in &others {
            let next = match replacements.0.get(&owner.tag.number) {
                Some(ready) => Some(ready.clone()),
                None => self
                    .get(server.name())
                    .filter(|spare| is_spare && owner.owns(spare, false))
                    .map(|spare| self.instance_for(owner, &spare)),
            };
            displaced.extend(replace_instance(owner, server.name(), next, Some(server)));
        }
        if let Some(old) = &old {
            // A shared server has no successor if its replacement is a spare, because view instances are private, or if a view that used it
            // must not use the replacement.
            let is_for_all = private.is_empty() || kind(old) == kind(server);
            old.hand_over_to(Some(server).filter(|_| !is_spare && is_for_all));
        }
        server.unmute();
        displaced.extend(old);
        state.draining.extend_from_slice(&displaced);
        if server.runs_alone() {
            let is_before = |old: &&Server| old.name() == server.name() && old.runs_alone();
            state
                .draining
                .iter()
                .filter(is_before)
                .for_each(|old| server.connections().start_after(old.succession().end_token()));
        }
        drop(state);
        self.bump_revision();
        self.retire(displaced)
    }

    /// The owners with credentials, by number, and whether these cover the process of a server.
    fn covering_owners(&self, server: &Server) -> BTreeMap<u64, bool> {
        let (owners, _) = self.owners_and_draining();
        let private = owners.iter().filter(|owner| owner.is_private());
        private
            .map(|owner| (owner.tag.number, owner.covers_process(server)))
            .collect()
    }

    /// Creates replacements for the views whose own instance of the server is ready, to be started before they are used: the candidate itself
    /// for the first view, fresh instances for the others. Empty for a shared server.
    pub(crate) fn prepare_replacements(&self, candidate: &Server) -> ViewReplacements {
        if !candidate.is_spare() {
            return ViewReplacements::default();
        }
        let (mut views, _) = self.owners_and_draining();
        // An owner with credentials of its own connects when it needs the server: its credentials must not decide about a change for all.
        views.retain(|view| !view.is_private());
        let mut replacements = BTreeMap::new();
        let mut first = Some(candidate.clone());
        for view in views {
            if !view.get(candidate.name()).is_some_and(|own| own.is_ready()) {
                continue;
            }
            let server = match (&view.roots, first.take_if(|_| !view.needs_fresh())) {
                (_, Some(candidate)) => candidate,
                (roots, None) => {
                    let copy = candidate.new_instance(view.host.as_ref());
                    copy.mute();
                    if let Some(roots) = roots {
                        copy.connections().set_roots(roots);
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
        let mut state = self.state.lock();
        let views = owners(&state);
        let mut displaced: Vec<Server> = self.swap_configured(name, None).into_iter().collect();
        for view in &views {
            let own = view.own_instances();
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

    pub(super) fn swap_configured(&self, name: &ServerName, new: Option<Server>) -> Option<Server> {
        let mut servers = self.servers.write();
        let (mut old, mut kept): (Vec<_>, Vec<_>) = servers.iter().cloned().partition(|server| server.name() == name);
        kept.extend(new);
        *servers = sort(kept);
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
            let has_calls = server.is_ready() && server.count_calls() > 0;
            let limit = server.config().limits.call_total_timeout;
            let registry = Arc::downgrade(self);
            let closing = self.tasks.spawn(async move {
                match has_calls || server.is_ready() {
                    true => server.drain(Deadline::within(limit)).await,
                    false => server.close().await,
                }
                server.succession().end_token().cancel();
                if let Some(registry) = registry.upgrade() {
                    registry.state.lock().draining.retain(|other| !other.is(&server));
                }
            });
            if !has_calls {
                retirement.idle.push(closing);
            }
        }
        retirement
    }
}

/// Replaces an owner's instance of a server. Calls that wait for the old one go to `next`, or to `shared` if there is none. Returns the old
/// instances.
fn replace_instance(
    owner: &ViewInstances,
    name: &ServerName,
    next: Option<Server>,
    shared: Option<&Server>,
) -> Vec<Server> {
    let own = owner.own_instances();
    let (old, mut kept): (Vec<_>, Vec<_>) = own.iter().cloned().partition(|own| own.name() == name);
    if old.is_empty() && next.is_none() {
        return old;
    }
    for own in &old {
        own.hand_over_to(next.as_ref().or(shared));
    }
    kept.extend(next);
    owner.replace_own(kept);
    old
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
        self.registry.state.lock().candidates.retain(|server| !is_ours(server));
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
