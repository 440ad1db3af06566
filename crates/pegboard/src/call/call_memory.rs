//! [`CallMemories`]: what the toolsets of a principal remember of their calls, so that a toolset per request is as good as one that is kept.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    cache::Cache,
    idempotency::{self, IdempotencyKeys},
};
use crate::spill::{Spill, SpillLimits};
use pegboard_base::caller::Principal;
use pegboard_base::sync::Mutex;
use pegboard_client::credential::{CallerRights, CredentialsKey};

/// How long a memory outlives its last toolset: as long as a reply is kept for its idempotency key.
const KEPT_FOR: Duration = idempotency::LIFETIME;
/// How many memories without a toolset are kept. Their outputs are files, of up to [`SpillLimits::bytes`] each, so they are few.
const MAX_IDLE: usize = 64;
/// The least time between two searches for memories that are not needed any more.
const SWEEP: Duration = Duration::from_secs(60);

/// Cached answers, replies by idempotency key, and spilled outputs.
#[derive(Debug, Clone)]
pub(crate) struct CallMemory {
    pub(super) cache: Arc<Cache>,
    pub(super) idempotency_keys: Arc<IdempotencyKeys>,
    pub(crate) spill: Spill,
    /// Whether it outlives the toolset.
    is_shared: bool,
}

impl CallMemory {
    /// Creates the memory of one toolset.
    pub(crate) fn new(limits: &SpillLimits) -> Self {
        Self {
            cache: Arc::default(),
            idempotency_keys: Arc::default(),
            spill: Spill::new(limits.clone()),
            is_shared: false,
        }
    }

    /// Removes the outputs, unless another toolset may read them.
    pub(crate) async fn close(&self) {
        if !self.is_shared {
            self.spill.close().await;
        }
    }

    /// Whether no toolset has it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.cache) == 1
    }
}

/// Whose memory it is: that of a principal, for views that may do the same with the same limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MemoryOwner {
    pub(crate) principal: Principal,
    pub(crate) rights: Option<CallerRights>,
    pub(crate) credentials: Option<CredentialsKey>,
    /// What the view fills into header templates, such as a tenant.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) limits: SpillLimits,
}

/// The memories of a board's principals.
#[derive(Debug, Default)]
pub(crate) struct CallMemories(Mutex<OwnerMemories>);

#[derive(Debug, Default)]
struct OwnerMemories {
    by_owner: HashMap<MemoryOwner, OwnerMemory>,
    swept: Option<Instant>,
    /// How many were left by the last sweep.
    left: usize,
}

#[derive(Debug)]
struct OwnerMemory {
    memory: CallMemory,
    /// When a toolset was last seen to have it.
    used: Instant,
}

impl CallMemories {
    /// The memory of an owner, for a new toolset.
    pub(crate) fn open(&self, owner: MemoryOwner) -> CallMemory {
        let now = Instant::now();
        let mut kept = self.0.lock();
        let entry = kept.by_owner.entry(owner).or_insert_with_key(|owner| OwnerMemory {
            memory: CallMemory {
                is_shared: true,
                ..CallMemory::new(&owner.limits)
            },
            used: now,
        });
        entry.used = now;
        let memory = entry.memory.clone();
        let dropped = kept.sweep(now);
        // Dropped without the lock, because that removes files.
        drop(kept);
        drop(dropped);
        memory
    }

    /// Drops all memories. Those of toolsets that are open end with them.
    pub(crate) fn clear(&self) {
        let kept = std::mem::take(&mut *self.0.lock());
        drop(kept);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().by_owner.len()
    }
}

impl OwnerMemories {
    /// Takes the memories that are not needed any more. Does nothing most of the time, so that opening a toolset costs the same however many
    /// there are.
    fn sweep(&mut self, now: Instant) -> Vec<OwnerMemory> {
        let is_due = self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP);
        if !is_due && self.by_owner.len() <= 2 * self.left + MAX_IDLE {
            return Vec::new();
        }
        let mut idle = Vec::new();
        for (owner, entry) in &mut self.by_owner {
            match entry.memory.is_idle() {
                true => idle.push((entry.used, owner.clone())),
                false => entry.used = now,
            }
        }
        idle.sort_by_key(|(used, _)| *used);
        let surplus = idle.len().saturating_sub(MAX_IDLE);
        let is_over = |owner: &MemoryOwner| owner.credentials.as_ref().is_some_and(CredentialsKey::is_unused);
        let ended = idle.into_iter().enumerate().filter(|(number, (used, owner))| {
            *number < surplus || now.duration_since(*used) >= KEPT_FOR || is_over(owner)
        });
        let ended: Vec<_> = ended
            .filter_map(|(_, (_, owner))| self.by_owner.remove(&owner))
            .collect();
        self.swept = Some(now);
        self.left = self.by_owner.len();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(principal: &str) -> MemoryOwner {
        MemoryOwner {
            principal: Principal::new(principal),
            rights: None,
            credentials: None,
            variables: BTreeMap::new(),
            limits: SpillLimits::default(),
        }
    }

    fn is_same(one: &CallMemory, other: &CallMemory) -> bool {
        Arc::ptr_eq(&one.cache, &other.cache) && Arc::ptr_eq(&one.idempotency_keys, &other.idempotency_keys)
    }

    #[tokio::test(start_paused = true)]
    async fn toolsets_share_a_memory_if_nothing_of_their_owner_differs() {
        let memories = CallMemories::default();
        let first = memories.open(owner("ada"));
        assert!(is_same(&first, &memories.open(owner("ada"))));
        let limits = SpillLimits {
            files: 1,
            ..SpillLimits::default()
        };
        let name = |name: &str| Some(CredentialsKey::from_name(name.to_owned(), None));
        for other in [
            owner("bob"),
            MemoryOwner {
                rights: Some(CallerRights::new([1; 32])),
                ..owner("ada")
            },
            MemoryOwner {
                credentials: name("reads"),
                ..owner("ada")
            },
            MemoryOwner {
                variables: BTreeMap::from([("TENANT".to_owned(), "blue".to_owned())]),
                ..owner("ada")
            },
            MemoryOwner { limits, ..owner("ada") },
        ] {
            assert!(!is_same(&first, &memories.open(other)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_memory_outlives_its_last_toolset_for_a_while() {
        let memories = CallMemories::default();
        let first = memories.open(owner("ada"));
        let keys = Arc::downgrade(&first.idempotency_keys);
        drop(first);
        tokio::time::sleep(KEPT_FOR - SWEEP).await;
        drop(memories.open(owner("bob")));
        assert!(keys.upgrade().is_some());
        tokio::time::sleep(2 * SWEEP).await;
        let _open = memories.open(owner("cleo"));
        assert!(keys.upgrade().is_none());
        assert_eq!(memories.len(), 2, "bob was there later");
    }

    #[tokio::test(start_paused = true)]
    async fn memories_without_a_toolset_are_bounded_and_those_in_use_stay() {
        let memories = CallMemories::default();
        let used = memories.open(owner("ada"));
        for number in 0..10_000 {
            drop(memories.open(owner(&format!("user-{number}"))));
            assert!(memories.len() <= 3 * MAX_IDLE + 4, "{}", memories.len());
        }
        assert!(is_same(&used, &memories.open(owner("ada"))));
    }
}
