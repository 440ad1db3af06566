//! The servers that lease a link.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{event_publisher::LinkReporter, phase::Phase};

/// The servers that lease a link, by lease number.
#[derive(Debug, Default)]
pub(super) struct Holders {
    /// Locked while the phase of the link changes and is reported, and before the lock of the phase.
    pub(super) by_number: Mutex<BTreeMap<u64, Holder>>,
    entered: AtomicU64,
    has_ended: CancellationToken,
}

/// A server that leases a link.
#[derive(Debug)]
pub(super) struct Holder {
    /// How long the link may be idle before this holder agrees to close it.
    pub(super) idle: Option<Duration>,
    pub(super) reporter: LinkReporter,
}

impl Holders {
    pub(super) fn enter(
        &self,
        idle: Option<Duration>,
        mut reporter: LinkReporter,
        phase: &watch::Receiver<Phase>,
    ) -> Option<u64> {
        let mut state = self.by_number.lock();
        if self.has_ended.is_cancelled() {
            return None;
        }
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        // Under the lock, like all reports, so that no phase is missed or reported out of order.
        reporter.attach(&phase.borrow());
        state.insert(number, Holder { idle, reporter });
        Some(number)
    }

    /// Reports to every server that leases the link.
    pub(super) fn report(&self, mut report: impl FnMut(&mut LinkReporter)) {
        for holder in self.by_number.lock().values_mut() {
            report(&mut holder.reporter);
        }
    }

    /// Removes a holder. Returns whether it was the last one.
    pub(super) fn leave(&self, number: u64) -> bool {
        let mut state = self.by_number.lock();
        state.remove(&number);
        if state.is_empty() {
            self.has_ended.cancel();
        }
        state.is_empty()
    }

    /// How long the link may be idle before it is closed: the longest limit of all holders; `None` if one of them has no limit.
    pub(super) fn idle_after(&self) -> Option<Duration> {
        let state = self.by_number.lock();
        let longest = state
            .values()
            .try_fold(Duration::ZERO, |most, holder| holder.idle.map(|idle| most.max(idle)));
        longest.filter(|_| !state.is_empty())
    }
}
