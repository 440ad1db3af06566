//! [`InstanceHistory`]: what the instances of one server have last learned about it.
//!
//! Views open and close their own instances of a session-scoped server. What one of them has learned must outlast it: a failure, until an
//! instance is ready again, and the catalogue.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{outage::Outage, phase::Phase};
use crate::status::State;
use pegboard_base::sync::Mutex;
use pegboard_tools::catalog::{Catalog, CatalogDiff};

/// The last failure and the last catalogue of a server. Its instances share it, unless credentials set them apart.
#[derive(Debug, Default)]
pub(super) struct InstanceHistory {
    last: Mutex<Last>,
    /// Incremented when the catalogue changes. `None` for a server whose own revision counts.
    revision: Option<Arc<AtomicU64>>,
}

#[derive(Debug, Default)]
struct Last {
    /// The newest failure, until an instance is ready.
    outage: Option<Arc<Outage>>,
    catalog: Option<Arc<Catalog>>,
}

impl InstanceHistory {
    pub(super) fn new(revision: Option<Arc<AtomicU64>>) -> Arc<Self> {
        Arc::new(Self {
            last: Mutex::default(),
            revision,
        })
    }

    /// Records the new phase of an instance.
    pub(super) fn record(&self, phase: &Phase) {
        match phase {
            Phase::Ready(live) => self.record_ready(&live.ready.listed),
            Phase::Down(outage) if is_failure(phase.state()) => self.last.lock().outage = Some(outage.clone()),
            Phase::Down(_) | Phase::Disabled | Phase::Idle | Phase::Connecting(_) | Phase::Closed => {}
        }
    }

    fn record_ready(&self, catalog: &Arc<Catalog>) {
        let before = {
            let mut last = self.last.lock();
            last.outage = None;
            last.catalog.replace(catalog.clone())
        };
        let Some(revision) = &self.revision else { return };
        // Instances that list the same must not make the board's views rebuild their tables.
        let is_same = before
            .is_some_and(|before| Arc::ptr_eq(&before, catalog) || CatalogDiff::between(&before, catalog).is_empty());
        if !is_same {
            revision.fetch_add(1, Ordering::Release);
        }
    }

    /// The newest failure, unless an instance has been ready since.
    pub(super) fn outage(&self) -> Option<Arc<Outage>> {
        self.last.lock().outage.clone()
    }

    /// The catalogue that was listed last.
    pub(super) fn catalog(&self) -> Option<Arc<Catalog>> {
        self.last.lock().catalog.clone()
    }
}

/// Whether a state is that of a server which was tried and failed.
fn is_failure(state: State) -> bool {
    matches!(state, State::Down | State::CrashLooping | State::NeedsAuth)
}
