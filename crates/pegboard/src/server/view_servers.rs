//! The servers that one view can use: those that it owns and the shared ones of the board.

use std::sync::{Arc, atomic::Ordering};

use futures_util::future::join_all;

use super::{registry::Registry, server_handle::Server, view_instances::ViewInstances};
use crate::session::{HostHandle, Root};

/// The servers that one view can use. Dropping this ends the servers that the view owns.
#[derive(Debug)]
pub(crate) struct ViewServers {
    instances: Arc<ViewInstances>,
    registry: Arc<Registry>,
}

impl ViewServers {
    /// Opens a view. It gets its own instance of each session-scoped server; those that start eagerly are started.
    pub(crate) fn open(
        registry: &Arc<Registry>,
        name: Option<Arc<str>>,
        roots: Option<&[Root]>,
        host: Option<&HostHandle>,
        brought: Option<Server>,
    ) -> Arc<Self> {
        Arc::new(Self {
            instances: registry.open_view(name, roots, host, brought),
            registry: registry.clone(),
        })
    }

    /// All servers that the view can use now, ordered by name. The in-process server of the view's own tools comes first.
    pub(crate) fn usable(&self) -> Vec<Server> {
        let brought = self.instances.brought.as_ref();
        let is_other = |server: &&Server| brought.is_none_or(|brought| brought.name() != server.name());
        let (configured, own) = (self.registry.configured(), self.instances.own());
        let shared = configured.iter().filter(|server| !server.is_spare());
        let mut servers: Vec<_> = shared.chain(&*own).filter(is_other).cloned().collect();
        servers.sort_by(|a, b| a.name().cmp(b.name()));
        servers.splice(0..0, brought.cloned());
        servers
    }

    /// The view's name in status rows.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.instances.tag.name
    }

    /// The revision of the board and that of the view. It changes whenever a server of the view, or its catalogue, may have changed.
    pub(crate) fn revision(&self) -> (u64, u64) {
        let view = &self.instances.tag.revision;
        (self.registry.revision(), view.load(Ordering::Acquire))
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Ends the servers that the view owns and waits until they are closed.
    pub(crate) async fn close(&self) {
        let view = self.registry.forget_view(&self.instances);
        join_all(view.servers.iter().map(Server::close)).await;
    }
}

impl Drop for ViewServers {
    fn drop(&mut self) {
        drop(self.registry.forget_view(&self.instances));
    }
}
