//! [`SealedStore`]: a store whose values only the holders of a key can read or make.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    error::StoreError,
    key::Key,
    key_ring::KeyRing,
    lease::{Lease, LeaseAttempt},
    limits::check_size,
    log::{LogBounds, LogRead},
    rate::{Draw, Rate},
    store::{Answer, Store},
    value::{Listing, PutFenced, PutNew, Replaced, Value, Version},
};

/// Seals the values and the entries of logs of another store with ChaCha20-Poly1305. The key of a value is authenticated with it, so a value that was
/// changed, made by others or moved to another key is [`StoreError::Damaged`].
///
/// Who can write to the store can still remove values, bring back an older value of the same key, and reorder a log. Keys, the holders of leases
/// and the levels of buckets are not sealed.
#[derive(Debug)]
pub struct SealedStore {
    inner: Arc<dyn Store>,
    ring: KeyRing,
    /// The address of the store, for errors.
    address: Arc<str>,
}

/// What is sealed.
#[derive(Clone, Copy)]
enum Sealed {
    Value,
    LogEntry,
}

impl SealedStore {
    /// Seals the values of a store. `address` is what errors call it.
    pub fn new(inner: Arc<dyn Store>, ring: KeyRing, address: impl Into<Arc<str>>) -> Self {
        Self {
            inner,
            ring,
            address: address.into(),
        }
    }

    fn seal(&self, what: Sealed, key: &Key, value: &[u8]) -> Result<Bytes, StoreError> {
        let name = match what {
            Sealed::Value => "the value",
            Sealed::LogEntry => "the entry",
        };
        check_size(name, value.len(), self.max_value_bytes())?;
        let sealed = self.ring.seal(&context(what, key.as_str()), value);
        let sealed =
            sealed.ok_or_else(|| self.damaged(key, "it cannot be sealed, because the system has no random numbers"))?;
        Ok(sealed.into())
    }

    fn open(&self, what: Sealed, key: &Key, sealed: &[u8]) -> Result<Bytes, StoreError> {
        let opened = self.ring.open(&context(what, key.as_str()), sealed);
        let reason = "it was changed, or sealed with another key or for another name";
        Ok(opened.ok_or_else(|| self.damaged(key, reason))?.into())
    }

    fn open_value(&self, key: &Key, value: &Value) -> Result<Value, StoreError> {
        Ok(Value {
            bytes: self.open(Sealed::Value, key, &value.bytes)?,
            version: value.version.clone(),
        })
    }

    fn open_optional(&self, key: &Key, value: Option<&Value>) -> Result<Option<Value>, StoreError> {
        value.map(|value| self.open_value(key, value)).transpose()
    }

    fn damaged(&self, key: &Key, reason: &'static str) -> StoreError {
        StoreError::Damaged {
            address: self.address.clone(),
            key: key.as_str().into(),
            reason,
        }
    }
}

/// What is authenticated with a value.
fn context(what: Sealed, name: &str) -> Vec<u8> {
    let what = match what {
        Sealed::Value => "pegboard value ",
        Sealed::LogEntry => "pegboard entry ",
    };
    [what, name].concat().into_bytes()
}

impl Store for SealedStore {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        Box::pin(async move { self.open_optional(key, self.inner.get(key).await?.as_ref()) })
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            let sealed = self.seal(Sealed::Value, key, &value)?;
            self.inner.put(key, sealed, ttl).await
        })
    }

    fn put_new<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, PutNew> {
        Box::pin(async move {
            let sealed = self.seal(Sealed::Value, key, &value)?;
            Ok(match self.inner.put_new(key, sealed, ttl).await? {
                PutNew::Exists(value) => PutNew::Exists(self.open_value(key, &value)?),
                stored @ PutNew::Stored(_) => stored,
            })
        })
    }

    fn replace<'a>(&'a self, key: &'a Key, expected: &'a Version, new: Bytes, ttl: Duration) -> Answer<'a, Replaced> {
        Box::pin(async move {
            let sealed = self.seal(Sealed::Value, key, &new)?;
            Ok(match self.inner.replace(key, expected, sealed, ttl).await? {
                Replaced::Lost(value) => Replaced::Lost(self.open_optional(key, value.as_ref())?),
                stored @ Replaced::Stored(_) => stored,
            })
        })
    }

    fn take<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        Box::pin(async move { self.open_optional(key, self.inner.take(key).await?.as_ref()) })
    }

    fn remove<'a>(&'a self, key: &'a Key) -> Answer<'a, bool> {
        self.inner.remove(key)
    }

    fn list<'a>(&'a self, parent: &'a Key, max: usize) -> Answer<'a, Listing> {
        Box::pin(async move {
            let sealed = self.inner.list(parent, max).await?;
            let mut listing = Listing {
                values: Vec::with_capacity(sealed.values.len()),
                ..sealed
            };
            for (key, value) in sealed.values {
                match self.open_value(&key, &value) {
                    Ok(value) => listing.values.push((key, value)),
                    Err(_) => listing.damaged += 1,
                }
            }
            Ok(listing)
        })
    }

    fn append<'a>(&'a self, key: &'a Key, entries: Vec<Bytes>, bounds: LogBounds, ttl: Duration) -> Answer<'a, u64> {
        Box::pin(async move {
            let seal = |entry: &Bytes| self.seal(Sealed::LogEntry, key, entry);
            let sealed = entries.iter().map(seal).collect::<Result<Vec<_>, _>>()?;
            self.inner.append(key, sealed, bounds, ttl).await
        })
    }

    fn read_after<'a>(&'a self, key: &'a Key, position: u64, max: usize) -> Answer<'a, LogRead> {
        Box::pin(async move {
            let mut read = self.inner.read_after(key, position, max).await?;
            for entry in &mut read.entries {
                entry.bytes = self.open(Sealed::LogEntry, key, &entry.bytes)?;
            }
            Ok(read)
        })
    }

    fn draw<'a>(&'a self, key: &'a Key, rate: Rate, amount: u32) -> Answer<'a, Draw> {
        self.inner.draw(key, rate, amount)
    }

    fn lease<'a>(&'a self, key: &'a Key, holder: &'a str, ttl: Duration) -> Answer<'a, LeaseAttempt> {
        self.inner.lease(key, holder, ttl)
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Answer<'a, bool> {
        self.inner.renew(lease, ttl)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        self.inner.release(lease)
    }

    fn put_fenced<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration, lease: &'a Lease) -> Answer<'a, PutFenced> {
        Box::pin(async move {
            let sealed = self.seal(Sealed::Value, key, &value)?;
            self.inner.put_fenced(key, sealed, ttl, lease).await
        })
    }

    fn ping(&self) -> Answer<'_, ()> {
        self.inner.ping()
    }

    fn max_value_bytes(&self) -> usize {
        self.inner.max_value_bytes().saturating_sub(KeyRing::OVERHEAD)
    }
}
