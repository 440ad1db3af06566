//! A byte budget for the messages of all connections of a board.
//!
//! A message of up to [`FREE_BYTES`] needs no permit, so small messages neither wait for large ones nor touch state that connections share.
//! A larger message acquires a permit before more of it is read, for the largest size that it may still reach: if messages acquired permits
//! piecemeal, two half-read messages could wait for each other. While it waits, nothing is read from its connection. When the message is
//! complete, its permit shrinks to its length and is held until the bytes are dropped.
//!
//! In each direction one connection may hold at most a quarter of the budget.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of a message need no permit. They are free on every connection, even if the budget is used up.
pub(crate) const FREE_BYTES: usize = 64 << 10;
/// How long a message waits for its permit. Shorter than the inactivity timeout of a call, so that the caller gets the reason.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an incomplete message may hold its permit while others wait. Shorter than [`ACQUIRE_TIMEOUT`], so that they get it in time.
const MAX_HOLD: Duration = Duration::from_secs(15);
/// How often readers check [`MAX_HOLD`] while no bytes arrive.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The size of one semaphore permit in bytes.
const UNIT: usize = 4 << 10;
/// The budget of a board whose config sets none.
pub(crate) const DEFAULT: usize = 256 << 20;

/// The byte budget of a board. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ByteBudget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    /// The total in units. It only grows, because acquired permits cannot be revoked.
    units: AtomicUsize,
    /// How many messages wait for a permit because of other connections.
    waiting: AtomicUsize,
    /// How many messages wait for a permit, for whatever reason.
    held_up: AtomicUsize,
}

impl Default for ByteBudget {
    fn default() -> Self {
        Self::new(DEFAULT)
    }
}

impl ByteBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        let units = units(bytes);
        Self(Arc::new(Pool {
            free: Arc::new(Semaphore::new(units)),
            units: AtomicUsize::new(units),
            waiting: AtomicUsize::new(0),
            held_up: AtomicUsize::new(0),
        }))
    }

    /// Raises the budget to `bytes`. A value below the current one has no effect until the board is reopened.
    pub(crate) fn raise(&self, bytes: usize) {
        let wanted = units(bytes);
        let before = self.0.units.fetch_max(wanted, Ordering::Relaxed);
        self.0.free.add_permits(wanted.saturating_sub(before));
    }

    /// How many bytes are in use.
    pub(crate) fn used(&self) -> usize {
        let units = self.0.units.load(Ordering::Relaxed);
        units.saturating_sub(self.0.free.available_permits()) * UNIT
    }

    /// Whether a connection is not read because one of its messages waits for a permit.
    pub(crate) fn is_short(&self) -> bool {
        self.0.held_up.load(Ordering::Relaxed) > 0
    }

    /// The total in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.0.units.load(Ordering::Relaxed) * UNIT
    }

    /// The quota of one direction of a connection whose messages have up to `max_message` bytes.
    pub(crate) fn quota(&self, max_message: usize) -> Quota {
        let quarter = self.limit() / 4;
        Quota {
            budget: self.clone(),
            own: Arc::new(Semaphore::new(units(quarter))),
            max_permit: max_message.min(quarter),
        }
    }
}

/// The part of the budget that one direction of a connection may hold.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    budget: ByteBudget,
    own: Arc<Semaphore>,
    /// The largest permit of one message, in bytes.
    max_permit: usize,
}

/// A message got no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there was no room for it: the messages of all servers together may take {limit} bytes, the limit that `max_buffered` sets, and those of one server a quarter of that in each direction"
)]
pub(crate) struct NoRoom {
    pub(crate) limit: usize,
}

impl Quota {
    pub(crate) fn no_room(&self) -> NoRoom {
        NoRoom {
            limit: self.budget.limit(),
        }
    }

