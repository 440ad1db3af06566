//! [`MemoryStore`]: state of one process.

mod shelf;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use self::shelf::{Shelf, Weigh};
use crate::{
    error::{Refusal, StoreError},
    key::Key,
    lease::{FENCE_MEMORY, Lease, LeaseAttempt, LeaseState},
    limits::{LISTING_VALUES, Limits, MAX_HOLDER, MAX_LISTED, check_size, ttl_micros},
    log::{LogBounds, LogRead, LogState},
    rate::{Bucket, Draw, Rate},
    store::{Answer, Store},
    value::{Listing, PutFenced, PutNew, Replaced, Value, Version},
};

/// State in the memory of this process, which ends with it. When it is full, new entries are refused; nothing is forgotten before its time.
#[derive(Debug)]
pub struct MemoryStore {
    limits: Limits,
    bounds: MemoryBounds,
    shelves: Mutex<Shelves>,
    started: Instant,
    started_micros: u64,
}

/// How much a [`MemoryStore`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBounds {
    /// The number of values, logs, buckets and leases together.
    pub entries: usize,
    /// Their size together.
    pub bytes: usize,
}

impl Default for MemoryBounds {
    fn default() -> Self {
        Self {
            entries: 200_000,
            bytes: 256 * 1024 * 1024,
        }
    }
}

/// What a change adds to the weight of a store.
#[derive(Clone, Copy)]
enum Added {
    /// An entry of this weight.
    New(usize),
    /// This much to an entry that is there.
    Grown(usize),
}

impl Added {
    /// What it adds to store `new` in the place of `old`.
    fn between<T: Weigh>(old: Option<&T>, new: &T) -> Self {
        match old {
            None => Self::New(new.weight()),
            Some(old) => Self::Grown(new.weight().saturating_sub(old.weight())),
        }
    }
}

#[derive(Debug, Default)]
struct Shelves {
    values: Shelf<Bytes>,
    logs: Shelf<LogState>,
    buckets: Shelf<Bucket>,
    leases: Shelf<LeaseState>,
}

impl MemoryStore {
    /// Creates an empty store with the bounds of every store.
    pub fn new() -> Self {
        Self::with_limits(Limits::default(), MemoryBounds::default())
    }

    /// Creates an empty store.
    pub fn with_limits(limits: Limits, bounds: MemoryBounds) -> Self {
        let started_micros = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros();
        Self {
            limits,
            bounds,
            shelves: Mutex::default(),
            started: Instant::now(),
            started_micros: u64::try_from(started_micros).unwrap_or_default(),
        }
    }

    /// The time of this store. It does not go back, and stands still where tokio's clock does.
    fn now_micros(&self) -> u64 {
        self.started_micros + u64::try_from(self.started.elapsed().as_micros()).unwrap_or_default()
    }

    /// Runs one operation, which nothing else interrupts.
    fn run<'a, T: Send + 'a>(
        &'a self,
        operation: impl FnOnce(&mut Shelves, u64) -> Result<T, StoreError> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move { operation(&mut self.shelves.lock(), self.now_micros()) })
    }

    /// Makes room for an entry of this weight, by removing what has expired.
    fn make_room(&self, shelves: &mut Shelves, added: Added, now_micros: u64) -> Result<(), StoreError> {
        shelves.sweep(now_micros);
        if self.has_room(shelves, added) {
            return Ok(());
        }
        Err(StoreError::Refused {
            address: Arc::from("memory"),
            refusal: Refusal::Full,
        })
    }

    fn has_room(&self, shelves: &Shelves, added: Added) -> bool {
        let (entries, bytes) = shelves.weight();
        let added = match added {
            Added::New(_) if entries >= self.bounds.entries => return false,
            Added::New(weight) | Added::Grown(weight) => weight,
        };
        bytes.saturating_add(added) <= self.bounds.bytes
    }

    fn store_value(
        &self,
        shelves: &mut Shelves,
        key: &Key,
        value: Bytes,
        ttl: Duration,
        now: u64,
    ) -> Result<(), StoreError> {
        self.limits.check("the value", value.len())?;
        let added = Added::between(shelves.values.get(key, now), &value);
        self.make_room(shelves, added, now)?;
        shelves.values.insert(key, value, now + ttl_micros(ttl));
        Ok(())
    }
}

impl Shelves {
    fn weight(&self) -> (usize, usize) {
        let weights = [
            self.values.weight(),
            self.logs.weight(),
            self.buckets.weight(),
            self.leases.weight(),
        ];
        weights
            .iter()
            .fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
    }

    fn sweep(&mut self, now_micros: u64) {
        self.values.sweep(now_micros);
        self.logs.sweep(now_micros);
        self.buckets.sweep(now_micros);
        self.leases.sweep(now_micros);
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        self.run(move |shelves, now| Ok(shelves.values.get(key, now).cloned().map(Value::plain)))
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        self.run(move |shelves, now| self.store_value(shelves, key, value, ttl, now))
    }

    fn put_new<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, PutNew> {
        self.run(move |shelves, now| {
            self.limits.check("the value", value.len())?;
            if let Some(there) = shelves.values.get(key, now) {
                return Ok(PutNew::Exists(Value::plain(there.clone())));
            }
            self.store_value(shelves, key, value.clone(), ttl, now)?;
            Ok(PutNew::Stored(Version(value)))
        })
    }

