//! One budget of bytes for the messages of all connections of a board.
//!
//! A message of up to [`FLOOR`] bytes needs no share of it, so that small messages neither wait for large ones nor touch anything that
//! connections have in common. A larger one takes a share before more of it is read: as much as it may become, because a message that
//! waited for a second share could wait for one that waits for the first. While it waits, nothing is read from its connection. When it is
//! complete, its share shrinks to its length and stays with its bytes until they are dropped.
//!
//! In each direction one connection holds at most a quarter of the budget.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of a message need no share. Every connection has them, however little is left of the budget.
pub(crate) const FLOOR: usize = 64 << 10;
/// How long a message waits for its share. Less than a call waits for a sign of life, so that the caller learns why.
const WAIT: Duration = Duration::from_secs(30);
/// How long a message may take from its share to its end if others wait for theirs. Less than they wait.
const HOLD: Duration = Duration::from_secs(15);
/// How often that is looked at while nothing comes.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// Shares are counted in pieces of this size.
const PIECE: usize = 4 << 10;
/// The budget of a board that does not say otherwise.
pub(crate) const DEFAULT: usize = 256 << 20;

/// The budget of a board. Clones are the same budget.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    /// All pieces. It only grows: what is shared out stays so.
    pieces: AtomicUsize,
    /// How many messages wait for a share.
    waiting: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(DEFAULT)
    }
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        let pieces = pieces(bytes);
        Self(Arc::new(Pool {
            free: Arc::new(Semaphore::new(pieces)),
            pieces: AtomicUsize::new(pieces),
            waiting: AtomicUsize::new(0),
        }))
    }

    /// Raises the budget. A smaller one than before changes nothing until the board is opened anew.
    pub(crate) fn raise(&self, bytes: usize) {
        let wanted = pieces(bytes);
        let before = self.0.pieces.fetch_max(wanted, Ordering::Relaxed);
        self.0.free.add_permits(wanted.saturating_sub(before));
    }

    /// How many bytes are shared out.
    pub(crate) fn used(&self) -> usize {
        let pieces = self.0.pieces.load(Ordering::Relaxed);
        pieces.saturating_sub(self.0.free.available_permits()) * PIECE
    }

    /// All bytes of it.
    pub(crate) fn limit(&self) -> usize {
        self.0.pieces.load(Ordering::Relaxed) * PIECE
    }

    /// What one connection may hold in one direction, whose messages have up to `max_message` bytes.
    pub(crate) fn account(&self, max_message: usize) -> Account {
        let quarter = self.limit() / 4;
        let most = max_message.min(quarter);
        let own = pieces(quarter);
        Account {
            budget: self.clone(),
            own: Arc::new(Semaphore::new(own)),
            most,
        }
    }
}

/// The part of the budget that one connection may hold in one direction.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    budget: Budget,
    own: Arc<Semaphore>,
    /// The largest share of one message.
    most: usize,
}

/// There was no room for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there was no room for it: the messages of all servers together may take {limit} bytes, the limit that `max_buffered` sets, and those of one server a quarter of that in each direction"
)]
pub(crate) struct NoRoom {
    pub(crate) limit: usize,
}

impl Account {
    pub(crate) fn no_room(&self) -> NoRoom {
        NoRoom {
            limit: self.budget.limit(),
        }
    }