    /// Whether messages of other connections wait for a permit.
    fn has_waiters(&self) -> bool {
        self.budget.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Acquires a permit without waiting. Returns `None` for zero bytes.
    pub(crate) fn try_acquire(&self, bytes: usize) -> Result<Option<Permit>, NoRoom> {
        if bytes == 0 {
            return Ok(None);
        }
        let count = permits(bytes);
        let own = self.own.clone().try_acquire_many_owned(count);
        let common = self.budget.0.free.clone().try_acquire_many_owned(count);
        match (own, common) {
            (Ok(own), Ok(common)) if bytes <= self.max_permit => Ok(Some(Permit { own, common })),
            _ => Err(self.no_room()),
        }
    }

    /// Grows a permit to `bytes` without waiting. Zero bytes need no permit.
    pub(crate) fn try_grow(&self, permit: &mut Option<Permit>, bytes: usize) -> Result<(), NoRoom> {
        let held = permit.as_ref().map_or(0, |permit| permit.common.num_permits());
        let missing = units(bytes).saturating_sub(held);
        match (self.try_acquire(missing * UNIT)?, permit) {
            (Some(more), Some(permit)) => permit.merge(more),
            (Some(more), none) => *none = Some(more),
            (None, _) => {}
        }
        Ok(())
    }

    /// Waits for a permit of `bytes`, capped at the largest permit of one message.
    pub(crate) async fn acquire(&self, bytes: usize) -> Result<Permit, NoRoom> {
        let count = permits(bytes.min(self.max_permit));
        let _held_up = Waiting::new(&self.budget.0.held_up);
        let acquiring = async {
            let own = self.own.clone().acquire_many_owned(count).await.ok()?;
            // Counted only now: from here on, only other connections can make it wait.
            let _waiting = Waiting::new(&self.budget.0.waiting);
            let common = self.budget.0.free.clone().acquire_many_owned(count).await.ok()?;
            Some(Permit { own, common })
        };
        let acquired = tokio::time::timeout(ACQUIRE_TIMEOUT, acquiring).await;
        acquired.ok().flatten().ok_or_else(|| self.no_room())
    }
}

/// Counts a message as waiting until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Permission to hold some bytes in memory. Dropping it releases them.
#[derive(Debug)]
pub(crate) struct Permit {
    own: OwnedSemaphorePermit,
    common: OwnedSemaphorePermit,
}

impl Permit {
    fn merge(&mut self, more: Self) {
        self.own.merge(more.own);
        self.common.merge(more.common);
    }

    /// Releases what exceeds `bytes`.
    fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.common.num_permits().saturating_sub(units(bytes));
        drop((self.own.split(surplus), self.common.split(surplus)));
    }
}

/// Releases what exceeds `bytes`, and the whole permit at zero bytes.
pub(crate) fn shrink(permit: &mut Option<Permit>, bytes: usize) {
    match permit {
        Some(permit) if bytes > 0 => permit.shrink_to(bytes),
        _ => *permit = None,
    }
}

/// The permit of a message that is being read. It is acquired once the message exceeds [`FREE_BYTES`].
#[derive(Debug)]
pub(crate) struct ReadPermit {
    quota: Quota,
    /// The permit, and when it was acquired.
    permit: Option<(Permit, Instant)>,
}

impl ReadPermit {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, permit: None }
    }

    pub(crate) fn no_room(&self) -> NoRoom {
        self.quota.no_room()
    }

    pub(crate) fn has_permit(&self) -> bool {
        self.permit.is_some()
    }

    /// Waits for a permit of up to `max` bytes if one is needed, for a message of which `held` bytes have been read.
    pub(crate) async fn reserve(&mut self, held: usize, max: usize) -> Result<(), NoRoom> {
        match &self.permit {
            None if held < FREE_BYTES => Ok(()),
            None => {
                let permit = self.quota.acquire(max).await?;
                self.permit = Some((permit, Instant::now()));
                self.check(held)
            }
            Some(_) => self.check(held),
        }
    }

    /// Fails if the message exceeds the largest permit, or has held its permit for too long while others wait.
    pub(crate) fn check(&self, held: usize) -> Result<(), NoRoom> {
        let is_overdue = |since: &Instant| since.elapsed() > MAX_HOLD && self.quota.has_waiters();
        match &self.permit {
            Some((_, since)) if held > self.quota.max_permit || is_overdue(since) => Err(self.no_room()),
            _ => Ok(()),
        }
    }

    /// Releases the permit of a message that is not kept.
    pub(crate) fn release(&mut self) {
        self.permit = None;
    }

    /// Attaches the permit, shrunk to its length, to a complete message.
    pub(crate) fn complete(&mut self, message: Bytes) -> Bytes {
        match self.permit.take() {
            Some((mut permit, _)) if message.len() > FREE_BYTES => {
                permit.shrink_to(message.len());
                Bytes::from_owner(PermittedMessage {
                    message,
                    _permit: permit,
                })
            }
            _ => message,
        }
    }
}

