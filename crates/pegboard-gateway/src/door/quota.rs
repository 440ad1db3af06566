//! [`PrincipalQuota`]: a limit on what clients hold, of which one principal gets no more than half.

use std::{collections::HashMap, sync::Arc};

use pegboard::Principal;
use pegboard_base::sync::Mutex;

/// The permits for things of one kind, such as connections.
#[derive(Debug)]
pub struct PrincipalQuota {
    max: usize,
    taken: Mutex<HashMap<Option<Principal>, usize>>,
}

/// Some of the permits, free again when this is dropped.
#[derive(Debug)]
pub struct QuotaPermit {
    quota: Arc<PrincipalQuota>,
    principal: Option<Principal>,
    count: usize,
}

impl PrincipalQuota {
    /// Creates `max` permits, all of them free.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// Takes a permit, unless none is left or the principal has its share. Clients without a token are one principal, and share all permits.
    pub fn try_acquire(self: &Arc<Self>, principal: Option<&Principal>) -> Option<QuotaPermit> {
        let mut permit = QuotaPermit {
            quota: self.clone(),
            principal: principal.cloned(),
            count: 0,
        };
        permit.try_grow_to(1).then_some(permit)
    }

    /// How many permits are free.
    #[cfg(test)]
    pub(crate) fn free_permits(&self) -> usize {
        self.max - self.taken.lock().values().sum::<usize>()
    }
}

impl QuotaPermit {
    /// Takes more permits, until it has `count`. Returns `false` and takes none if too few are left, or the principal would have more than its
    /// share.
    pub fn try_grow_to(&mut self, count: usize) -> bool {
        let more = count.saturating_sub(self.count);
        let max = self.quota.max;
        let share = if self.principal.is_some() { max.div_ceil(2) } else { max };
        let mut taken = self.quota.taken.lock();
        let own = taken.get(&self.principal).copied().unwrap_or_default();
        if own + more > share || taken.values().sum::<usize>() + more > max {
            return false;
        }
        if more > 0 {
            taken.insert(self.principal.clone(), own + more);
        }
        drop(taken);
        self.count += more;
        true
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut taken = self.quota.taken.lock();
        if let Some(own) = taken.get_mut(&self.principal) {
            *own -= self.count;
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
    fn a_principal_leaves_half_of_the_permits_to_others() {
        let quota = PrincipalQuota::new(4);
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let of_alice: Vec<_> = (0..3).filter_map(|_| quota.try_acquire(Some(&alice))).collect();
        assert_eq!(of_alice.len(), 2);
        let of_bob: Vec<_> = (0..3).filter_map(|_| quota.try_acquire(Some(&bob))).collect();
        assert_eq!(of_bob.len(), 2);
        assert!(
            quota.try_acquire(Some(&Principal::new("carol"))).is_none(),
            "none is left"
        );
        drop(of_alice);
        assert!(quota.try_acquire(Some(&bob)).is_none());
        assert!(quota.try_acquire(Some(&alice)).is_some());
        drop(of_bob);
        assert!(quota.taken.lock().is_empty());
    }

    #[test]
    fn without_tokens_all_permits_can_be_taken() {
        let quota = PrincipalQuota::new(3);
        let taken: Vec<_> = (0..4).filter_map(|_| quota.try_acquire(None)).collect();
        assert_eq!(taken.len(), 3);
    }
}
