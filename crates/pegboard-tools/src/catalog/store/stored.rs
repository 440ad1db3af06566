//! A stored catalog, and the lifetime and scope that a server declares for cached listings.

use std::time::Duration;

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::Catalog;

/// The upper limit for the lifetime that a server declares.
pub(super) const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// A stored catalog and when it was saved.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The listings of the server.
    pub catalog: Catalog,
    /// The lifetime and scope that the server declared for them.
    pub freshness: Freshness,
    /// When the catalog was saved. Its age counts from here.
    pub saved_at: Timestamp,
}

/// The lifetime and scope that a server declares for cached listings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freshness {
    /// How long the listings are valid; at most a day. `None` if the server declares no lifetime.
    pub ttl: Option<Duration>,
    /// Which clients may use them.
    pub scope: CacheScope,
}

/// Which clients may use a cached listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Only clients with the same credentials. The default.
    #[default]
    Private,
    /// Every client.
    Public,
}

impl Freshness {
    /// Parses `ttlMs` and `cacheScope` of one page of a listing.
    pub fn read(page: &Value) -> Self {
        let ttl = page.get("ttlMs").and_then(Value::as_u64);
        Self {
            ttl: ttl.map(|millis| Duration::from_millis(millis).min(MAX_TTL)),
            scope: match page.get("cacheScope").and_then(Value::as_str) {
                Some("public") => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }

    /// Combines two listings: the shorter lifetime, the narrower scope.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.zip(other.ttl).map(|(one, two)| one.min(two)),
            scope: if self.scope == other.scope {
                self.scope
            } else {
                CacheScope::Private
            },
        }
    }
}

impl Stored {
    /// Returns whether the lifetime has not expired. A timestamp in the future counts as expired, because the clock was set back.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        match (self.freshness.ttl, now.checked_duration_since(self.saved_at)) {
            (Some(ttl), Some(age)) => age < ttl,
            _ => false,
        }
    }
}
