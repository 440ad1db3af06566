//! [`FileStore`]: state in a folder that several processes of a user share.

mod folder;
mod record;
mod sweep;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use tokio::{sync::Semaphore, time::Instant};

use self::{
    folder::{Folder, Locked, Sort},
    sweep::Sweeper,
};
use crate::{
    error::StoreError,
    key::Key,
    lease::{FENCE_MEMORY, Lease, LeaseAttempt, LeaseState},
    limits::{LISTING_VALUES, Limits, MAX_HOLDER, MAX_LISTED, check_size, ttl_micros},
    log::{LogBounds, LogRead, LogState},
    rate::{Bucket, Draw, Rate},
    store::{Answer, Store},
    value::{Listing, PutFenced, PutNew, Replaced, Value, Version},
};

/// The most operations that occupy a thread at the same time. Others wait.
const MAX_THREADS: usize = 16;

/// State in a folder. Each entry is a file, which is replaced at once, and every change holds a lock that ends with its process. The time is that of
/// the system's clock, which must be the same on all machines that share the folder. What is stored is not forced to the disk: after a loss of power
/// an entry may be gone, or be [`StoreError::Damaged`].
///
/// A log is one file, which every append writes anew.
#[derive(Debug, Clone)]
pub struct FileStore {
    limits: Limits,
    shared: Arc<Shared>,
    threads: Arc<Semaphore>,
}

#[derive(Debug)]
struct Shared {
    folder: Folder,
    sweeper: Sweeper,
}

impl FileStore {
    /// Opens the store in a folder, which is created if there is none. Fails if another user owns it or may write to it, or if it has files that are
    /// not those of a store.
    pub async fn open(folder: &Path, limits: Limits) -> Result<Self, StoreError> {
        let folder = Folder::new(folder, limits);
        let store = Self {
            limits,
            shared: Arc::new(Shared {
                folder,
                sweeper: Sweeper::default(),
            }),
            threads: Arc::new(Semaphore::new(MAX_THREADS)),
        };
        store.run(|shared, _| shared.folder.prepare()).await?;
        Ok(store)
    }

    /// Runs an operation on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Shared, Instant) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + self.limits.time;
        let (shared, threads) = (self.shared.clone(), self.threads.clone());
        let running = async {
            let permit = threads.acquire_owned().await;
            // The permit stays with a thread that takes too long, so that no more than `MAX_THREADS` hang.
            let blocking = move || {
                let _permit = permit;
                operation(&shared, deadline)
            };
            let failed = |error| self.shared.folder.unreachable(std::io::Error::other(error));
            tokio::task::spawn_blocking(blocking).await.map_err(failed)?
        };
        let timed_out = |_| self.shared.folder.timed_out();
        tokio::time::timeout_at(deadline, running).await.map_err(timed_out)?
    }

    /// Runs an operation that changes an entry, and nothing else changes it meanwhile.
    async fn change<T: Send + 'static>(
        &self,
        key: &Key,
        operation: impl FnOnce(Locked<'_>, &Key, u64) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let key = key.clone();
        self.run(move |shared, deadline| {
            let locked = shared.folder.lock(&[&key], deadline)?;
            let result = operation(locked, &key, now_micros());
            shared.sweeper.step(&shared.folder, now_micros());
            result
        })
        .await
    }

    fn check_value(&self, value: &Bytes) -> Result<(), StoreError> {
        self.limits.check("the value", value.len())
    }
}

/// The time of the system's clock.
fn now_micros() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or_default()
}

/// How long a lease stays on disk.
fn lease_expiry(ttl: Duration, now: u64) -> u64 {
    now + ttl_micros(ttl.saturating_add(FENCE_MEMORY))
}

