//! The route table, built-in tools and search index of a view, rebuilt only when a server or its catalogue has changed.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;

use super::{
    builtin_definitions::{self, Discovery, ResourceTools},
    builtin_tools,
    listing::ListedTool,
    selection_check,
};
use crate::{
    call::{RouteTable, View, Visibility},
    outcome::Failure,
    search::{Index, text_of},
    server::{Server, ViewServers},
};

/// How much of a tool's name, description and parameters is embedded for semantic search, in bytes.
const MAX_EMBEDDED_TEXT: usize = 2 << 10;

/// The newest snapshot of a view. Every call reads it, so reading takes no lock.
#[derive(Debug, Default)]
pub(super) struct LatestSnapshot {
    snapshot: ArcSwapOption<Snapshot>,
    /// Held while a snapshot is built, so that concurrent calls build it once.
    building: Mutex<()>,
}

impl LatestSnapshot {
    /// Passes the snapshot of the view's current revision to `read`. Builds it first if the newest one is older.
    pub(super) fn read<T>(&self, servers: &ViewServers, view: &View, read: impl FnOnce(&Snapshot) -> T) -> T {
        match &*self.snapshot.load() {
            Some(snapshot) if snapshot.revision == servers.revision() => read(snapshot),
            _ => read(&self.rebuild(servers, view)),
        }
    }

    fn rebuild(&self, servers: &ViewServers, view: &View) -> Arc<Snapshot> {
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = self.snapshot.load_full();
        // Read before the servers, so that a change while the snapshot is built makes it outdated.
        let revision = servers.revision();
        if let Some(current) = previous.as_ref().filter(|snapshot| snapshot.revision == revision) {
            return current.clone();
        }
        let previous = previous.as_ref().map(|snapshot| &*snapshot.table);
        let snapshot = Arc::new(Snapshot::build(revision, &servers.usable(), view, previous));
        self.snapshot.store(Some(snapshot.clone()));
        snapshot
    }
}

/// The data derived from a view's servers at one revision.
#[derive(Debug)]
pub(super) struct Snapshot {
    revision: (u64, u64),
    /// Why the view's selection is invalid on this board, if it is. The table is empty then.
    pub(super) selection_error: Option<Failure>,
    pub(super) table: Arc<RouteTable>,
    /// The `read_output` tool.
    pub(super) read_output: ListedTool,
    /// The tools that find and call tools which are not listed.
    pub(super) discovery: Discovery,
    /// The tools that list and read resources, if the view has them.
    pub(super) resources: Option<ResourceTools>,
    /// Built by the first search.
    index: OnceLock<Arc<Index>>,
    /// Built by the first semantic search.
    texts: OnceLock<Arc<[String]>>,
}

impl Snapshot {
    fn build(revision: (u64, u64), servers: &[Server], view: &View, previous: Option<&RouteTable>) -> Self {
        let visibility = Visibility::new(view, servers);
        let selection = view.rules.selection();
        let selection_error = selection.and_then(|selection| selection_check::check(selection, servers).err());
        let offering = if selection_error.is_some() { &[][..] } else { servers };
        let routes = RouteTable::build(offering, view, &visibility, previous);
        let server = builtin_tools::server_name(servers);
        let read_output = builtin_definitions::read_output(&server, view);
        view.result_options.set_reader(&read_output.name);
        Self {
            revision,
            selection_error,
            table: Arc::new(routes),
            read_output,
            discovery: Discovery::new(&server, view),
            resources: view.resource_tools.then(|| ResourceTools::new(&server, view)),
            index: OnceLock::new(),
            texts: OnceLock::new(),
        }
    }

    /// The keyword index of the tools.
    pub(super) fn index(&self) -> Arc<Index> {
        let tools = || self.table.routes().iter().map(|route| route.tool.as_ref());
        self.index.get_or_init(|| Arc::new(Index::new(tools()))).clone()
    }

    /// The texts of the tools that are embedded for semantic search.
    pub(super) fn texts(&self) -> Arc<[String]> {
        let texts = || {
            let routes = self.table.routes().iter();
            routes.map(|route| text_of(&route.tool, MAX_EMBEDDED_TEXT)).collect()
        };
        self.texts.get_or_init(texts).clone()
    }
}