    fn replace<'a>(&'a self, key: &'a Key, expected: &'a Version, new: Bytes, ttl: Duration) -> Answer<'a, Replaced> {
        self.run(move |shelves, now| {
            self.limits.check("the value", new.len())?;
            let there = shelves.values.get(key, now).cloned();
            if there.as_ref() != Some(&expected.0) {
                return Ok(Replaced::Lost(there.map(Value::plain)));
            }
            self.store_value(shelves, key, new.clone(), ttl, now)?;
            Ok(Replaced::Stored(Version(new)))
        })
    }

    fn take<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        self.run(move |shelves, now| Ok(shelves.values.remove(key, now).map(Value::plain)))
    }

    fn remove<'a>(&'a self, key: &'a Key) -> Answer<'a, bool> {
        self.run(move |shelves, now| Ok(shelves.values.remove(key, now).is_some()))
    }

    fn list<'a>(&'a self, parent: &'a Key, max: usize) -> Answer<'a, Listing> {
        self.run(move |shelves, now| {
            let mut listing = Listing::default();
            let mut bytes = 0;
            for (key, value) in shelves.values.children(parent, now) {
                bytes += value.len();
                if listing.values.len() == max.min(MAX_LISTED) || bytes > self.limits.value_bytes * LISTING_VALUES {
                    listing.more = true;
                    break;
                }
                listing.values.push((key.clone(), Value::plain(value.clone())));
            }
            Ok(listing)
        })
    }

    fn append<'a>(&'a self, key: &'a Key, entries: Vec<Bytes>, bounds: LogBounds, ttl: Duration) -> Answer<'a, u64> {
        self.run(move |shelves, now| {
            self.limits.check_entries(&entries)?;
            let weight = entries.iter().map(Weigh::weight).sum();
            let is_new = shelves.logs.get(key, now).is_none();
            self.make_room(
                shelves,
                if is_new {
                    Added::New(weight)
                } else {
                    Added::Grown(weight)
                },
                now,
            )?;
            let mut log = shelves.logs.remove(key, now).unwrap_or_else(|| LogState::new(now));
            let end = log.append(entries, bounds);
            shelves.logs.insert(key, log, now + ttl_micros(ttl));
            Ok(end)
        })
    }

    fn read_after<'a>(&'a self, key: &'a Key, position: u64, max: usize) -> Answer<'a, LogRead> {
        self.run(move |shelves, now| {
            let read = |log: &LogState| log.read_after(position, max, self.limits.value_bytes);
            Ok(shelves
                .logs
                .get(key, now)
                .map_or_else(|| LogState::read_nothing(position), read))
        })
    }

    fn draw<'a>(&'a self, key: &'a Key, rate: Rate, amount: u32) -> Answer<'a, Draw> {
        self.run(move |shelves, now| {
            let known = shelves.buckets.get(key, now).copied();
            let mut bucket = known.unwrap_or_else(|| Bucket::full(rate, now));
            let draw = bucket.draw(rate, amount, now);
            self.make_room(shelves, Added::between(known.as_ref(), &bucket), now)?;
            shelves
                .buckets
                .insert(key, bucket, now + ttl_micros(bucket.full_after(rate)));
            Ok(draw)
        })
    }

    fn lease<'a>(&'a self, key: &'a Key, holder: &'a str, ttl: Duration) -> Answer<'a, LeaseAttempt> {
        self.run(move |shelves, now| {
            check_size("the holder's name", holder.len(), MAX_HOLDER)?;
            let known = shelves.leases.get(key, now).cloned();
            let mut lease = known.clone().unwrap_or_default();
            let attempt = lease.acquire(key, holder, ttl, now);
            if matches!(attempt, LeaseAttempt::Leased(_)) {
                self.make_room(shelves, Added::between(known.as_ref(), &lease), now)?;
                shelves
                    .leases
                    .insert(key, lease, now + ttl_micros(ttl.saturating_add(FENCE_MEMORY)));
            }
            Ok(attempt)
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Answer<'a, bool> {
        self.run(move |shelves, now| {
            let Some(mut state) = shelves.leases.get(&lease.key, now).cloned() else {
                return Ok(false);
            };
            let is_held = state.renew(lease, ttl, now);
            if is_held {
                shelves
                    .leases
                    .insert(&lease.key, state, now + ttl_micros(ttl.saturating_add(FENCE_MEMORY)));
            }
            Ok(is_held)
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        self.run(move |shelves, now| {
            let Some(mut state) = shelves.leases.get(&lease.key, now).cloned() else {
                return Ok(false);
            };
            let is_held = state.release(lease, now);
            if is_held {
                shelves.leases.insert(&lease.key, state, now + ttl_micros(FENCE_MEMORY));
            }
            Ok(is_held)
        })
    }

    fn put_fenced<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration, lease: &'a Lease) -> Answer<'a, PutFenced> {
        self.run(move |shelves, now| {
            self.limits.check("the value", value.len())?;
            let newest = shelves.leases.get(&lease.key, now).map(|state| state.fence);
            if newest != Some(lease.fence) {
                return Ok(PutFenced::Refused);
            }
            self.store_value(shelves, key, value, ttl, now)?;
            Ok(PutFenced::Stored)
        })
    }

    fn ping(&self) -> Answer<'_, ()> {
        self.run(|_, _| Ok(()))
    }

    fn max_value_bytes(&self) -> usize {
        self.limits.value_bytes
    }
}
