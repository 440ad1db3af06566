//! The handle to one agent's view of the board.

use std::sync::{Arc, atomic::Ordering};

use super::{
    open_state::OpenState,
    shared_snapshots::SharedSnapshots,
    snapshot::{LatestSnapshot, Revision, Snapshot},
};
use crate::{
    call::{RouteTable, View},
    server::{Server, ViewServers},
};
use pegboard_base::sync::Mutex;
use pegboard_tools::{
    filter::Selection,
    outcome::{Failure, Kind},
};

/// One agent's view of the board. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Toolset {
    pub(super) view: Arc<View>,
    pub(super) open_state: Arc<OpenState>,
    pub(super) latest: Arc<LatestSnapshot>,
    /// The snapshots that all toolsets of the board share.
    pub(super) snapshots: Arc<SharedSnapshots>,
    /// Copies of this view with the selections of recent calls, the newest first.
    pub(super) selection_views: Arc<Mutex<Vec<SelectionView>>>,
    /// The servers that this view owns, and access to the shared ones. The last field, because fields are dropped in order: the snapshots above
    /// hold servers too, and shutdown waits for a dropped view only until its `ViewServers` are dropped.
    pub(super) servers: Arc<ViewServers>,
}

/// A view with the selection of a call.
type SelectionView = (Arc<Selection>, Toolset);

impl Toolset {
    pub(crate) fn new(servers: Arc<ViewServers>, view: View, snapshots: Arc<SharedSnapshots>) -> Self {
        Self {
            view: Arc::new(view.opened(
                servers.name().clone(),
                servers.number(),
                servers.registry().events().clone(),
                servers.registry().tallies().clone(),
            )),
            open_state: Arc::new(OpenState::new(servers.registry().tallies())),
            latest: Arc::default(),
            snapshots,
            selection_views: Arc::default(),
            servers,
        }
    }

    /// All servers of the view now. The in-process server of the view's own tools comes first.
    pub(super) fn servers(&self) -> Vec<Server> {
        self.servers.usable()
    }

    /// Whether the view or its board is closed, so that calls are refused.
    pub fn is_closed(&self) -> bool {
        self.open_state.has_ended() || self.servers.registry().is_closing()
    }

    /// Closes the view: it accepts no more calls, the servers that it owns are stopped, and its spilled outputs are removed, unless other
    /// toolsets of its principal may read them. Waits until that is done. All clones of the toolset close together.
    pub async fn close(&self) {
        self.open_state.end();
        self.view.is_closed.store(true, Ordering::Release);
        if let Some(memory) = &self.view.memory {
            memory.close().await;
        }
        self.servers.close().await;
    }

    /// Fails if the view or its board is closed, or if the view calls no tools.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        if self.servers.registry().is_closing() {
            let message = "the board is closing and takes no more calls. Go on without tools.";
            return Err(Failure::new(Kind::Unavailable, message));
        }
        if self.is_closed() {
            let message = "this view is closed and takes no more calls. Go on without tools.";
            return Err(Failure::new(Kind::Unavailable, message));
        }
        if self.view.catalog_only {
            let message = "this view only lists tools. Open another one to call them.";
            return Err(Failure::new(Kind::NotPermitted, message));
        }
        Ok(())
    }

    /// The revision of the view's servers. Snapshots of older revisions are rebuilt.
    #[cfg(test)]
    pub(crate) fn revision(&self) -> (u64, u64) {
        self.servers.revision()
    }

    /// Whether both toolsets use the same route table.
    #[cfg(test)]
    pub(crate) fn has_table_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table(), &other.table())
    }

    /// The route table of the current snapshot.
    pub(super) fn table(&self) -> Arc<RouteTable> {
        self.snapshot(|snapshot| snapshot.table.clone())
    }

    /// Reads the current snapshot.
    pub(super) fn snapshot<T>(&self, read: impl FnOnce(&Snapshot) -> T) -> T {
        let current = || self.servers.revision();
        self.latest.read(current, |revision| self.adopt(revision), read)
    }

    /// Gets the snapshot of the current revision, and takes over what the view itself stores of it.
    fn adopt(&self, revision: Revision) -> Arc<Snapshot> {
        let snapshot = self.snapshots.of(revision, &self.servers, &self.view);
        self.view.result_options.set_reader(&snapshot.reader);
        snapshot
    }
}
