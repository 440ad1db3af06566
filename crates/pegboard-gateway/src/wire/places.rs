//! [`Places`]: a limit on what clients keep open, of which one principal gets no more than half.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pegboard::Principal;

/// The places for connections of one kind.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    taken: Mutex<HashMap<Option<Principal>, usize>>,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    principal: Option<Principal>,
}

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// Takes a place, unless none is left or the principal has its share. Clients without a token are one principal, and share all places.
    pub(super) fn take(self: &Arc<Self>, principal: Option<&Principal>) -> Option<Place> {
        let share = match principal {
            Some(_) => self.max.div_ceil(2),
            None => self.max,
        };
        let principal = principal.cloned();
        let mut taken = self.lock();
        let own = taken.get(&principal).copied().unwrap_or_default();
        if own >= share || taken.values().sum::<usize>() >= self.max {
            return None;
        }
        taken.insert(principal.clone(), own + 1);
        drop(taken);
        Some(Place {
            places: self.clone(),
            principal,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<Principal>, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(own) = taken.get_mut(&self.principal) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_leaves_half_of_the_places_to_others() {
        let places = Places::new(4);
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let of_alice: Vec<_> = (0..3).filter_map(|_| places.take(Some(&alice))).collect();
        assert_eq!(of_alice.len(), 2);
        let of_bob: Vec<_> = (0..3).filter_map(|_| places.take(Some(&bob))).collect();
        assert_eq!(of_bob.len(), 2);
        assert!(places.take(Some(&Principal::new("carol"))).is_none(), "none is left");
        drop(of_alice);
        assert!(places.take(Some(&bob)).is_none());
        assert!(places.take(Some(&alice)).is_some());
        drop(of_bob);
        assert!(places.lock().is_empty());
    }

    #[test]
    fn without_tokens_all_places_can_be_taken() {
        let places = Places::new(3);
        let taken: Vec<_> = (0..4).filter_map(|_| places.take(None)).collect();
        assert_eq!(taken.len(), 3);
    }
}
