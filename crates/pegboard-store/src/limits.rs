//! [`Limits`]: how long an operation may take, and how large a value may be.

use std::time::Duration;

use bytes::Bytes;

use crate::error::StoreError;

/// The longest time that anything is kept.
pub(crate) const MAX_TTL: Duration = Duration::from_hours(366 * 24);

/// The longest name of the holder of a lease.
pub(crate) const MAX_HOLDER: usize = 256;

/// The largest log in bytes, whatever its bounds say: a store may hold it in memory as a whole.
pub(crate) const MAX_LOG_BYTES: usize = 64 * 1024 * 1024;

/// The most entries of a log, whatever its bounds say.
pub(crate) const MAX_LOG_ENTRIES: usize = 100_000;

/// The most values that one listing returns.
pub(crate) const MAX_LISTED: usize = 10_000;

/// How many times the largest value the values of a listing may have together.
pub(crate) const LISTING_VALUES: usize = 8;

/// What an operation of a store may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time that an operation may take, with everything that it waits for.
    pub time: Duration,
    /// The size of a value, of an entry of a log, and of what one read of a log returns.
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(2),
            value_bytes: 1024 * 1024,
        }
    }
}

impl Limits {
    /// Fails if a value, or whatever `what` says, is too large.
    pub(crate) fn check(self, what: &'static str, bytes: usize) -> Result<(), StoreError> {
        check_size(what, bytes, self.value_bytes)
    }

    /// Fails if an entry of a log is too large, or all of them together are.
    pub(crate) fn check_entries(self, entries: &[Bytes]) -> Result<(), StoreError> {
        for entry in entries {
            self.check("the entry", entry.len())?;
        }
        check_size(
            "the list of entries",
            entries.iter().map(Bytes::len).sum(),
            MAX_LOG_BYTES,
        )
    }
}

/// Fails if `what` has more than `limit` bytes.
pub(crate) fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit {
        return Err(StoreError::TooLarge { what, bytes, limit });
    }
    Ok(())
}

/// A time to live in microseconds: at least a millisecond, which is the smallest that all stores can count.
pub(crate) fn ttl_micros(ttl: Duration) -> u64 {
    let ttl = ttl.clamp(Duration::from_millis(1), MAX_TTL);
    u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)
}
