//! The principals of a board, and the servers that only their views use.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::{task::AbortHandle, time::Instant};

use crate::server::{server_handle::Server, view_instances::ViewInstances};
use pegboard_base::caller::Principal;
use pegboard_client::credential::{CallerRights, CredentialsKey};

/// How long the servers of a principal outlive its last view. A service that opens a view per request keeps the connections of an active user.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How many principals without views are kept. The one whose last view was closed first is dropped first. At about two connections each, this
/// stays below the usual limit of open files.
pub(super) const MAX_KEPT: usize = 256;

/// What views must have in common to share servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PrincipalKey {
    pub(super) principal: Principal,
    pub(super) rights: Option<CallerRights>,
    /// `None` for views that have only the credentials of the config.
    pub(super) credentials: Option<CredentialsKey>,
}

/// What the end of a view leaves.
#[derive(Debug)]
#[must_use]
pub(super) enum Left {
    /// Other views of its principal.
    Views,
    /// A principal without views, which is kept for a while.
    Idle,
    /// A principal that ends, because no view can have its credentials again.
    Ended(Option<EndedPrincipal>),
}

/// The principals of a board.
#[derive(Debug, Default)]
pub(super) struct Principals {
    known: HashMap<PrincipalKey, KnownPrincipal>,
    /// The principals without views, in the order in which their last view was closed.
    idle: BTreeMap<u64, (Instant, PrincipalKey)>,
    next_idle: u64,
    /// Ends idle principals; set while there are any.
    pub(super) reaper: Option<AbortHandle>,
}

/// A principal that is kept no longer. Dropping it closes its servers and runs the program's code (the provider and the host), so no lock may
/// be held.
#[derive(Debug)]
#[must_use]
pub(super) struct EndedPrincipal {
    _servers: Vec<Server>,
    _instances: Arc<ViewInstances>,
}

#[derive(Debug)]
struct KnownPrincipal {
    instances: Arc<ViewInstances>,
    /// How many views are open.
    views: usize,
    /// The key in `idle`, while there are none.
    idle: Option<u64>,
}

impl Principals {
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ViewInstances>> {
        self.known.values().map(|known| &known.instances)
    }

    /// Counts a new view of a principal. Returns the principal's servers, and whether it was known.
    pub(super) fn open(
        &mut self,
        key: &PrincipalKey,
        make: impl FnOnce() -> Arc<ViewInstances>,
    ) -> (Arc<ViewInstances>, bool) {
        if let Some(known) = self.known.get_mut(key) {
            known.views += 1;
            if let Some(idle) = known.idle.take() {
                self.idle.remove(&idle);
            }
            return (known.instances.clone(), true);
        }
        let instances = make();
        let known = KnownPrincipal {
            instances: instances.clone(),
            views: 1,
            idle: None,
        };
        self.known.insert(key.clone(), known);
        (instances, false)
    }

    /// Counts the end of a view.
    pub(super) fn leave(&mut self, key: &PrincipalKey, now: Instant) -> Left {
        let Some(known) = self.known.get_mut(key) else {
            return Left::Views;
        };
        known.views = known.views.saturating_sub(1);
        if known.views > 0 {
            return Left::Views;
        }
        if key.credentials.as_ref().is_some_and(CredentialsKey::is_unused) {
            return Left::Ended(self.take(key));
        }
        let number = self.next_idle;
        self.next_idle += 1;
        known.idle = Some(number);
        self.idle.insert(number, (now, key.clone()));
        Left::Idle
    }

    /// Removes idle principals, the oldest first, until at most `most` are left.
    pub(super) fn take_surplus(&mut self, most: usize) -> Vec<EndedPrincipal> {
        let mut ended = Vec::new();
        while self.idle.len() > most {
            let Some((_, (_, key))) = self.idle.pop_first() else {
                break;
            };
            ended.extend(self.take(&key));
        }
        ended
    }

    /// Removes the principals whose time is over.
    pub(super) fn take_expired(&mut self) -> Vec<EndedPrincipal> {
        let now = Instant::now();
        let is_over = |(since, _): &(Instant, PrincipalKey)| now.duration_since(*since) >= KEPT_FOR;
        let expired = self.idle.values().take_while(|idle| is_over(idle)).count();
        self.take_surplus(self.idle.len() - expired)
    }

    fn take(&mut self, key: &PrincipalKey) -> Option<EndedPrincipal> {
        let known = self.known.remove(key)?;
        Some(EndedPrincipal {
            _servers: known.instances.end(),
            _instances: known.instances,
        })
    }

    /// When the next principal ends. `None` ends the reaper.
    pub(super) fn next_end(&mut self) -> Option<Instant> {
        let next = self.idle.values().next().map(|(since, _)| *since + KEPT_FOR);
        if next.is_none() {
            self.reaper = None;
        }
        next
    }

    /// How many principals are known, with and without views.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
