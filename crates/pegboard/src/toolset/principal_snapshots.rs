//! Snapshots that the toolsets of one principal share, so that a toolset per request does not build a route table of its own.

use std::sync::Arc;

use pegboard_base::sync::Mutex;

use super::{snapshot::Snapshot, snapshot_rules::SnapshotRules};
use crate::call::View;

/// The most snapshots of one principal. The views of a principal rarely differ.
const MAX_SNAPSHOTS: usize = 4;

/// The snapshots of one principal, the newest last. They end with its servers.
#[derive(Debug, Default)]
pub(super) struct PrincipalSnapshots(Mutex<Vec<PrincipalSnapshot>>);

#[derive(Debug)]
struct PrincipalSnapshot {
    /// The revisions of the board and of the principal's servers, before the snapshot was built.
    revision: (u64, u64),
    rules: SnapshotRules,
    snapshot: Arc<Snapshot>,
}

impl PrincipalSnapshots {
    /// The snapshot of this revision for views with the rules of `view`.
    pub(super) fn find(&self, revision: (u64, u64), view: &View) -> Option<Arc<Snapshot>> {
        let kept = self.0.lock();
        let found = kept
            .iter()
            .find(|kept| kept.revision == revision && kept.rules.are_those_of(view))?;
        Some(found.snapshot.clone())
    }

    /// Keeps a snapshot. Those of older revisions, and the oldest ones if there are too many, are dropped.
    pub(super) fn insert(&self, revision: (u64, u64), view: &View, snapshot: &Arc<Snapshot>) {
        let new = PrincipalSnapshot {
            revision,
            rules: SnapshotRules::new(view),
            snapshot: snapshot.clone(),
        };
        let mut kept = self.0.lock();
        let (outdated, mut current): (Vec<_>, Vec<_>) = kept
            .drain(..)
            .partition(|kept| kept.revision != revision || kept.rules.are_those_of(view));
        let surplus = (current.len() + 1).saturating_sub(MAX_SNAPSHOTS);
        let surplus: Vec<_> = current.drain(..surplus).collect();
        current.push(new);
        *kept = current;
        // They may hold the last handles to servers.
        drop(kept);
        drop((outdated, surplus));
    }
}
