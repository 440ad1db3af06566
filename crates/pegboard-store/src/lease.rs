//! [`Lease`]: the right of one holder to do something for a time, with a number that tells late holders from the present one.

use std::time::Duration;

use crate::{key::Key, limits::ttl_micros};

/// For how long a store remembers the fence of a lease after the lease has ended. Fences rise with the clock of the store, so they rise after
/// that as well.
pub(crate) const FENCE_MEMORY: Duration = Duration::from_hours(7 * 24);

/// A right that one holder has until it expires, is released, or the store loses its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub(crate) key: Key,
    pub(crate) holder: Box<str>,
    pub(crate) fence: u64,
}

impl Lease {
    /// What the lease is for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Who has it.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The number of the lease, higher than that of all leases that were given for the key before.
    pub fn fence(&self) -> u64 {
        self.fence
    }
}

/// What became of [`Store::lease`](crate::Store::lease).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAttempt {
    /// The holder has the lease.
    Leased(Lease),
    /// Another holder has it.
    Held {
        /// Who.
        by: String,
        /// When it ends, if its holder does not renew it.
        expires_in: Duration,
    },
}

/// What a store knows of a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeaseState {
    pub(crate) fence: u64,
    pub(crate) holder: String,
    /// When it ends; 0 if it was released.
    pub(crate) until_micros: u64,
}

impl LeaseState {
    pub(crate) fn acquire(&mut self, key: &Key, holder: &str, ttl: Duration, now_micros: u64) -> LeaseAttempt {
        if self.until_micros > now_micros && self.holder != holder {
            return LeaseAttempt::Held {
                by: self.holder.clone(),
                expires_in: Duration::from_micros(self.until_micros - now_micros),
            };
        }
        if self.until_micros <= now_micros {
            self.fence = now_micros.max(self.fence.saturating_add(1));
            self.holder = holder.to_owned();
        }
        self.until_micros = now_micros + ttl_micros(ttl);
        LeaseAttempt::Leased(Lease {
            key: key.clone(),
            holder: holder.into(),
            fence: self.fence,
        })
    }

    pub(crate) fn renew(&mut self, lease: &Lease, ttl: Duration, now_micros: u64) -> bool {
        let is_held = self.is_held(lease, now_micros);
        if is_held {
            self.until_micros = now_micros + ttl_micros(ttl);
        }
        is_held
    }

    pub(crate) fn release(&mut self, lease: &Lease, now_micros: u64) -> bool {
        let is_held = self.is_held(lease, now_micros);
        if is_held {
            self.until_micros = 0;
        }
        is_held
    }

    fn is_held(&self, lease: &Lease, now_micros: u64) -> bool {
        self.fence == lease.fence && *self.holder == *lease.holder && self.until_micros > now_micros
    }
}
