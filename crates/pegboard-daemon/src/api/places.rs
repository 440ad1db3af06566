//! [`Places`]: a bound on something that clients have open, of which one principal gets no more than half.

use std::{collections::HashMap, sync::Arc};

use pegboard::Principal;
use pegboard_base::sync::Mutex;

/// A number of places.
#[derive(Clone, Debug)]
pub(super) struct Places {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_principal: HashMap<Principal, usize>,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    principal: Option<Principal>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Arc::default(),
        }
    }

    /// Takes a place; `None` if all are taken, or half of them by this principal.
    pub(super) fn take(&self, principal: Option<&Principal>) -> Option<Place> {
        let mut taken = self.taken.lock();
        let own = principal
            .and_then(|principal| taken.by_principal.get(principal))
            .copied();
        let own = own.unwrap_or_default();
        if taken.all >= self.most || (principal.is_some() && own >= self.most.div_ceil(2)) {
            return None;
        }
        taken.all += 1;
        if let Some(principal) = principal {
            taken.by_principal.insert(principal.clone(), own + 1);
        }
        drop(taken);
        Some(Place {
            places: self.clone(),
            principal: principal.cloned(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        let Some(principal) = &self.principal else { return };
        match taken.by_principal.get_mut(principal) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                taken.by_principal.remove(principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_gets_half_and_a_board_without_tokens_all() {
        let places = Places::new(4);
        let (ada, ben) = (Principal::new("ada"), Principal::new("ben"));
        let of_ada: Vec<_> = std::iter::from_fn(|| places.take(Some(&ada))).collect();
        assert_eq!(of_ada.len(), 2);
        let of_ben: Vec<_> = std::iter::from_fn(|| places.take(Some(&ben))).collect();
        assert_eq!(of_ben.len(), 2);
        assert!(places.take(None).is_none());
        drop((of_ada, of_ben));
        assert!(places.taken.lock().by_principal.is_empty());
        assert_eq!(
            std::iter::from_fn(|| places.take(None))
                .take(9)
                .map(std::mem::forget)
                .count(),
            4
        );
    }
}
