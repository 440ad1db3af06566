//! A semaphore whose waiting calls take turns by owner.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    lines::{Full, OwnerLines, Ticket},
    pace::Pace,
};
use pegboard_base::{
    caller::QuotaOwner,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most permits.
pub(super) const MAX_PERMITS: usize = usize::MAX >> 2;

/// Set in the state while calls wait or permits are to be removed: permits are then taken and returned under the lock only.
const LOCKED: usize = 1;
/// One free permit in the state.
const ONE: usize = 2;

/// A semaphore whose waiting calls take turns by owner. While no call waits, taking and returning a permit is one atomic operation each.
#[derive(Debug)]
pub(super) struct FairSemaphore {
    /// The number of free permits times [`ONE`], and the flag [`LOCKED`].
    state: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    lines: OwnerLines<oneshot::Sender<Grant>>,
    pace: Pace,
    /// The number of permits, those in use included.
    capacity: usize,
    /// How many permits beyond `capacity` are in use. They are removed when they are returned.
    surplus: usize,
}

/// The counts of a semaphore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) capacity: usize,
    pub(super) in_use: usize,
    pub(super) waiting: usize,
}

/// The answer to a call that asks for a permit.
#[derive(Debug)]
pub(super) enum Admission {
    Free(Grant),
    Wait(Waiter),
    /// The call cannot wait. The duration is an estimate of when it could be served.
    Full(Full, Duration),
}

impl FairSemaphore {
    /// Creates a semaphore with `permits` permits, for which at most `most_waiting` calls wait.
    pub(super) fn new(permits: usize, most_waiting: usize) -> Self {
        let capacity = permits.clamp(1, MAX_PERMITS);
        Self {
            state: AtomicUsize::new(capacity * ONE),
            waiting: Mutex::new(Waiting {
                lines: OwnerLines::new(most_waiting),
                pace: Pace::default(),
                capacity,
                surplus: 0,
            }),
        }
    }

