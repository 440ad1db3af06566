//! [`ToolsetCache`]: the toolsets that several requests share, until they are idle or the tokens that they were used with have ended.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::door::{Caller, TokenHolders};

/// The most toolsets that a cache holds. The least recently used one is dropped first, and one that is in use last.
const MAX_CACHED: usize = 1024;
/// How long a toolset is cached after its last request. Its own servers end with it.
pub(super) const IDLE: Duration = Duration::from_secs(10 * 60);
/// How often idle toolsets are dropped.
pub(super) const SWEEP: Duration = Duration::from_secs(60);

/// A toolset in a [`ToolsetCache`], with what belongs to it.
pub trait CachedToolset: Send + 'static {
    /// Whether it stays in the cache although no request has looked it up for long.
    fn is_in_use(&self, _now: Instant) -> bool {
        false
    }

    /// Whether it stays in the cache when the last of its tokens has expired, because its client may come back with a new token. It never
    /// outlives tokens that were revoked.
    fn awaits_client(&self, _now: Instant) -> bool {
        false
    }

    /// Drops what is no longer needed of it. Called every minute.
    fn sweep(&self, _now: Instant) {}
}

/// Toolsets by what they are opened for, such as a principal and its limits.
#[derive(Debug)]
pub struct ToolsetCache<K, T> {
    cached: Arc<Mutex<HashMap<K, Cached<T>>>>,
    sweeper: OnceLock<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Cached<T> {
    toolset: T,
    used: Instant,
    /// Whose tokens it was used with.
    holders: TokenHolders,
}

impl<K, T> Default for ToolsetCache<K, T> {
    fn default() -> Self {
        Self {
            cached: Arc::default(),
            sweeper: OnceLock::new(),
        }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, T: CachedToolset> ToolsetCache<K, T> {
    /// Looks up the toolset of `key` for a request of `caller`. `read` returns `None` if the toolset is outdated; it runs under the lock.
    pub fn get<R>(&self, key: &K, caller: &Caller, read: impl FnOnce(&T) -> Option<R>) -> Option<R> {
        let mut cached = self.cached.lock();
        if cached.get(key).is_some_and(Cached::has_ended) {
            let ended = cached.remove(key);
            drop(cached);
            drop(ended);
            return None;
        }
        let entry = cached.get_mut(key)?;
        let read = read(&entry.toolset)?;
        entry.used = Instant::now();
        entry.holders.add(caller, self.drop_ended(key));
        Some(read)
    }

    /// Caches a toolset that was opened for a request of `caller`, in place of the one that `key` had.
    pub fn insert(&self, key: K, caller: &Caller, toolset: T) {
        let mut holders = TokenHolders::default();
        holders.add(caller, self.drop_ended(&key));
        let entry = Cached {
            toolset,
            used: Instant::now(),
            holders,
        };
        let mut cached = self.cached.lock();
        let mut dropped = Vec::new();
        dropped.extend(cached.insert(key, entry));
        while cached.len() > MAX_CACHED {
            let now = Instant::now();
            let oldest = cached
                .iter()
                .min_by_key(|(_, entry)| (entry.toolset.is_in_use(now), entry.used));
            let oldest = oldest.map(|(key, _)| key.clone());
            dropped.extend(oldest.and_then(|oldest| cached.remove(&oldest)));
        }
        // Dropped without the lock, because that ends servers.
        drop(cached);
        drop(dropped);
        self.sweeper.get_or_init(|| {
            let cached = Arc::downgrade(&self.cached);
            AbortOnDropHandle::new(tokio::spawn(sweep(cached)))
        });
    }

    /// Returns the callback that drops a toolset when its last token ends. Requests that run on have it until they end.
    fn drop_ended(&self, key: &K) -> impl FnOnce() + Send + use<K, T> {
        let (cached, key) = (Arc::downgrade(&self.cached), key.clone());
        move || {
            let Some(cached) = cached.upgrade() else { return };
            let mut cached = cached.lock();
            let has_ended = cached.get(&key).is_some_and(Cached::has_ended);
            let dropped = if has_ended { cached.remove(&key) } else { None };
            drop(cached);
            drop(dropped);
        }
    }

    /// How many toolsets are cached.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.cached.lock().len()
    }
}

impl<T: CachedToolset> Cached<T> {
    fn has_ended(&self) -> bool {
        let awaits_client = self.holders.have_expired() && self.toolset.awaits_client(Instant::now());
        self.holders.have_ended() && !awaits_client
    }

    fn is_idle(&self, now: Instant) -> bool {
        now.duration_since(self.used) >= IDLE && !self.toolset.is_in_use(now)
    }
}

/// Drops idle toolsets until the cache is gone.
async fn sweep<K, T: CachedToolset>(cached: Weak<Mutex<HashMap<K, Cached<T>>>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(cached) = cached.upgrade() else { return };
        let now = Instant::now();
        let mut cached = cached.lock();
        let dropped: Vec<_> = cached.extract_if(|_, entry| entry.is_idle(now)).collect();
        for entry in cached.values() {
            entry.toolset.sweep(now);
        }
        drop(cached);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A toolset that is dropped as soon as it is idle.
    struct Plain;

    impl CachedToolset for Plain {}

    #[tokio::test(start_paused = true)]
    async fn a_toolset_is_shared_until_it_was_idle_for_long() {
        let cache = ToolsetCache::default();
        let caller = Caller::default();
        cache.insert("calls", &caller, Plain);
        cache.insert("calls", &caller, Plain);
        cache.insert("listings", &caller, Plain);
        assert_eq!(cache.len(), 2);
        tokio::time::sleep(IDLE - SWEEP).await;
        assert!(cache.get(&"calls", &caller, |Plain| Some(())).is_some());
        assert!(cache.get(&"listings", &caller, |Plain| None::<()>).is_none());
        tokio::time::sleep(2 * SWEEP).await;
        assert_eq!(cache.len(), 1, "an outdated toolset is not used by a look-up");
        tokio::time::sleep(IDLE + SWEEP).await;
        assert_eq!(cache.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_toolset_whose_tokens_have_ended_is_not_used_again_even_before_it_is_dropped() {
        let cache = ToolsetCache::default();
        let caller = || Caller {
            principal: Some("ada".into()),
            ..Caller::default()
        };
        let (before, after) = (caller(), caller());
        cache.insert("ada", &before, Plain);
        assert!(cache.get(&"ada", &before, |Plain| Some(())).is_some());
        before.revoked.revoke();
        // No other task has run since.
        assert!(cache.get(&"ada", &after, |Plain| Some(())).is_none());
        assert_eq!(cache.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_recently_used_toolset_makes_room() {
        let cache = ToolsetCache::default();
        let caller = Caller::default();
        for number in 0..MAX_CACHED {
            cache.insert(number, &caller, Plain);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(cache.get(&0, &caller, |Plain| Some(())).is_some());
        cache.insert(MAX_CACHED, &caller, Plain);
        assert_eq!(cache.len(), MAX_CACHED);
        assert!(cache.get(&0, &caller, |Plain| Some(())).is_some());
        assert!(cache.get(&1, &caller, |Plain| Some(())).is_none());
    }
}
