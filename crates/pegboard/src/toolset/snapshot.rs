//! The route table, built-in tools and search index of a view, rebuilt only when a server or its catalogue has changed.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use super::{
    builtin_definitions::{self, Discovery, ResourceTools},
    builtin_tools::{self, Home},
    listing::ListedTool,
    selection_check,
};
use crate::{
    call::{Definitions, RouteTable, View, Visibility},
    server::Server,
};
use pegboard_base::sync::Mutex;
use pegboard_tools::{
    catalog::{ListWarning, Tool, shadows},
    outcome::Failure,
    search::{Index, text_of},
};

/// How much of a tool's name, description and parameters is embedded for semantic search, in bytes.
const MAX_EMBEDDED_TEXT: usize = 2 << 10;

/// The revision of the board, and that of the view.
pub(super) type Revision = (u64, u64);

/// The newest snapshot of a view. Every call reads it, so reading takes no lock.
#[derive(Debug, Default)]
pub(super) struct LatestSnapshot {
    adopted: ArcSwapOption<Adopted>,
    /// Held while a snapshot is built, so that concurrent calls build it once.
    building: Mutex<()>,
}

/// A snapshot as one view uses it.
#[derive(Debug)]
struct Adopted {
    revision: Revision,
    snapshot: Arc<Snapshot>,
}

impl LatestSnapshot {
    /// Passes the snapshot of the `current` revision to `read`. If the newest one is older, `build` replaces it.
    pub(super) fn read<T>(
        &self,
        current: impl Fn() -> Revision,
        build: impl FnOnce(Revision) -> Arc<Snapshot>,
        read: impl FnOnce(&Snapshot) -> T,
    ) -> T {
        match &*self.adopted.load() {
            Some(adopted) if adopted.revision == current() => read(&adopted.snapshot),
            _ => read(&self.rebuild(current, build)),
        }
    }

    fn rebuild(&self, current: impl Fn() -> Revision, build: impl FnOnce(Revision) -> Arc<Snapshot>) -> Arc<Snapshot> {
        let _building = self.building.lock();
        let previous = self.adopted.load_full();
        // Read before the servers, so that a change while the snapshot is built makes it outdated.
        let revision = current();
        if let Some(adopted) = previous.as_ref().filter(|adopted| adopted.revision == revision) {
            return adopted.snapshot.clone();
        }
        let snapshot = build(revision);
        self.adopted.store(Some(Arc::new(Adopted {
            revision,
            snapshot: snapshot.clone(),
        })));
        snapshot
    }
}

/// The data derived from servers and from the rules of a view. It has no state of one view, because views may share it.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Why the view's selection is invalid on this board, if it is. The table is empty then.
    pub(super) selection_error: Option<Failure>,
    pub(super) table: Arc<RouteTable>,
    /// The `read_output` tool.
    pub(super) read_output: ListedTool,
    /// The name of `read_output` as models see it.
    pub(super) reader: Arc<str>,
    /// The tools that find and call tools which are not listed.
    pub(super) discovery: Discovery,
    /// The tools that list and read resources, if the view has them.
    pub(super) resources: Option<ResourceTools>,
    /// Built by the first search.
    index: OnceLock<Arc<Index>>,
    /// Built by the first semantic search.
    texts: OnceLock<Arc<[String]>>,
    /// Built by the first listing.
    shadows: OnceLock<Arc<[ListWarning]>>,
}

impl Snapshot {
    /// Builds the snapshot of these servers for a view. Reuses definitions that are `known` for its provider and schema budget.
    pub(super) fn build(servers: &[Server], view: &View, known: &Definitions) -> Self {
        let visibility = Visibility::new(view, servers);
        let selection = view.rules.selection();
        let selection_error = selection.and_then(|selection| selection_check::check(selection, servers).err());
        let offering = if selection_error.is_some() { &[][..] } else { servers };
        let routes = RouteTable::build(offering, view, &visibility, known);
        let home = Home {
            name: &builtin_tools::server_name(servers),
            view,
            routes: &routes,
        };
        let read_output = builtin_definitions::read_output(home);
        let discovery = Discovery::new(home);
        let resources = view.resource_tools.then(|| ResourceTools::new(home));
        Self {
            selection_error,
            table: Arc::new(routes),
            reader: read_output.name.as_str().into(),
            read_output,
            discovery,
            resources,
            index: OnceLock::new(),
            texts: OnceLock::new(),
            shadows: OnceLock::new(),
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

    /// Warnings about tools that could impersonate others.
    pub(super) fn shadows(&self) -> Arc<[ListWarning]> {
        let warnings = || {
            let tools: Vec<&Tool> = self.table.routes().iter().map(|route| route.tool.as_ref()).collect();
            shadows(&tools).into()
        };
        self.shadows.get_or_init(warnings).clone()
    }
}