    /// Whether other messages wait for a share.
    fn is_wanted(&self) -> bool {
        self.budget.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// A share for so many bytes, if there is one right now. No bytes need none.
    pub(crate) fn share_now(&self, bytes: usize) -> Result<Option<Share>, NoRoom> {
        if bytes == 0 {
            return Ok(None);
        }
        let count = permits(bytes);
        let own = self.own.clone().try_acquire_many_owned(count);
        let common = self.budget.0.free.clone().try_acquire_many_owned(count);
        match (own, common) {
            (Ok(own), Ok(common)) if bytes <= self.most => Ok(Some(Share { own, common })),
            _ => Err(self.no_room()),
        }
    }

    /// Makes a share large enough for so many bytes, if there is room for them right now. No bytes need none.
    pub(crate) fn grow_now(&self, share: &mut Option<Share>, bytes: usize) -> Result<(), NoRoom> {
        let held = share.as_ref().map_or(0, |share| share.common.num_permits());
        let count = pieces(bytes).saturating_sub(held);
        match (self.share_now(count * PIECE)?, share) {
            (Some(more), Some(share)) => share.merge(more),
            (Some(more), none) => *none = Some(more),
            (None, _) => {}
        }
        Ok(())
    }

    /// A share for a message of so many bytes, as soon as there is one. What is longer than a message may be gets no more than that.
    pub(crate) async fn share(&self, bytes: usize) -> Result<Share, NoRoom> {
        let count = permits(bytes.min(self.most));
        let taking = async {
            let own = self.own.clone().acquire_many_owned(count).await.ok()?;
            // Only messages of other connections are in the way of one that has come this far.
            let _waiting = Waiting::new(&self.budget.0.waiting);
            let common = self.budget.0.free.clone().acquire_many_owned(count).await.ok()?;
            Some(Share { own, common })
        };
        let taken = tokio::time::timeout(WAIT, taking).await;
        taken.ok().flatten().ok_or_else(|| self.no_room())
    }
}

/// Counts a message as waiting for as long as it lives.
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

/// The share of one message. It is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    own: OwnedSemaphorePermit,
    common: OwnedSemaphorePermit,
}

impl Share {
    fn merge(&mut self, more: Self) {
        self.own.merge(more.own);
        self.common.merge(more.common);
    }

    /// Gives back what a message of so many bytes does not need.
    fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.common.num_permits().saturating_sub(pieces(bytes));
        drop((self.own.split(surplus), self.common.split(surplus)));
    }
}

/// Gives back what so many bytes do not need.
pub(crate) fn shrink(share: &mut Option<Share>, bytes: usize) {
    match share {
        Some(share) if bytes > 0 => share.shrink_to(bytes),
        _ => *share = None,
    }
}

/// The share of a message that is being read.
#[derive(Debug)]
pub(crate) struct Growing {
    account: Account,
    share: Option<(Share, Instant)>,
}

impl Growing {
    pub(crate) fn new(account: Account) -> Self {
        Self { account, share: None }
    }

    pub(crate) fn no_room(&self) -> NoRoom {
        self.account.no_room()
    }

    pub(crate) fn has_share(&self) -> bool {
        self.share.is_some()
    }

    /// Makes sure that there is room for a message of which `held` bytes have come, and which may have up to `most`.
    pub(crate) async fn make_room(&mut self, held: usize, most: usize) -> Result<(), NoRoom> {
        match &self.share {
            None if held < FLOOR => Ok(()),
            None => {
                let share = self.account.share(most).await?;
                self.share = Some((share, Instant::now()));
                self.check(held)
            }
            Some(_) => self.check(held),
        }
    }

    /// Fails if the message has outgrown the largest share, or has taken too long while others wait.
    pub(crate) fn check(&self, held: usize) -> Result<(), NoRoom> {
        let is_overdue = |since: &Instant| since.elapsed() > HOLD && self.account.is_wanted();
        match &self.share {
            Some((_, since)) if held > self.account.most || is_overdue(since) => Err(self.no_room()),
            _ => Ok(()),
        }
    }

    /// Gives the share back, for a message that is not kept.
    pub(crate) fn let_go(&mut self) {
        self.share = None;
    }

    /// The complete message, which keeps the part of the share that it needs.
    pub(crate) fn complete(&mut self, message: Bytes) -> Bytes {
        match self.share.take() {
            Some((mut share, _)) if message.len() > FLOOR => {
                share.shrink_to(message.len());
                Bytes::from_owner(Charged { message, _share: share })
            }
            _ => message,
        }
    }
}

