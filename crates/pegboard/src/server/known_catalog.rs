//! The last known catalogue of a server, also while the server is not ready, and its history of changes.

use std::{collections::VecDeque, sync::Arc};

use pegboard_base::timestamp::Timestamp;
use serde::Serialize;

use pegboard_base::name::ServerName;
use pegboard_base::sync::Mutex;
use pegboard_mask::Masker;
use pegboard_tools::catalog::{
    Catalog, FormerNames,
    diff::CatalogDiff,
    store::{CatalogStore, Freshness, Stored},
};

/// How many changes are remembered.
const CHANGES: usize = 32;

/// One change of a server's catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CatalogChange {
    /// When the change was seen.
    pub at: Timestamp,
    /// What changed.
    pub diff: CatalogDiff,
}

/// The last known catalogue of a server.
#[derive(Debug)]
pub(super) struct KnownCatalog {
    server: ServerName,
    /// The store across runs of the program, and the fingerprint of the server's transport.
    store: Option<(CatalogStore, String)>,
    state: Mutex<CatalogState>,
}

#[derive(Debug, Default)]
struct CatalogState {
    latest: Option<Arc<Catalog>>,
    changes: VecDeque<CatalogChange>,
    former: FormerNames,
    /// Whether the server was listed in this run of the program.
    was_listed: bool,
}

impl KnownCatalog {
    /// Loads the stored catalogue of an earlier run, if there is one.
    pub(super) fn new(server: ServerName, store: Option<(CatalogStore, String)>) -> Self {
        let stored = store
            .as_ref()
            .and_then(|(store, fingerprint)| store.load(&server, fingerprint));
        // A stored listing with a TTL is used only until it expires.
        let stored = stored.filter(|stored| stored.freshness.ttl.is_none() || stored.is_fresh(Timestamp::now()));
        Self {
            server,
            store,
            state: Mutex::new(CatalogState {
                latest: stored.map(|stored| Arc::new(stored.catalog)),
                ..CatalogState::default()
            }),
        }
    }

    /// Masks the stored catalogue: the earlier run may not have known every secret.
    pub(super) fn into_masked(self, masker: &Masker) -> Self {
        {
            let mut state = self.state.lock();
            if let Some(latest) = &mut state.latest {
                Arc::make_mut(latest).mask(masker);
            }
        }
        self
    }

    /// Whether the server was listed in this run of the program, not only loaded from the store.
    pub(super) fn was_listed(&self) -> bool {
        self.state.lock().was_listed
    }

    /// Counts the server as listed in this run of the program.
    pub(super) fn mark_listed(&self) {
        self.state.lock().was_listed = true;
    }

    pub(super) fn latest(&self) -> Option<Arc<Catalog>> {
        self.state.lock().latest.clone()
    }

    pub(super) fn changes(&self) -> Vec<CatalogChange> {
        self.state.lock().changes.iter().cloned().collect()
    }

    /// The names that the server's tools had before.
    pub(super) fn former_names(&self) -> FormerNames {
        self.state.lock().former.clone()
    }

    /// Records and stores a new listing. Returns how it differs from the previous one, or `None` if it does not.
    pub(super) fn learn(&self, catalog: &Arc<Catalog>, freshness: Freshness) -> Option<CatalogDiff> {
        let at = Timestamp::now();
        let changed = {
            let mut state = self.state.lock();
            state.was_listed = true;
            let old = state.latest.replace(catalog.clone());
            let diff = old.as_ref().map(|old| CatalogDiff::between(old, catalog));
            if let Some(old) = &old {
                state.former.learn(old, catalog);
            }
            match diff {
                Some(diff) if diff.is_empty() => None,
                Some(diff) => {
                    tracing::info!(diff = %serde_json::to_string(&diff).unwrap_or_default(), "the catalogue changed");
                    let change = diff.clone();
                    state.changes.push_back(CatalogChange { at, diff });
                    let surplus = state.changes.len().saturating_sub(CHANGES);
                    state.changes.drain(..surplus);
                    Some(change)
                }
                None => None,
            }
        };
        if let Some((store, fingerprint)) = &self.store {
            let stored = Stored {
                catalog: catalog.as_ref().clone(),
                freshness,
                saved_at: at,
            };
            if let Err(error) = store.save(&self.server, fingerprint, &stored) {
                tracing::debug!(%error, "the catalogue is not kept");
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_listing_that_did_not_change_is_as_fresh_as_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (store, server) = (CatalogStore::new(folder.path()), "fx".parse::<ServerName>().unwrap());
        let known = KnownCatalog::new(server.clone(), Some((store.clone(), "print".to_owned())));
        let catalog = Arc::new(Catalog::default());
        let freshness = |secs| Freshness {
            ttl: Some(Duration::from_secs(secs)),
            ..Freshness::default()
        };
        known.learn(&catalog, freshness(10));
        known.learn(&catalog, freshness(20));
        let stored = store.load(&server, "print").unwrap();
        assert_eq!(stored.freshness.ttl, Some(Duration::from_secs(20)));
    }
}
