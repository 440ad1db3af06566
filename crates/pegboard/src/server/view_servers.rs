//! The servers that one view can use: those that it owns, those of its principal, and the shared ones of the board.

use std::{
    any::Any,
    sync::{Arc, atomic::Ordering},
};

use futures_util::future::join_all;

use super::{
    registry::{OpenedView, Registry},
    server_handle::Server,
    view_identity::{ServerKind, ViewIdentity, kind},
};
use pegboard_client::session::Root;

/// The servers that one view can use. Dropping this ends the servers that the view owns.
#[derive(Debug)]
pub(crate) struct ViewServers {
    name: Arc<str>,
    opened: OpenedView,
    registry: Arc<Registry>,
}

impl ViewServers {
    /// Opens a view. It gets its own instance of each session-scoped server; those that it shows and that start eagerly are started.
    pub(crate) fn open(
        registry: &Arc<Registry>,
        name: Option<Arc<str>>,
        identity: &ViewIdentity,
        roots: Option<&[Root]>,
        brought: Option<Server>,
    ) -> Arc<Self> {
        let (name, opened) = registry.open_view(name, identity, roots, brought);
        Arc::new(Self {
            name,
            opened,
            registry: registry.clone(),
        })
    }

    /// All servers that the view can use now, ordered by name. The in-process server of the view's own tools comes first.
    pub(crate) fn list_usable(&self) -> Vec<Server> {
        let view = &self.opened.view;
        let brought = view.brought.as_ref();
        let configured = self.registry.configured_servers();
        let of_principal = self
            .opened
            .principal
            .as_ref()
            .map(|principal| principal.own_instances());
        let own = view.own_instances();
        let own = || own.iter().chain(of_principal.as_deref().unwrap_or_default());
        let is_shared = |server: &&Server| match kind(server) {
            ServerKind::Session if view.is_catalog_only() => !own().any(|own| own.name() == server.name()),
            ServerKind::Session | ServerKind::PerView => false,
            // A server that this view must not share is missing from `own` only while it is added or removed.
            ServerKind::Remote if view.is_private() => false,
            ServerKind::Remote | ServerKind::Process | ServerKind::InProcess => {
                !own().any(|own| own.name() == server.name())
            }
        };
        let is_other = |server: &&Server| brought.is_none_or(|brought| brought.name() != server.name());
        let shared = configured.iter().filter(is_shared);
        let mut servers: Vec<_> = shared.chain(own()).filter(is_other).cloned().collect();
        servers.sort_by(|a, b| a.name().cmp(b.name()));
        servers.splice(0..0, brought.cloned());
        servers
    }

    /// The shared servers and the spares of the board, if the view uses no server besides them and must not leave any out.
    pub(crate) fn shared_only(&self) -> Option<Arc<[Server]>> {
        let is_shared = !self.opened.view.is_private() && self.opened.principal.is_none() && !self.has_own();
        is_shared.then(|| self.registry.configured_servers())
    }

    /// If the view uses only servers of its principal and of the board: their revisions.
    pub(crate) fn principal_only(&self) -> Option<(u64, u64)> {
        let principal = self.opened.principal.as_ref().filter(|_| !self.has_own())?;
        Some((self.registry.revision(), principal.tag.revision.load(Ordering::Acquire)))
    }

    /// What the views of the principal keep together with its servers; created when it is needed first. `None` if the principal has ended.
    pub(crate) fn principal_keepsake<T: Any + Default + Send + Sync>(&self) -> Option<Arc<T>> {
        self.opened.principal.as_ref()?.keepsake()
    }

    /// Whether the view has servers or tools that no other view has.
    fn has_own(&self) -> bool {
        self.opened.view.brought.is_some() || !self.opened.view.own_instances().is_empty()
    }

    /// The view's name in status rows.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The view's number, unique on the board.
    pub(crate) fn number(&self) -> u64 {
        self.opened.view.tag.number
    }

    /// The revision of the board and that of the view. It changes whenever a server of the view, or its catalogue, may have changed.
    pub(crate) fn revision(&self) -> (u64, u64) {
        let view = &self.opened.view.tag.revision;
        let principal = self.opened.principal.as_ref();
        let principal = principal.map_or(0, |principal| principal.tag.revision.load(Ordering::Acquire));
        // Both only grow, so their sum changes with either.
        (self.registry.revision(), view.load(Ordering::Acquire) + principal)
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Ends the servers that the view owns and waits until they are closed, and told that the session has ended. Those of its principal stay for
    /// a while.
    pub(crate) async fn close(&self) {
        let mut view = self.registry.forget_view(&self.opened);
        let (telling, others) = self.registry.end_sessions(std::mem::take(&mut view.servers));
        join_all(others.iter().map(Server::close)).await;
        if let Some(telling) = telling {
            let _ = telling.await;
        }
    }
}

impl Drop for ViewServers {
    fn drop(&mut self) {
        let mut view = self.registry.forget_view(&self.opened);
        drop(self.registry.end_sessions(std::mem::take(&mut view.servers)));
    }
}
