//! [`Store`]: the operations that all stores have.

use std::{fmt::Debug, time::Duration};

use bytes::Bytes;
use pegboard_base::BoxFuture;

use crate::{
    error::StoreError,
    key::Key,
    lease::{Lease, LeaseAttempt},
    log::{LogBounds, LogRead},
    rate::{Draw, Rate},
    value::{Listing, PutFenced, PutNew, Replaced, Value, Version},
};

/// What an operation of a store returns.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// State that several processes share. Every operation is atomic across them.
///
/// Everything is kept for a time only, of at least a millisecond and at most a year. Times are those of the store, so the clocks of its users need
/// not agree. Values, logs, buckets and leases have names of their own: the same key may name one of each.
///
/// An operation that fails as [`StoreError::Unreachable`] or [`StoreError::TimedOut`] may have taken effect, and so may one whose future is dropped.
pub trait Store: Debug + Send + Sync {
    /// The value of a key.
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>>;

    /// Stores a value in place of any that is there.
    fn put<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, ()>;

    /// Stores a value if there is none.
    fn put_new<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, PutNew>;

    /// Stores a value in place of one version of it.
    fn replace<'a>(&'a self, key: &'a Key, expected: &'a Version, new: Bytes, ttl: Duration) -> Answer<'a, Replaced>;

    /// Removes a value and returns it. Exactly one caller gets it.
    fn take<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>>;

    /// Removes a value. Returns whether there was one.
    fn remove<'a>(&'a self, key: &'a Key) -> Answer<'a, bool>;

    /// The values whose keys have the parts of `parent` and one more, at most `max` of them.
    fn list<'a>(&'a self, parent: &'a Key, max: usize) -> Answer<'a, Listing>;

    /// Appends entries to a log, drops the oldest that are more than `bounds` says, and keeps the log for `ttl` from now. Returns the position of the
    /// last entry.
    fn append<'a>(&'a self, key: &'a Key, entries: Vec<Bytes>, bounds: LogBounds, ttl: Duration) -> Answer<'a, u64>;

    /// The entries of a log after a position, at most `max` of them. Position 0 is before all entries.
    fn read_after<'a>(&'a self, key: &'a Key, position: u64, max: usize) -> Answer<'a, LogRead>;

    /// Takes tokens out of a bucket, which is full at first. An amount larger than the burst is taken for the burst.
    fn draw<'a>(&'a self, key: &'a Key, rate: Rate, amount: u32) -> Answer<'a, Draw>;

    /// Gives a lease to a holder if no other holder has it. A holder that has it already keeps it, with the same fence and the new time.
    fn lease<'a>(&'a self, key: &'a Key, holder: &'a str, ttl: Duration) -> Answer<'a, LeaseAttempt>;

    /// Keeps a lease for `ttl` from now. Returns `false` if it has ended, after which its holder must stop.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Answer<'a, bool>;

    /// Ends a lease. Returns `false` if it had ended already.
    fn release<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool>;

    /// Stores a value unless a newer lease than this was given, even if this one has expired.
    fn put_fenced<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration, lease: &'a Lease) -> Answer<'a, PutFenced>;

    /// Returns when the store has answered.
    fn ping(&self) -> Answer<'_, ()>;

    /// The largest value and the largest entry of a log.
    fn max_value_bytes(&self) -> usize;
}
