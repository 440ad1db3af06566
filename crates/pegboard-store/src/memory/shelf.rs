//! [`Shelf`]: entries of one sort with the times when they expire.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
};

use bytes::Bytes;

use crate::{key::Key, lease::LeaseState, log::LogState, rate::Bucket};

/// What an entry takes beside its content: its key twice, and its places in the two maps.
const ENTRY: usize = 256;

/// What counts against the bounds of a store.
pub(super) trait Weigh {
    /// The number of bytes, about.
    fn weight(&self) -> usize;
}

impl Weigh for Bytes {
    fn weight(&self) -> usize {
        self.len() + ENTRY
    }
}

impl Weigh for LogState {
    fn weight(&self) -> usize {
        self.bytes + (self.entries.len() + 1) * ENTRY
    }
}

impl Weigh for Bucket {
    fn weight(&self) -> usize {
        ENTRY
    }
}

impl Weigh for LeaseState {
    fn weight(&self) -> usize {
        self.holder.len() + ENTRY
    }
}

/// Entries by key, and in the order in which they expire.
pub(super) struct Shelf<T> {
    entries: BTreeMap<Key, (T, u64)>,
    expiries: BTreeSet<(u64, Key)>,
    bytes: usize,
}

impl<T> fmt::Debug for Shelf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, bytes, .. } = self;
        f.debug_struct("Shelf")
            .field("entries", &entries.len())
            .field("bytes", bytes)
            .finish()
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            expiries: BTreeSet::new(),
            bytes: 0,
        }
    }
}

impl<T: Weigh> Shelf<T> {
    /// The number of entries, and their size.
    pub(super) fn weight(&self) -> (usize, usize) {
        (self.entries.len(), self.bytes)
    }

    pub(super) fn get(&self, key: &Key, now_micros: u64) -> Option<&T> {
        let (entry, expires) = self.entries.get(key)?;
        (*expires > now_micros).then_some(entry)
    }

    pub(super) fn insert(&mut self, key: &Key, entry: T, expires_micros: u64) {
        self.drop_entry(key);
        self.bytes += entry.weight();
        self.expiries.insert((expires_micros, key.clone()));
        self.entries.insert(key.clone(), (entry, expires_micros));
    }

    pub(super) fn remove(&mut self, key: &Key, now_micros: u64) -> Option<T> {
        let (entry, expires) = self.drop_entry(key)?;
        (expires > now_micros).then_some(entry)
    }

    /// Removes what has expired.
    pub(super) fn sweep(&mut self, now_micros: u64) {
        while let Some((expires, key)) = self.expiries.first().cloned() {
            if expires > now_micros {
                break;
            }
            self.drop_entry(&key);
        }
    }

    /// The entries whose keys have one part more than `parent`, in the order of their keys.
    pub(super) fn children<'a>(&'a self, parent: &'a Key, now_micros: u64) -> impl Iterator<Item = (&'a Key, &'a T)> {
        let from = (Bound::Excluded(parent), Bound::Unbounded);
        let below = self.entries.range::<Key, _>(from);
        // Characters such as `-` are ordered before the separator, so keys of other parents can be in between.
        below
            .take_while(|(key, _)| key.as_str().starts_with(parent.as_str()))
            .filter(move |(key, (_, expires))| key.parent() == Some(parent.as_str()) && *expires > now_micros)
            .map(|(key, (entry, _))| (key, entry))
    }

    fn drop_entry(&mut self, key: &Key) -> Option<(T, u64)> {
        let (entry, expires) = self.entries.remove(key)?;
        self.expiries.remove(&(expires, key.clone()));
        self.bytes -= entry.weight();
        Some((entry, expires))
    }
}