/// A message that holds its permit until it is dropped.
struct PermittedMessage {
    message: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for PermittedMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

/// How many units hold `bytes`.
fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS)
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(units(bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[tokio::test]
    async fn small_messages_need_no_permit_and_large_ones_release_theirs() {
        let budget = ByteBudget::new(4 * MIB);
        let mut permit = ReadPermit::new(budget.quota(MIB));
        permit.reserve(FREE_BYTES - 1, MIB).await.unwrap();
        assert_eq!(budget.used(), 0);
        permit.reserve(FREE_BYTES, MIB).await.unwrap();
        assert_eq!(budget.used(), MIB, "as much as it may become");
        let message = permit.complete(Bytes::from(vec![b'x'; 100_000]));
        assert_eq!(budget.used(), 100_000_usize.next_multiple_of(UNIT));
        let part = message.slice(10..20);
        drop(message);
        assert!(budget.used() > 0, "a part of it is still held");
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_cannot_take_all_and_its_neighbours_go_on() {
        let budget = ByteBudget::new(16 * MIB);
        let greedy = budget.quota(100 * MIB);
        let held = greedy.acquire(100 * MIB).await.unwrap();
        assert_eq!(budget.used(), 4 * MIB);
        assert_eq!(greedy.acquire(MIB).await.unwrap_err().limit, 16 * MIB);
        let neighbour = budget.quota(MIB);
        let theirs = neighbour.acquire(MIB).await.unwrap();
        drop((held, theirs));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_takes_too_long_yields_only_if_others_wait() {
        let budget = ByteBudget::new(4 * MIB);
        let mut slow = ReadPermit::new(budget.quota(MIB));
        slow.reserve(FREE_BYTES, MIB).await.unwrap();
        let others = [(); 3].map(|()| budget.quota(MIB).try_acquire(MIB).unwrap());
        tokio::time::advance(MAX_HOLD * 2).await;
        assert_eq!(slow.check(FREE_BYTES), Ok(()), "it takes nothing away from others");
        let third = budget.quota(MIB);
        let waiting = tokio::spawn(async move { third.acquire(MIB).await.map(|_| ()) });
        tokio::task::yield_now().await;
        assert!(slow.check(FREE_BYTES).is_err());
        slow.release();
        assert_eq!(waiting.await.unwrap(), Ok(()));
        drop(others);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_of_one_connection_do_not_yield_to_each_other() {
        let budget = ByteBudget::new(8 * MIB);
        let quota = budget.quota(MIB);
        let mut slow = ReadPermit::new(quota.clone());
        slow.reserve(FREE_BYTES, MIB).await.unwrap();
        let second = quota.try_acquire(MIB).unwrap();
        let third = tokio::spawn(async move { quota.acquire(MIB).await.map(|_| ()) });
        tokio::task::yield_now().await;
        tokio::time::advance(MAX_HOLD + CHECK_INTERVAL).await;
        assert_eq!(slow.check(FREE_BYTES), Ok(()));
        drop((slow, second));
        assert_eq!(third.await.unwrap(), Ok(()));
    }

    #[test]
    fn a_permit_grows_and_shrinks_with_the_total_of_many_small_messages() {
        let budget = ByteBudget::new(4 * MIB);
        let quota = budget.quota(MIB / 2);
        let mut permit = None;
        for bytes in (0..=MIB).step_by(300) {
            quota.try_grow(&mut permit, bytes).unwrap();
            assert_eq!(budget.used(), bytes.next_multiple_of(UNIT));
        }
        assert!(quota.try_grow(&mut permit, MIB + UNIT).is_err());
        shrink(&mut permit, 10_000);
        assert_eq!(budget.used(), 3 * UNIT);
        shrink(&mut permit, 0);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_can_be_raised() {
        let budget = ByteBudget::new(4 * MIB);
        let held = [(); 4].map(|()| budget.quota(MIB).try_acquire(MIB).unwrap());
        let more = budget.quota(MIB);
        assert!(more.try_acquire(MIB).is_err());
        budget.raise(5 * MIB);
        assert!(more.try_acquire(MIB).unwrap().is_some());
        assert!(more.try_acquire(0).unwrap().is_none());
        drop(held);
        assert_eq!((budget.used(), budget.limit()), (0, 5 * MIB));
    }
}