/// A message with its share.
struct Charged {
    message: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

/// The pieces that hold so many bytes.
fn pieces(bytes: usize) -> usize {
    bytes.div_ceil(PIECE).min(Semaphore::MAX_PERMITS)
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(pieces(bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[tokio::test]
    async fn small_messages_need_no_share_and_large_ones_give_theirs_back() {
        let budget = Budget::new(4 * MIB);
        let mut growing = Growing::new(budget.account(MIB));
        growing.make_room(FLOOR - 1, MIB).await.unwrap();
        assert_eq!(budget.used(), 0);
        growing.make_room(FLOOR, MIB).await.unwrap();
        assert_eq!(budget.used(), MIB, "as much as it may become");
        let message = growing.complete(Bytes::from(vec![b'x'; 100_000]));
        assert_eq!(budget.used(), 100_000_usize.next_multiple_of(PIECE));
        let part = message.slice(10..20);
        drop(message);
        assert!(budget.used() > 0, "a part of it is still held");
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_cannot_take_all_and_its_neighbours_go_on() {
        let budget = Budget::new(16 * MIB);
        let greedy = budget.account(100 * MIB);
        let held = greedy.share(100 * MIB).await.unwrap();
        assert_eq!(budget.used(), 4 * MIB);
        assert_eq!(greedy.share(MIB).await.unwrap_err().limit, 16 * MIB);
        let neighbour = budget.account(MIB);
        let theirs = neighbour.share(MIB).await.unwrap();
        drop((held, theirs));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_takes_too_long_yields_only_if_others_wait() {
        let budget = Budget::new(4 * MIB);
        let mut slow = Growing::new(budget.account(MIB));
        slow.make_room(FLOOR, MIB).await.unwrap();
        let others = [(); 3].map(|()| budget.account(MIB).share_now(MIB).unwrap());
        tokio::time::advance(HOLD * 2).await;
        assert_eq!(slow.check(FLOOR), Ok(()), "it takes nothing away from others");
        let third = budget.account(MIB);
        let waiting = tokio::spawn(async move { third.share(MIB).await.map(|_| ()) });
        tokio::task::yield_now().await;
        assert!(slow.check(FLOOR).is_err());
        slow.let_go();
        assert_eq!(waiting.await.unwrap(), Ok(()));
        drop(others);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_of_one_connection_do_not_yield_to_each_other() {
        let budget = Budget::new(8 * MIB);
        let account = budget.account(MIB);
        let mut slow = Growing::new(account.clone());
        slow.make_room(FLOOR, MIB).await.unwrap();
        let second = account.share_now(MIB).unwrap();
        let third = tokio::spawn(async move { account.share(MIB).await.map(|_| ()) });
        tokio::task::yield_now().await;
        tokio::time::advance(HOLD + LOOK).await;
        assert_eq!(slow.check(FLOOR), Ok(()));
        drop((slow, second));
        assert_eq!(third.await.unwrap(), Ok(()));
    }

    #[test]
    fn a_share_grows_and_shrinks_with_what_many_small_messages_take_together() {
        let budget = Budget::new(4 * MIB);
        let account = budget.account(MIB / 2);
        let mut share = None;
        for bytes in (0..=MIB).step_by(300) {
            account.grow_now(&mut share, bytes).unwrap();
            assert_eq!(budget.used(), bytes.next_multiple_of(PIECE));
        }
        assert!(account.grow_now(&mut share, MIB + PIECE).is_err());
        shrink(&mut share, 10_000);
        assert_eq!(budget.used(), 3 * PIECE);
        shrink(&mut share, 0);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_can_be_raised() {
        let budget = Budget::new(4 * MIB);
        let held = [(); 4].map(|()| budget.account(MIB).share_now(MIB).unwrap());
        let more = budget.account(MIB);
        assert!(more.share_now(MIB).is_err());
        budget.raise(5 * MIB);
        assert!(more.share_now(MIB).unwrap().is_some());
        assert!(more.share_now(0).unwrap().is_none());
        drop(held);
        assert_eq!((budget.used(), budget.limit()), (0, 5 * MIB));
    }
}
