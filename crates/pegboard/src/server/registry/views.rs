//! Opens and closes views.

use std::sync::{Arc, Weak, atomic::Ordering};

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    board_registry::Registry,
    principals::{EndedPrincipal, PrincipalKey},
};
use crate::server::{
    phase::Phase,
    server_handle::Server,
    view_identity::{ServerKind, ViewIdentity, kind},
    view_instances::ViewInstances,
    view_tag::ViewTag,
};
use pegboard_base::name::ServerName;
use pegboard_client::session::Root;
use pegboard_config::Scope;

/// The servers of an open view.
#[derive(Debug)]
pub(in crate::server) struct OpenedView {
    /// Those that the view owns.
    pub(in crate::server) view: Arc<ViewInstances>,
    /// Those that it shares with the other views of its principal.
    pub(in crate::server) principal: Option<Arc<ViewInstances>>,
    key: Option<PrincipalKey>,
}

/// The servers of a view or principal that was removed. Shutdown waits until this is dropped, which closes them.
pub(in crate::server) struct ForgottenView {
    pub(in crate::server) servers: Vec<Server>,
    _of_principals: Vec<EndedPrincipal>,
    /// Released after the servers, because fields are dropped in order.
    _token: TaskTrackerToken,
}

impl Registry {
    /// Opens a view with its own instance of each session-scoped server. Those that it shows and that start eagerly are started. Returns its name and servers.
    pub(in crate::server) fn open_view(
        &self,
        name: Option<Arc<str>>,
        identity: &ViewIdentity,
        roots: Option<&[Root]>,
        brought: Option<Server>,
    ) -> (Arc<str>, OpenedView) {
        let number = self.opened_views.fetch_add(1, Ordering::Relaxed) + 1;
        let name = name.unwrap_or_else(|| format!("view-{number}").into());
        let tag = self.owner_tag(Some(name.clone()), identity);
        if let Some(server) = &brought {
            server.belong_to(&tag);
        }
        let asked = self.configured_servers();
        let mut covered = identity.covered_processes(&asked);
        let view = Arc::new(ViewInstances::for_view(tag, identity, roots, brought));
        let key = identity.principal.clone().map(|principal| PrincipalKey {
            principal,
            rights: identity.rights,
            credentials: identity.credentials_key.clone(),
        });
        // Dropped after the lock is released.
        let mut replaced = None;
        let mut state = self.state.lock();
        let mut principal = None;
        if !self.is_closing() {
            if identity.credentials.is_some() {
                covered.extend(self.servers_added_since(&asked));
            }
            view.replace_own(self.own_instances(&view, &covered));
            principal = key.as_ref().map(|key| {
                let make = || self.principal_instances(identity, &covered);
                let (instances, is_known) = state.principals.open(key, make);
                if is_known {
                    replaced = self.update_principal(&instances, identity, &covered);
                }
                instances
            });
        }
        state.views.insert(view.tag.number, Arc::downgrade(&view));
        drop(state);
        drop(replaced);
        // A connection with credentials starts when it is used.
        let starts = |server: &Server| server.config().policy.scope == Scope::Session && server.starts_automatically();
        let is_wanted = |server: &&Server| starts(server) && view.shows(server.name());
        for server in view.own_instances().iter().filter(is_wanted) {
            server.connections().start();
        }
        let key = key.filter(|_| principal.is_some());
        (name, OpenedView { view, principal, key })
    }

    /// The servers that were added after a provider was asked which ones it covers. They count as covered, to be safe.
    fn servers_added_since(&self, asked: &[Server]) -> Vec<ServerName> {
        let configured = self.configured_servers();
        let is_new = |server: &&Server| !asked.iter().any(|known| known.is(server));
        configured
            .iter()
            .filter(is_new)
            .map(|server| server.name().clone())
            .collect()
    }

    pub(super) fn owner_tag(&self, name: Option<Arc<str>>, identity: &ViewIdentity) -> ViewTag {
        let number = self.next_owner.fetch_add(1, Ordering::Relaxed);
        ViewTag::new(name, identity.principal.clone(), identity.rights, number)
    }