impl Store for FileStore {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        let key = key.clone();
        Box::pin(self.run(move |shared, _| {
            let value = shared.folder.read(Sort::Value, &key, now_micros())?;
            Ok(value.map(Value::plain))
        }))
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            self.check_value(&value)?;
            self.change(key, move |locked, key, now| {
                locked.write(Sort::Value, key, &value, now + ttl_micros(ttl))
            })
            .await
        })
    }

    fn put_new<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, PutNew> {
        Box::pin(async move {
            self.check_value(&value)?;
            self.change(key, move |locked, key, now| {
                if let Some(there) = locked.read(Sort::Value, key, now)? {
                    return Ok(PutNew::Exists(Value::plain(there)));
                }
                locked.write(Sort::Value, key, &value, now + ttl_micros(ttl))?;
                Ok(PutNew::Stored(Version(value)))
            })
            .await
        })
    }

    fn replace<'a>(&'a self, key: &'a Key, expected: &'a Version, new: Bytes, ttl: Duration) -> Answer<'a, Replaced> {
        let expected = expected.0.clone();
        Box::pin(async move {
            self.check_value(&new)?;
            self.change(key, move |locked, key, now| {
                let there = locked.read(Sort::Value, key, now)?;
                if there.as_ref() != Some(&expected) {
                    return Ok(Replaced::Lost(there.map(Value::plain)));
                }
                locked.write(Sort::Value, key, &new, now + ttl_micros(ttl))?;
                Ok(Replaced::Stored(Version(new)))
            })
            .await
        })
    }

    fn take<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        Box::pin(self.change(key, |locked, key, now| {
            let value = locked.read(Sort::Value, key, now)?;
            locked.remove(Sort::Value, key)?;
            Ok(value.map(Value::plain))
        }))
    }

    fn remove<'a>(&'a self, key: &'a Key) -> Answer<'a, bool> {
        Box::pin(self.change(key, |locked, key, now| {
            // One that is damaged is there, and this is how it is removed.
            let is_there = !matches!(locked.read(Sort::Value, key, now), Ok(None));
            locked.remove(Sort::Value, key)?;
            Ok(is_there)
        }))
    }

    fn list<'a>(&'a self, parent: &'a Key, max: usize) -> Answer<'a, Listing> {
        let (parent, max) = (parent.clone(), max.min(MAX_LISTED));
        let max_bytes = self.limits.value_bytes * LISTING_VALUES;
        Box::pin(self.run(move |shared, deadline| shared.folder.list(&parent, max, max_bytes, deadline, now_micros())))
    }

    fn append<'a>(&'a self, key: &'a Key, entries: Vec<Bytes>, bounds: LogBounds, ttl: Duration) -> Answer<'a, u64> {
        Box::pin(async move {
            self.limits.check_entries(&entries)?;
            self.change(key, move |locked, key, now| {
                let log: Option<LogState> = locked.read_state(Sort::Log, key, now)?;
                let mut log = log.unwrap_or_else(|| LogState::new(now));
                let end = log.append(entries, bounds);
                locked.write_state(Sort::Log, key, &log, now + ttl_micros(ttl))?;
                Ok(end)
            })
            .await
        })
    }

    fn read_after<'a>(&'a self, key: &'a Key, position: u64, max: usize) -> Answer<'a, LogRead> {
        let (key, max_bytes) = (key.clone(), self.limits.value_bytes);
        Box::pin(self.run(move |shared, _| {
            let log: Option<LogState> = shared.folder.read_state(Sort::Log, &key, now_micros())?;
            let read = |log: LogState| log.read_after(position, max, max_bytes);
            Ok(log.map_or_else(|| LogState::read_nothing(position), read))
        }))
    }

    fn draw<'a>(&'a self, key: &'a Key, rate: Rate, amount: u32) -> Answer<'a, Draw> {
        Box::pin(self.change(key, move |locked, key, now| {
            let bucket: Option<Bucket> = locked.read_state(Sort::Bucket, key, now)?;
            let mut bucket = bucket.unwrap_or_else(|| Bucket::full(rate, now));
            let draw = bucket.draw(rate, amount, now);
            if draw == Draw::Drawn {
                let expires = now + ttl_micros(bucket.full_after(rate));
                locked.write_state(Sort::Bucket, key, &bucket, expires)?;
            }
            Ok(draw)
        }))
    }

    fn lease<'a>(&'a self, key: &'a Key, holder: &'a str, ttl: Duration) -> Answer<'a, LeaseAttempt> {
        let holder: Box<str> = holder.into();
        Box::pin(async move {
            check_size("the holder's name", holder.len(), MAX_HOLDER)?;
            self.change(key, move |locked, key, now| {
                let lease: Option<LeaseState> = locked.read_state(Sort::Lease, key, now)?;
                let mut lease = lease.unwrap_or_default();
                let attempt = lease.acquire(key, &holder, ttl, now);
                if matches!(attempt, LeaseAttempt::Leased(_)) {
                    locked.write_state(Sort::Lease, key, &lease, lease_expiry(ttl, now))?;
                }
                Ok(attempt)
            })
            .await
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Answer<'a, bool> {
        let renewed = lease.clone();
        Box::pin(self.change(&lease.key, move |locked, key, now| {
            let state: Option<LeaseState> = locked.read_state(Sort::Lease, key, now)?;
            let mut state = state.unwrap_or_default();
            let is_held = state.renew(&renewed, ttl, now);
            if is_held {
                locked.write_state(Sort::Lease, key, &state, lease_expiry(ttl, now))?;
            }
            Ok(is_held)
        }))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        let released = lease.clone();
        Box::pin(self.change(&lease.key, move |locked, key, now| {
            let state: Option<LeaseState> = locked.read_state(Sort::Lease, key, now)?;
            let mut state = state.unwrap_or_default();
            let is_held = state.release(&released, now);
            if is_held {
                locked.write_state(Sort::Lease, key, &state, lease_expiry(Duration::ZERO, now))?;
            }
            Ok(is_held)
        }))
    }

    fn put_fenced<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration, lease: &'a Lease) -> Answer<'a, PutFenced> {
        let (key, lease) = (key.clone(), lease.clone());
        Box::pin(async move {
            self.check_value(&value)?;
            self.run(move |shared, deadline| {
                let locked = shared.folder.lock(&[&key, &lease.key], deadline)?;
                let now = now_micros();
                let newest: Option<LeaseState> = locked.read_state(Sort::Lease, &lease.key, now)?;
                if newest.is_none_or(|newest| newest.fence != lease.fence) {
                    return Ok(PutFenced::Refused);
                }
                locked.write(Sort::Value, &key, &value, now + ttl_micros(ttl))?;
                Ok(PutFenced::Stored)
            })
            .await
        })
    }

    fn ping(&self) -> Answer<'_, ()> {
        Box::pin(self.run(|shared, _| shared.folder.prepare()))
    }

    fn max_value_bytes(&self) -> usize {
        self.limits.value_bytes
    }
}
