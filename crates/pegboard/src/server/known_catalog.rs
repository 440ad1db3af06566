//! What is known of a server's catalogue, also while the server is not there, and how it changed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    catalog::{
        Catalog, FormerNames,
        diff::CatalogDiff,
        store::{CatalogStore, Freshness, Stored},
    },
    mask::Masker,
    name::ServerName,
};

/// How many changes are remembered.
const CHANGES: usize = 32;

/// One change of what a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CatalogChange {
    /// When it was seen.
    pub at: Timestamp,
    /// What changed.
    pub diff: CatalogDiff,
}

/// The last known catalogue of a server.
#[derive(Debug)]
pub(super) struct KnownCatalog {
    server: ServerName,
    /// Where it is store between programs, and under which fingerprint.
    store: Option<(CatalogStore, String)>,
    state: Mutex<CatalogState>,
}

#[derive(Debug, Default)]
struct CatalogState {
    latest: Option<Arc<Catalog>>,
    changes: VecDeque<CatalogChange>,
    former: FormerNames,
    /// Whether this program has listed the server itself.
    was_listed: bool,
}

impl KnownCatalog {
    /// What an earlier program has learned, if that was store.
    pub(super) fn new(server: ServerName, store: Option<(CatalogStore, String)>) -> Self {
        let stored = store
            .as_ref()
            .and_then(|(store, fingerprint)| store.load(&server, fingerprint));
        // A server that sets a time for its listings is taken at its word.
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

    /// Masks what an earlier program has learned: it may not have known every secret.
    pub(super) fn masked(self, masker: &Masker) -> Self {
        {
            let mut state = self.lock();
            if let Some(latest) = &mut state.latest {
                Arc::make_mut(latest).mask(masker);
            }
        }
        self
    }

    /// Whether this program has listed the server itself, and did not only read what an earlier one store.
    pub(super) fn was_listed(&self) -> bool {
        self.lock().was_listed
    }

    /// Counts it as listed by this program.
    pub(super) fn mark_listed(&self) {
        self.lock().was_listed = true;
    }

    pub(super) fn latest(&self) -> Option<Arc<Catalog>> {
        self.lock().latest.clone()
    }

    pub(super) fn changes(&self) -> Vec<CatalogChange> {
        self.lock().changes.iter().cloned().collect()
    }

    /// The names that its tools had before.
    pub(super) fn former_names(&self) -> FormerNames {
        self.lock().former.clone()
    }

    /// The server was listed. What differs from before is remembered, store for the next program, and returned.
    pub(super) fn learn(&self, catalog: &Arc<Catalog>, freshness: Freshness) -> Option<CatalogDiff> {
        let at = Timestamp::now();
        let changed = {
            let mut state = self.lock();
            state.was_listed = true;
            let old = state.latest.replace(catalog.clone());
            let diff = old.as_ref().map(|old| CatalogDiff::between(old, catalog));
            if let Some(old) = &old {
                state.former.learn(old, catalog);
            }
            match diff {
                Some(diff) if diff.is_empty() => return None,
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

    fn lock(&self) -> MutexGuard<'_, CatalogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
