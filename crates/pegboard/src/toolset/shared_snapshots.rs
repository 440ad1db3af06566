//! Snapshots that the toolsets of one board share, so that a toolset per request does not build a route table of its own.
//!
//! Two views share a snapshot if they use the same servers at the same revision under equal rules. Rules are compared by value, servers by
//! identity. A view that owns servers, or tools, shares with no other view: the board must not keep such servers alive. Those of a principal are
//! kept with its servers.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;

use super::{
    principal_snapshots::PrincipalSnapshots,
    snapshot::{Revision, Snapshot},
    snapshot_rules::SnapshotRules,
};
use crate::{
    call::{RouteTable, View},
    server::{Server, ViewServers},
};

/// The most snapshots that are kept: one for each kind of view of a board, which are few, or one for each of the users seen last.
const MAX_SNAPSHOTS: usize = 64;
/// The most routes in all of them together, about 200 bytes each. The newest snapshot is kept in any case.
const MAX_ROUTES: usize = 100_000;

/// The snapshots that the toolsets of one board share.
#[derive(Debug, Default)]
pub(crate) struct SharedSnapshots {
    /// Read without a lock: every new toolset searches it.
    entries: ArcSwap<Vec<Arc<Entry>>>,
    /// Held while `entries` is replaced, never while a snapshot is built.
    changing: Mutex<()>,
    /// Counts replacements of `entries`, to tell which entries were used last.
    clock: AtomicU64,
}

/// A snapshot and everything that determines it.
#[derive(Debug)]
struct Entry {
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

impl Entry {
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
    pub(super) fn of(
        &self,
        (revision, _): Revision,
        servers: &ViewServers,
        view: &View,
        previous: Option<&Snapshot>,
    ) -> Arc<Snapshot> {
        let own = previous.map(|snapshot| &*snapshot.table);
        match servers.shared_only().filter(|_| view.home.is_none()) {
            Some(shared) => self.shared(revision, shared, view, own),
            None => match servers.principal_only().filter(|_| view.home.is_none()) {
                Some(revision) => self.of_principal(revision, servers, view, own),
                None => self.build(&servers.usable(), view, own),
            },
        }
    }

    /// The snapshot of a view that uses only servers of its principal and of the board. It is kept with the principal's servers, not here.
    fn of_principal(
        &self,
        revision: (u64, u64),
        servers: &ViewServers,
        view: &View,
        own: Option<&RouteTable>,
    ) -> Arc<Snapshot> {
        let Some(kept) = servers.kept_with_principal::<PrincipalSnapshots>() else {
            return self.build(&servers.usable(), view, own);
        };
        if let Some(snapshot) = kept.find(revision, view) {
            return snapshot;
        }
        let older = kept.older(view);
        let older = older.as_ref().map(|snapshot| &*snapshot.table);
        let snapshot = self.build(&servers.usable(), view, own.or(older));
        kept.insert(revision, view, &snapshot);
        snapshot
    }

    fn shared(&self, revision: u64, servers: Arc<[Server]>, view: &View, own: Option<&RouteTable>) -> Arc<Snapshot> {
        let found = self.find(revision, &servers, view);
        let entry = match found {
            Some(entry) => entry,
            // The board must not hold a server that a view owns, or may take over later.
            None if !servers.iter().all(Server::is_shared) => {
                let usable: Vec<Server> = servers.iter().filter(|server| !server.is_spare()).cloned().collect();
                return self.build(&usable, view, own);
            }
            None => self.insert(revision, servers, view),
        };
        let is_new = entry.snapshot.get().is_none();
        let snapshot = entry
            .snapshot
            .get_or_init(|| self.build(&entry.servers, view, own))
            .clone();
        if is_new {
            self.trim(&entry);
        }
        snapshot
    }

    fn find(&self, revision: u64, servers: &Arc<[Server]>, view: &View) -> Option<Arc<Entry>> {
        let entries = self.entries.load();
        let entry = entries.iter().find(|entry| entry.is_for(revision, servers, view))?;
        entry.used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(entry.clone())
    }

    fn insert(&self, revision: u64, servers: Arc<[Server]>, view: &View) -> Arc<Entry> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = self.find(revision, &servers, view) {
            return entry;
        }
        let entry = Arc::new(Entry {
            revision,
            servers,
            rules: SnapshotRules::of(view),
            used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed) + 1),
            snapshot: OnceLock::new(),
        });
        let mut entries = Vec::clone(&self.entries.load());
        entries.push(entry.clone());
        self.entries.store(Arc::new(entries));
        entry
    }

    /// Removes snapshots that a newer one replaces, and those that were not used for longest if there are too many. Called when `newest` is
    /// built: until then the older ones provide definitions.
    fn trim(&self, newest: &Arc<Entry>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = Vec::clone(&self.entries.load());
        let is_replaced = |entry: &Entry| entry.revision < newest.revision && entry.rules == newest.rules;
        entries.retain(|entry| !is_replaced(entry));
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

    /// Builds a snapshot. Takes definitions over from the view's own table before and from the largest shared table for the same provider.
    fn build(&self, servers: &[Server], view: &View, own: Option<&RouteTable>) -> Arc<Snapshot> {
        let entries = self.entries.load();
        let of_provider = entries.iter().filter(|entry| entry.rules.have_dialect_of(view));
        let largest = of_provider.max_by_key(|entry| entry.routes());
        let shared = largest.and_then(|entry| entry.snapshot.get());
        let shared = shared.map(|snapshot| &*snapshot.table);
        let before: Vec<&RouteTable> = own.into_iter().chain(shared).collect();
        Arc::new(Snapshot::build(servers, view, &before))
    }
}

#[cfg(test)]
mod tests;