    /// Takes a free permit. It overtakes no call: while calls wait, released permits pass to them.
    pub(super) fn try_acquire(self: &Arc<Self>) -> Option<BorrowedGrant<'_>> {
        // Made only then, because dropping one returns a permit.
        self.try_take().then(|| BorrowedGrant(self))
    }

    /// Like [`Self::try_acquire`], with a permit that does not borrow the semaphore.
    pub(super) fn try_acquire_owned(self: &Arc<Self>) -> Option<Grant> {
        self.try_take().then(|| Grant::take(self))
    }

    fn try_take(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & LOCKED == 0 && state >= ONE {
            let taken = self
                .state
                .compare_exchange_weak(state, state - ONE, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes a permit, or joins the line of the owner.
    pub(super) fn enter(self: &Arc<Self>, owner: &QuotaOwner) -> Admission {
        let mut waiting = self.waiting.lock();
        // From here on permits are returned under the lock, so none can be missed.
        let before = self.state.fetch_or(LOCKED, Ordering::Acquire);
        if before >= ONE {
            self.state.fetch_sub(ONE, Ordering::Acquire);
            self.unlock_state(&waiting);
            return Admission::Free(Grant::take(self));
        }
        if waiting.lines.is_empty() {
            waiting.pace.begin(Instant::now());
        }
        let entry = match waiting.lines.join(owner, oneshot::channel) {
            Ok((ticket, granted)) => Admission::Wait(Waiter {
                _place: QueueTicket {
                    semaphore: self.clone(),
                    ticket,
                },
                granted,
            }),
            Err(full) => Admission::Full(full, waiting.pace.estimate(full.ahead, Instant::now())),
        };
        self.unlock_state(&waiting);
        entry
    }

    /// Estimates when all calls that wait now are served.
    pub(super) fn estimate(&self) -> Duration {
        let waiting = self.waiting.lock();
        waiting.pace.estimate(waiting.lines.len(), Instant::now())
    }

    /// Returns a permit: to the call whose turn it is, or to the free ones.
    fn release(self: &Arc<Self>) {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & LOCKED == 0 {
            let returned = self
                .state
                .compare_exchange_weak(state, state + ONE, Ordering::Release, Ordering::Relaxed);
            match returned {
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
        self.pass_on();
    }

    #[cold]
    fn pass_on(self: &Arc<Self>) {
        loop {
            let mut waiting = self.waiting.lock();
            if waiting.surplus > 0 {
                waiting.surplus -= 1;
                self.unlock_state(&waiting);
                return;
            }
            let Some(next) = waiting.next() else {
                self.state.fetch_add(ONE, Ordering::Release);
                self.unlock_state(&waiting);
                return;
            };
            self.unlock_state(&waiting);
            // Released first, because the permit of a call that was dropped meanwhile must not be returned under the lock.
            drop(waiting);
            match next.send(Grant::take(self)) {
                Ok(()) => return,
                Err(unused) => unused.forget(),
            }
        }
    }

    /// Sets the number of permits. Those in use beyond it are removed when they are returned.
    pub(super) fn resize(self: &Arc<Self>, permits: usize) {
        let permits = permits.clamp(1, MAX_PERMITS);
        let mut granted = Vec::new();
        let mut waiting = self.waiting.lock();
        let free = self.state.fetch_or(LOCKED, Ordering::Acquire) / ONE;
        let in_use = waiting.capacity + waiting.surplus - free;
        waiting.capacity = permits;
        waiting.surplus = in_use.saturating_sub(permits);
        let mut now_free = permits.saturating_sub(in_use);
        while now_free > 0 {
            let Some(next) = waiting.next() else { break };
            granted.push(next);
            now_free -= 1;
        }
        self.state.store((now_free * ONE) | LOCKED, Ordering::Release);
        self.unlock_state(&waiting);
        drop(waiting);
        for next in granted {
            // A permit that no call takes is returned when it is dropped.
            let _ = next.send(Grant::take(self));
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let waiting = self.waiting.lock();
        let free = self.state.load(Ordering::Relaxed) / ONE;
        Counts {
            capacity: waiting.capacity,
            in_use: (waiting.capacity + waiting.surplus).saturating_sub(free),
            waiting: waiting.lines.len(),
        }
    }

    /// Lets permits be taken and returned without the lock again, if no call waits and no permit is to be removed.
    fn unlock_state(&self, waiting: &Waiting) {
        if waiting.lines.is_empty() && waiting.surplus == 0 {
            self.state.fetch_and(!LOCKED, Ordering::Release);
        }
    }
}

impl Waiting {
    fn next(&mut self) -> Option<oneshot::Sender<Grant>> {
        let next = self.lines.next()?;
        self.pace.pass(Instant::now());
        Some(next)
    }
}

/// A permit. Dropping it returns it.
#[derive(Debug)]
#[must_use]
pub(super) struct Grant(Option<Arc<FairSemaphore>>);

impl Grant {
    fn take(semaphore: &Arc<FairSemaphore>) -> Self {
        Self(Some(semaphore.clone()))
    }

    /// Drops the permit without returning it.
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(semaphore) = &self.0 {
            semaphore.release();
        }
    }
}

/// A permit that borrows its semaphore. Dropping it returns it.
#[derive(Debug)]
#[must_use]
pub(super) struct BorrowedGrant<'a>(&'a Arc<FairSemaphore>);

impl Drop for BorrowedGrant<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A call that waits. It is a future of its permit, and dropping it leaves the line; a permit that it got meanwhile passes on.
#[derive(Debug)]
#[must_use]
pub(super) struct Waiter {
    // Dropped in this order, so that no permit is sent to a call that leaves, unless it is under way.
    _place: QueueTicket,
    granted: oneshot::Receiver<Grant>,
}

#[derive(Debug)]
struct QueueTicket {
    semaphore: Arc<FairSemaphore>,
    ticket: Ticket,
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        let mut waiting = self.semaphore.waiting.lock();
        waiting.lines.leave(&self.ticket);
        self.semaphore.unlock_state(&waiting);
    }
}

impl Future for Waiter {
    type Output = Option<Grant>;

    /// `None` cannot happen, because the line keeps the sender until it sends.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.granted).poll(context).map(Result::ok)
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
