//! The last known catalogue of a server, also while the server is not ready, and its history of changes.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use pegboard_base::{log_event, timestamp::Timestamp};
use serde::Serialize;

use pegboard_base::name::ServerName;
use pegboard_base::sync::Mutex;
use pegboard_mask::Masker;
use pegboard_tools::catalog::{
    Catalog, FormerNames,
    diff::{CatalogDiff, Changes},
    store::{CatalogStore, Freshness, Stored},
};

/// How many changes are remembered.
const CHANGES: usize = 32;

/// How long a stored catalogue is believed, if the server has declared no time. After that a listing starts the server, whatever its `start` says.
const BELIEVED: Duration = Duration::from_secs(24 * 3600);

/// How often a catalogue that stays the same is stored again, so that its age is known.
const SAVE_AGAIN: Duration = Duration::from_secs(3600);

/// The most names of one kind in a line of the log, and the most bytes of a name.
const NAMED: usize = 10;
const MAX_NAME: usize = 64;

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
    origin: Origin,
    changes: VecDeque<CatalogChange>,
    former: FormerNames,
    /// Whether the server was listed in this run of the program.
    was_listed: bool,
    /// When the catalogue was stored, and with which lifetime.
    saved: Option<(Timestamp, Freshness)>,
}

/// Where the latest catalogue comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Origin {
    /// This connection has listed it.
    #[default]
    Listed,
    /// An earlier run of the program, which is believed until then.
    Stored(Timestamp),
    /// Another instance of the server, or another supervisor, which may know better by now.
    Unconfirmed,
}

impl KnownCatalog {
    /// Loads the stored catalogue of an earlier run, if there is one.
    pub(super) fn new(server: ServerName, store: Option<(CatalogStore, String)>) -> Self {
        let stored = store
            .as_ref()
            .and_then(|(store, fingerprint)| store.load(&server, fingerprint));
        let state = match stored {
            Some(stored) => CatalogState {
                origin: Origin::Stored(stored.saved_at + stored.freshness.ttl.unwrap_or(BELIEVED)),
                latest: Some(Arc::new(stored.catalog)),
                ..CatalogState::default()
            },
            None => CatalogState::default(),
        };
        Self {
            server,
            store,
            state: Mutex::new(state),
        }
    }

    /// What another instance of the server has listed. It is not stored.
    pub(super) fn of_other_instance(server: ServerName, catalog: Arc<Catalog>) -> Self {
        Self {
            server,
            store: None,
            state: Mutex::new(CatalogState {
                latest: Some(catalog),
                origin: Origin::Unconfirmed,
                ..CatalogState::default()
            }),
        }
    }

