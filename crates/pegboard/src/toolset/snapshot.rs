//! What is derived from the servers of a view at one moment, and snapshot again only when something has changed.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;

use super::{
    ListedTool, Toolset, builtin_tools, discover::Discovery, read_output, resource_tools::ResourceTools,
    server_selection,
};
use crate::{
    call::{RouteTable, Visibility},
    outcome::Failure,
    search::{Index, text_of},
};

/// How much of what a tool says about itself is looked at for its meaning, in bytes.
const TEXT: usize = 2 << 10;

/// What was snapshot last. Every call looks at it, so looking must not make the cores wait for each other.
#[derive(Debug, Default)]
pub(super) struct LatestSnapshot {
    snapshot: ArcSwapOption<Snapshot>,
    /// Held while something is snapshot, so that it is snapshot once.
    building: Mutex<()>,
}

/// A route table, and the revision that it was snapshot for.
#[derive(Debug)]
pub(super) struct Snapshot {
    revision: (u64, u64),
    /// Why the view's selection cannot be used, if it cannot. The table is empty then.
    pub(super) unusable: Option<Failure>,
    pub(super) table: Arc<RouteTable>,
    /// The tool that reads what was put aside, under a name that no server has.
    pub(super) read_output: ListedTool,
    /// The tools that lead to those that are not shown.
    pub(super) discovery: Discovery,
    /// The tools that list and read resources, for a view that wants them.
    pub(super) resources: Option<ResourceTools>,
    /// Made when something is looked for.
    index: OnceLock<Arc<Index>>,
    texts: OnceLock<Arc<[String]>>,
}

impl Snapshot {
    pub(super) fn index(&self) -> Arc<Index> {
        let tools = || self.table.routes().iter().map(|route| route.tool.as_ref());
        self.index.get_or_init(|| Arc::new(Index::new(tools()))).clone()
    }

    /// What the tools say about themselves, for those who look at meaning.
    pub(super) fn texts(&self) -> Arc<[String]> {
        let texts = || {
            let routes = self.table.routes().iter();
            routes.map(|route| text_of(&route.tool, TEXT)).collect()
        };
        self.texts.get_or_init(texts).clone()
    }
}

impl Toolset {
    /// Changes whenever what is snapshot has to be snapshot again.
    #[cfg(test)]
    pub(crate) fn revision(&self) -> (u64, u64) {
        self.own.revision()
    }

    /// The route table for what the servers offer now.
    pub(super) fn table(&self) -> Arc<RouteTable> {
        self.snapshot(|snapshot| snapshot.table.clone())
    }

    /// Takes something of what is snapshot for what the servers offer now.
    pub(super) fn snapshot<T>(&self, take: impl FnOnce(&Snapshot) -> T) -> T {
        match &*self.latest.snapshot.load() {
            Some(snapshot) if snapshot.revision == self.own.revision() => take(snapshot),
            _ => take(&self.rebuild()),
        }
    }

    fn rebuild(&self) -> Arc<Snapshot> {
        let _alone = self.latest.building.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.latest.snapshot.load_full();
        let revision = self.own.revision();
        if let Some(snapshot) = before.as_ref().filter(|snapshot| snapshot.revision == revision) {
            return snapshot.clone();
        }
        let servers = self.servers();
        let visibility = Visibility::new(&self.view, &servers);
        let before = before.as_ref().map(|snapshot| &*snapshot.table);
        let selection = self.view.rules.selection();
        let unusable = selection.and_then(|selection| server_selection::check(selection, &servers).err());
        let offering = if unusable.is_some() { &[][..] } else { &servers };
        let routes = RouteTable::build(offering, &self.view, &visibility, before);
        let home = builtin_tools::server_name(&servers);
        let read_output = read_output::listed(&home, &self.view);
        self.view.outputs.set_reader(&read_output.name);
        let snapshot = Arc::new(Snapshot {
            revision,
            unusable,
            table: Arc::new(routes),
            read_output,
            discovery: Discovery::new(&home, &self.view),
            resources: self.view.resource_tools.then(|| ResourceTools::new(&home, &self.view)),
            index: OnceLock::new(),
            texts: OnceLock::new(),
        });
        self.latest.snapshot.store(Some(snapshot.clone()));
        snapshot
    }
}
