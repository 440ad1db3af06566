//! Snapshots that the toolsets of one board share, so that a toolset per request does not build a route table of its own.
//!
//! Two views share a snapshot if they use the same servers at the same revision under equal rules. Rules are compared by value, servers by
//! identity. A view that owns servers, or tools, has a snapshot of its own, because the board must not keep such servers alive; it still shares
//! the definitions of its tools. The snapshots of a principal's views are kept with the principal's servers.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;

use super::{
    principal_snapshots::PrincipalSnapshots,
    snapshot::{Revision, Snapshot},
    snapshot_rules::SnapshotRules,
};
use crate::{
    call::{Definitions, View},
    server::{Server, ViewServers},
};
use pegboard_base::sync::Mutex;
use pegboard_tools::provider::Provider;

/// The most snapshots that are kept: one for each kind of view of a board, which are few, or one for each of the users seen last.
const MAX_SNAPSHOTS: usize = 64;
/// The most routes in all of them together, about 200 bytes each. The newest snapshot is kept in any case.
const MAX_ROUTES: usize = 100_000;

/// For how many providers and schema budgets definitions are kept.
const MAX_DIALECTS: usize = 8;

/// The snapshots that the toolsets of one board share.
#[derive(Debug, Default)]
pub(crate) struct SharedSnapshots {
    /// Read without a lock: every new toolset searches it.
    entries: ArcSwap<Vec<Arc<CachedSnapshot>>>,
    /// Held while `entries` is replaced, never while a snapshot is built.
    changing: Mutex<()>,
    /// Counts replacements of `entries`, to tell which entries were used last.
    clock: AtomicU64,
    /// The definitions that were compiled for each provider, the newest first. They hold no servers, so all views use them.
    definitions: Mutex<Vec<(Dialect, Arc<Definitions>)>>,
}

/// A provider and the budget for one schema.
type Dialect = (Provider, Option<usize>);

/// A snapshot and everything that determines it.
#[derive(Debug)]
struct CachedSnapshot {
    /// The board's revision before the snapshot was built.
    revision: u64,
    /// The board's servers. A list that is the same object has the same servers.
    servers: Arc<[Server]>,
    rules: SnapshotRules,
    /// The time of `clock` at the last use.
    used: AtomicU64,
    /// Built once, while other views of the same kind wait.
    snapshot: OnceLock<Arc<Snapshot>>,
}

impl CachedSnapshot {
    fn is_for(&self, revision: u64, servers: &Arc<[Server]>, view: &View) -> bool {
        self.revision == revision && Arc::ptr_eq(&self.servers, servers) && self.rules.are_those_of(view)
    }

    fn routes(&self) -> usize {
        let snapshot = self.snapshot.get();
        snapshot.map_or(0, |snapshot| snapshot.table.routes().len())
    }
}

impl SharedSnapshots {
    /// The snapshot of a view at this revision of the board: a shared one, or one of its own if it owns servers.
    pub(super) fn get(&self, (revision, _): Revision, servers: &ViewServers, view: &View) -> Arc<Snapshot> {
        if view.is_catalog_only() {
            // Its servers are not those of other views with the same rules.
            return self.build(&servers.list_usable(), view);
        }
        match servers.shared_only().filter(|_| view.home.is_none()) {
            Some(shared) => self.get_shared(revision, shared, view),
            None => match servers.principal_only().filter(|_| view.home.is_none()) {
                Some(revision) => self.get_of_principal(revision, servers, view),
                None => self.build(&servers.list_usable(), view),
            },
        }
    }

    /// The snapshot of a view that uses only servers of its principal and of the board. It is kept with the principal's servers, not here.
    fn get_of_principal(&self, revision: (u64, u64), servers: &ViewServers, view: &View) -> Arc<Snapshot> {
        let Some(kept) = servers.principal_keepsake::<PrincipalSnapshots>() else {
            return self.build(&servers.list_usable(), view);
        };
        if let Some(snapshot) = kept.find(revision, view) {
            return snapshot;
        }
        let snapshot = self.build(&servers.list_usable(), view);
        kept.insert(revision, view, &snapshot);
        snapshot
    }

    fn get_shared(&self, revision: u64, servers: Arc<[Server]>, view: &View) -> Arc<Snapshot> {
        let entry = match self.find(revision, &servers, view) {
            Some(entry) => entry,
            // The board must not hold a server that a view owns, or may take over later.
            None if !servers.iter().all(Server::is_shared) => {
                let usable: Vec<Server> = servers.iter().filter(|server| !server.is_spare()).cloned().collect();
                return self.build(&usable, view);
            }
            None => self.insert(revision, servers, view),
        };
        let is_new = entry.snapshot.get().is_none();
        let snapshot = entry.snapshot.get_or_init(|| self.build(&entry.servers, view)).clone();
        if is_new {
            self.trim(&entry);
        }
        snapshot
    }

    fn find(&self, revision: u64, servers: &Arc<[Server]>, view: &View) -> Option<Arc<CachedSnapshot>> {
        let entries = self.entries.load();
        let entry = entries.iter().find(|entry| entry.is_for(revision, servers, view))?;
        entry.used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(entry.clone())
    }

    fn insert(&self, revision: u64, servers: Arc<[Server]>, view: &View) -> Arc<CachedSnapshot> {
        let _changing = self.changing.lock();
        if let Some(entry) = self.find(revision, &servers, view) {
            return entry;
        }
        let entry = Arc::new(CachedSnapshot {
            revision,
            servers,
            rules: SnapshotRules::new(view),
            used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed) + 1),
            snapshot: OnceLock::new(),
        });
        let mut entries = Vec::clone(&self.entries.load());
        entries.push(entry.clone());
        self.entries.store(Arc::new(entries));
        entry
    }

    /// Removes the snapshots of older revisions, and those that were not used for longest if there are too many.
    fn trim(&self, newest: &Arc<CachedSnapshot>) {
        let _changing = self.changing.lock();
        let mut entries = Vec::clone(&self.entries.load());
        entries.retain(|entry| entry.revision >= newest.revision);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used.load(Ordering::Relaxed)));
        let (mut count, mut routes) = (1, newest.routes());
        entries.retain(|entry| {
            if Arc::ptr_eq(entry, newest) {
                return true;
            }
            count += 1;
            routes += entry.routes();
            count <= MAX_SNAPSHOTS && routes <= MAX_ROUTES
        });
        self.entries.store(Arc::new(entries));
    }

    /// Builds a snapshot. Takes over the definitions that were compiled for the same provider, for views of any kind.
    fn build(&self, servers: &[Server], view: &View) -> Arc<Snapshot> {
        let known = self.definitions(view.dialect());
        let snapshot = Snapshot::build(servers, view, &known);
        if let Some(all) = snapshot.table.new_definitions(&known) {
            let mut definitions = self.definitions.lock();
            definitions.retain(|(dialect, _)| *dialect != view.dialect());
            definitions.truncate(MAX_DIALECTS - 1);
            definitions.insert(0, (view.dialect(), Arc::new(all)));
        }
        Arc::new(snapshot)
    }

    fn definitions(&self, wanted: Dialect) -> Arc<Definitions> {
        let definitions = self.definitions.lock();
        let known = definitions.iter().find(|(dialect, _)| *dialect == wanted);
        known.map(|(_, known)| known.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