    /// Creates the instances of all servers that this owner has for itself. The caller holds the state lock.
    pub(super) fn own_instances(&self, owner: &ViewInstances, covered: &[ServerName]) -> Vec<Server> {
        let configured = self.configured_servers();
        let owned = configured
            .iter()
            .filter(|server| owner.owns(server, covered.contains(server.name())));
        owned.map(|server| self.instance_for(owner, server)).collect()
    }

    /// Creates an owner's instance of a configured server. A view without credentials takes over the spare of a server that it shows, which a
    /// new spare then replaces.
    /// The caller holds the state lock.
    pub(super) fn instance_for(&self, owner: &ViewInstances, configured: &Server) -> Server {
        let instance = match &owner.provider {
            Some(_) => configured.new_private_instance(owner),
            None if kind(configured) == ServerKind::PerView => configured.new_private_instance(owner),
            None if owner.needs_fresh() || !owner.shows(configured.name()) => {
                configured.new_instance(owner.host.as_ref())
            }
            None => self.take_spare(configured),
        };
        if let Some(roots) = &owner.roots {
            instance.connections().set_roots(roots);
        }
        instance.belong_to(&owner.tag);
        instance
    }

    fn take_spare(&self, spare: &Server) -> Server {
        let next = spare.new_instance(None);
        if spare.listing().was_listed() && !matches!(spare.phase(), Phase::Down(_)) {
            next.listing().mark_listed();
        }
        self.swap_configured(spare.name(), Some(next));
        // A failed spare is replaced, because a fresh start shows the current state of the server.
        match spare.phase() {
            Phase::Down(_) if !spare.connections().is_refused() => spare.new_instance(None),
            _ => spare.clone(),
        }
    }

    /// Removes a view and returns its servers. If it was the last view that shows a required server, the spare is started, so that the server
    /// stays ready. The servers of its principal are kept for a while.
    pub(in crate::server) fn forget_view(self: &Arc<Self>, opened: &OpenedView) -> ForgottenView {
        let view = &opened.view;
        let mut state = self.state.lock();
        // Taken before the view is removed, so that a shutdown sees either the view or the token.
        let token = self.tasks.token();
        // A closed view is removed once more when its last handle is dropped.
        let was_open = state.views.remove(&view.tag.number).is_some();
        // A view that only lists has no instances, so that the spares stand in for those of the others.
        let others = state.views.values().filter_map(Weak::upgrade);
        let others: Vec<_> = others.filter(|view| !view.is_catalog_only()).collect();
        let of_principals = match &opened.key {
            Some(key) if was_open => self.leave_principal(&mut state.principals, key),
            _ => Vec::new(),
        };
        let servers = view.all();
        view.replace_own(Vec::new());
        drop(state);
        if was_open && !self.is_closing() {
            self.start_required_spares(&servers, &others);
        }
        ForgottenView {
            servers,
            _of_principals: of_principals,
            _token: token,
        }
    }

    /// Ends the principals that have had no view for some time.
    pub(super) fn end_idle_principals(&self) -> ForgottenView {
        let mut state = self.state.lock();
        let token = self.tasks.token();
        let of_principals = state.principals.take_expired();
        drop(state);
        ForgottenView {
            servers: Vec::new(),
            _of_principals: of_principals,
            _token: token,
        }
    }

    /// Starts the required spares that no other view has an instance of. `servers` were those of the view that has ended.
    fn start_required_spares(&self, servers: &[Server], others: &[Arc<ViewInstances>]) {
        for spare in self.configured_servers().iter().filter(|server| server.is_spare()) {
            let is_alone = !others.iter().any(|view| view.shows(spare.name()));
            if is_alone && spare.config().required && spare.starts_automatically() {
                if servers.iter().any(|own| own.name() == spare.name() && own.is_ready()) {
                    spare.listing().mark_listed();
                }
                spare.connections().start();
            }
        }
    }
}
