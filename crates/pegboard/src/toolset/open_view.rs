//! [`OpenView`]: a view that is open on a board, and the servers and tools that it uses now.

use std::sync::{Arc, atomic::Ordering};

use super::{
    open_state::OpenState,
    selection_check::check,
    shared_snapshots::SharedSnapshots,
    snapshot::{LatestSnapshot, Revision, Snapshot},
};
use crate::{
    call::{self, RouteTable, View},
    server::{Server, ViewServers},
};
use futures_util::future::BoxFuture;
use pegboard_base::{
    diagnosis::{Cause, Code, Diagnosis, Step},
    name::ServerName,
};
use pegboard_tools::{
    filter::Selection,
    outcome::{Failure, Kind},
};

/// An open view. It is cheap to clone.
///
/// The parts of a toolset borrow it: a [`Resolver`](super::resolver::Resolver) finds tools by name, a [`Lister`](super::lister::Lister) lists
/// them, [`ToolCalls`](super::tool_calls::ToolCalls) calls them, and [`ServerRequests`](super::server_requests::ServerRequests) sends everything else.
#[derive(Debug, Clone)]
pub(super) struct OpenView {
    pub(super) view: Arc<View>,
    open_state: Arc<OpenState>,
    latest: Arc<LatestSnapshot>,
    /// The snapshots that all toolsets of the board share.
    pub(super) snapshots: Arc<SharedSnapshots>,
    /// The servers that this view owns, and access to the shared ones. The last field, because fields are dropped in order: the snapshots above
    /// hold servers too, and shutdown waits for a dropped view only until its `ViewServers` are dropped.
    pub(super) servers: Arc<ViewServers>,
}

impl OpenView {
    pub(super) fn new(servers: Arc<ViewServers>, view: View, snapshots: Arc<SharedSnapshots>) -> Self {
        Self {
            view: Arc::new(view.prepare_for_toolset(
                servers.name().clone(),
                servers.number(),
                servers.registry().events().clone(),
                servers.registry().tallies().clone(),
            )),
            open_state: Arc::new(OpenState::new(servers.registry().tallies())),
            latest: Arc::default(),
            snapshots,
            servers,
        }
    }

    /// The same view with another selection. Both close together.
    pub(super) fn with_selection(&self, selection: Arc<Selection>) -> Self {
        let view = View {
            rules: self.view.rules.with_selection(selection),
            ..View::clone(&self.view)
        };
        Self {
            view: Arc::new(view),
            latest: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether the view or its board is closed, so that calls are refused.
    pub(super) fn is_closed(&self) -> bool {
        self.open_state.has_ended() || self.servers.registry().is_closing()
    }

    /// Closes the view and waits until the servers that it owns have stopped.
    pub(super) fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.open_state.end();
            self.view.is_closed.store(true, Ordering::Release);
            if let Some(memory) = &self.view.memory {
                memory.close().await;
            }
            self.servers.close().await;
        })
    }

    /// Fails if the view or its board is closed, or if the view calls no tools.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        if self.servers.registry().is_closing() {
            return Err(call::closed("the board is closing and takes no more calls"));
        }
        if self.is_closed() {
            return Err(call::closed("this view is closed and takes no more calls"));
        }
        if self.view.is_catalog_only() {
            let message = "this view only lists tools. Open another one to call them.";
            let failure = Failure::new(Kind::NotPermitted, message);
            return Err(failure.diagnosed(Diagnosis::new(Code::NotPermitted, Step::Permit, Cause::Rule)));
        }
        Ok(())
    }

    /// Fails if the selection is invalid on the board as it is now.
    pub(super) fn check_selection(&self) -> Result<(), Failure> {
        let Some(selection) = self.view.rules.selection() else {
            return Ok(());
        };
        check(selection, &self.servers())
    }

    /// All servers of the view now. The in-process server of the view's own tools comes first.
    pub(super) fn servers(&self) -> Vec<Server> {
        self.servers.list_usable()
    }

    /// The servers that this view uses. Empty if its selection is invalid.
    pub(super) fn selected_servers(&self) -> Vec<Server> {
        let mut servers = self.servers();
        servers.retain(|server| self.view.rules.has_server(server.name().as_str()));
        if let Some(selection) = self.view.rules.selection() {
            if check(selection, &servers).is_err() {
                return Vec::new();
            }
            servers.retain(|server| selection.has_server(server.name().as_str()));
        }
        servers
    }

    /// The servers that have no session now.
    pub(super) fn idle_servers(&self) -> Vec<Server> {
        let mut servers = self.selected_servers();
        servers.retain(|server| server.phase().as_live().is_none());
        servers
    }

    /// The servers that wait for a sign-in, as far as is known now.
    pub(super) fn awaiting_sign_in(&self) -> Vec<ServerName> {
        let mut servers = self.selected_servers();
        servers.retain(|server| server.phase().awaits_sign_in());
        servers.iter().map(|server| server.name().clone()).collect()
    }

    /// Reads the pins of servers with held tools again, if a person has accepted some elsewhere. Returns whether that was so.
    pub(super) fn recheck_held(&self) -> bool {
        let servers = self.selected_servers();
        servers.iter().filter(|server| server.listing().recheck_pins()).count() > 0
    }

    /// The route table of the current snapshot.
    pub(super) fn table(&self) -> Arc<RouteTable> {
        self.read_snapshot(|snapshot| snapshot.table.clone())
    }

    /// Reads the current snapshot.
    pub(super) fn read_snapshot<T>(&self, read: impl FnOnce(&Snapshot) -> T) -> T {
        let current = || self.servers.revision();
        self.latest.read(current, |revision| self.adopt(revision), read)
    }

    /// Gets the snapshot of the current revision, and takes over what the view itself stores of it.
    fn adopt(&self, revision: Revision) -> Arc<Snapshot> {
        let snapshot = self.snapshots.get(revision, &self.servers, &self.view);
        self.view.result_options.set_reader(&snapshot.reader);
        snapshot
    }
}