    /// Lets the first listing ask for what was stored, however young it is: the server is behind another supervisor.
    pub(super) fn into_unconfirmed(self) -> Self {
        self.state.lock().origin = Origin::Unconfirmed;
        self
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

    /// Whether the latest catalogue is good enough to list a server that is not started. Otherwise a listing starts it.
    pub(super) fn is_believed(&self) -> bool {
        match self.state.lock().origin {
            Origin::Listed => true,
            Origin::Stored(until) => Timestamp::now() < until,
            Origin::Unconfirmed => false,
        }
    }

    /// Removes what is stored, because the next account that signs in may see other tools.
    pub(super) fn forget_stored(&self) {
        if let Some((store, fingerprint)) = &self.store {
            self.state.lock().saved = None;
            store.remove(&self.server, fingerprint);
        }
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
        let (changed, is_stored) = {
            let mut state = self.state.lock();
            (state.was_listed, state.origin) = (true, Origin::Listed);
            let old = state.latest.replace(catalog.clone());
            let diff = old.as_ref().map(|old| CatalogDiff::between(old, catalog));
            if let Some(old) = &old {
                state.former.learn(old, catalog);
            }
            let is_same = diff.as_ref().is_some_and(CatalogDiff::is_empty);
            let is_stored = is_same && state.saved.is_some_and(|saved| is_recent(saved, at, freshness));
            let changed = match diff {
                Some(diff) if diff.is_empty() => None,
                Some(diff) => {
                    log_change(&diff);
                    let change = diff.clone();
                    state.changes.push_back(CatalogChange { at, diff });
                    let surplus = state.changes.len().saturating_sub(CHANGES);
                    state.changes.drain(..surplus);
                    Some(change)
                }
                None => None,
            };
            (changed, is_stored)
        };
        if let Some((store, fingerprint)) = self.store.as_ref().filter(|_| !is_stored) {
            let stored = Stored {
                catalog: catalog.as_ref().clone(),
                freshness,
                saved_at: at,
            };
            match store.save(&self.server, fingerprint, &stored) {
                Ok(()) => self.state.lock().saved = Some((at, freshness)),
                Err(error) => tracing::debug!(%error, "the catalogue is not kept"),
            }
        }
        changed
    }
}

/// Says which tools came, went and changed. Of other items it says how many.
fn log_change(diff: &CatalogDiff) {
    let changed = diff.tools.changed.iter().map(|tool| &tool.name);
    let [added, removed, changed] = [
        names(diff.tools.added.iter()),
        names(diff.tools.removed.iter()),
        names(changed),
    ];
    let count = |changes: &Changes| {
        let count = changes.added.len() + changes.removed.len() + changes.changed.len();
        (count > 0).then_some(count)
    };
    tracing::info!(
        name: log_event::CATALOG_CHANGED,
        tools_added = added,
        tools_removed = removed,
        tools_changed = changed,
        resources = count(&diff.resources),
        templates = count(&diff.templates),
        prompts = count(&diff.prompts),
        "the listing has changed"
    );
}

/// Names for the log; `None` if there are none.
pub(super) fn names<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> Option<String> {
    let more = names.len().saturating_sub(NAMED);
    let shown = names.take(NAMED).map(|name| {
        let name = &name[..name.floor_char_boundary(MAX_NAME)];
        name.escape_debug().to_string()
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    match more {
        _ if text.is_empty() => None,
        0 => Some(text),
        more => Some(format!("{text} and {more} more")),
    }
}

/// Whether a catalogue need not be stored again, because that was done a short time ago with the same lifetime.
fn is_recent((at, lifetime): (Timestamp, Freshness), now: Timestamp, freshness: Freshness) -> bool {
    let age = now.checked_duration_since(at);
    lifetime == freshness && freshness.ttl.is_none() && age.is_some_and(|age| age < SAVE_AGAIN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_of_the_log_names_ten_items_and_hides_nothing() {
        let all: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
        assert_eq!(names(all[..2].iter()).as_deref(), Some("t0, t1"));
        assert_eq!(
            names(all.iter()).as_deref(),
            Some("t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more")
        );
        assert_eq!(names([].iter()), None);
        let odd = ["a\nb\u{202e}".to_owned(), "x".repeat(100)];
        assert_eq!(
            names(odd.iter()),
            Some(format!("a\\nb\\u{{202e}}, {}", "x".repeat(MAX_NAME)))
        );
    }

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

    #[test]
    fn a_stored_catalogue_is_believed_for_a_day_or_as_long_as_its_server_says() {
        let folder = tempfile::tempdir().unwrap();
        let (store, server) = (CatalogStore::new(folder.path()), "fx".parse::<ServerName>().unwrap());
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        for (age, ttl, is_believed) in [
            (23, None, true),
            (25, None, false),
            (1, Some(2), true),
            (2, Some(1), false),
        ] {
            let stored = Stored {
                catalog: Catalog::default(),
                freshness: Freshness {
                    ttl: ttl.map(hours),
                    ..Freshness::default()
                },
                saved_at: Timestamp::now() - hours(age),
            };
            store.save(&server, "print", &stored).unwrap();
            let known = KnownCatalog::new(server.clone(), Some((store.clone(), "print".to_owned())));
            assert_eq!(known.is_believed(), is_believed, "{age} {ttl:?}");
            assert!(known.latest().is_some(), "it is known all the same");
            known.learn(&Arc::new(Catalog::default()), Freshness::default());
            assert!(known.is_believed());
        }
    }

    #[test]
    fn a_catalogue_that_is_forgotten_is_stored_with_the_next_listing() {
        let folder = tempfile::tempdir().unwrap();
        let (store, server) = (CatalogStore::new(folder.path()), "fx".parse::<ServerName>().unwrap());
        let known = KnownCatalog::new(server.clone(), Some((store.clone(), "print".to_owned())));
        let catalog = Arc::new(Catalog::default());
        for _ in 0..2 {
            known.learn(&catalog, Freshness::default());
            assert!(store.load(&server, "print").is_some());
            known.forget_stored();
            assert!(store.load(&server, "print").is_none());
        }
    }
}
