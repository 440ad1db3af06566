//! [`CallTimes`]: how long the parts of one call took.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Where a call writes how long its parts took, for a program that shows them. See [`ToolCall::times`](super::ToolCall::times).
#[derive(Debug, Default)]
pub struct CallTimes {
    queued: AtomicU64,
    served: AtomicU64,
    prepared: AtomicU64,
    presented: AtomicU64,
}

impl CallTimes {
    /// Notes the time in the queue.
    pub fn set_queued(&self, queued: Duration) {
        self.queued.store(micros(queued), Ordering::Relaxed);
    }

    /// Adds the time from a request to the server until its response.
    pub fn add_served(&self, served: Duration) {
        self.served.fetch_add(micros(served), Ordering::Relaxed);
    }

    /// Notes the time before the queue: arguments, policy and approval.
    pub fn set_prepared(&self, prepared: Duration) {
        self.prepared.store(micros(prepared), Ordering::Relaxed);
    }

    /// Notes the time in which the result was sanitized, masked and shortened.
    pub fn set_presented(&self, presented: Duration) {
        self.presented.store(micros(presented), Ordering::Relaxed);
    }

    /// The time before the queue.
    pub fn prepared(&self) -> Duration {
        Duration::from_micros(self.prepared.load(Ordering::Relaxed))
    }

    /// The time in which the result was processed.
    pub fn presented(&self) -> Duration {
        Duration::from_micros(self.presented.load(Ordering::Relaxed))
    }

    /// The time in the queue.
    pub fn queued(&self) -> Duration {
        Duration::from_micros(self.queued.load(Ordering::Relaxed))
    }

    /// The time that the server took, over all attempts.
    pub fn served(&self) -> Duration {
        Duration::from_micros(self.served.load(Ordering::Relaxed))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
