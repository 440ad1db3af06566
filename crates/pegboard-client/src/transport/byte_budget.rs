//! A byte budget for the messages of all connections of a board.
//!
//! A message of up to [`FREE_BYTES`] needs no permit, so small messages neither wait for large ones nor touch state that connections share.
//! A larger message acquires a permit before more of it is read, for the largest size that it may still reach: if messages acquired permits
//! piecemeal, two half-read messages could wait for each other. While it waits, nothing is read from its connection. When the message is
//! complete, its permit shrinks to its length and is held until the bytes are dropped.
//!
//! In each direction one connection may hold at most a quarter of the budget. A result that is [handed over](ByteBudget::hand_over) to a client
//! counts no longer for the connection that it came from, so that a client that does not read does not keep a server from being read. Such
//! results may have half of the budget.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use pegboard_base::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

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
pub struct ByteBudget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    /// The total in units. It only grows, because acquired permits cannot be revoked.
    units: AtomicUsize,
    /// How many messages wait for a permit because of other connections.
    waiting: AtomicUsize,
    /// How many messages wait for a permit, for whatever reason.
    held_up: AtomicUsize,
    complete: Mutex<CompleteMessages>,
}

/// The complete messages that hold permits.
#[derive(Debug, Default)]
struct CompleteMessages {
    /// By the address of the first byte.
    messages: BTreeMap<usize, CompleteMessage>,
    /// How many units the messages have that clients hold.
    of_clients: usize,
    /// How many messages could not be handed over.
    refused: usize,
}

#[derive(Debug)]
struct CompleteMessage {
    /// The address after the last byte.
    end: usize,
    permit: Permit,
    holder: Holder,
}

/// Whose room a complete message takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// That of the connection that it came from.
    Connection,
    /// That of clients.
    Client,
    /// That of its connection, because clients have no room left.
    Refused,
}

impl CompleteMessages {
    /// The message that contains the byte at this address.
    fn find(&mut self, address: usize) -> Option<&mut CompleteMessage> {
        let (_, message) = self.messages.range_mut(..=address).next_back()?;
        (address < message.end).then_some(message)
    }

    fn hand_over(&mut self, address: usize, limit: usize) {
        let of_clients = self.of_clients;
        let Some(message) = self.find(address) else { return };
        let (before, units) = (message.holder, message.permit.common.num_permits());
        let fits = of_clients + units <= limit;
        match (before, fits) {
            (Holder::Client, _) | (Holder::Refused, false) => {}
            (Holder::Connection, false) => {
                message.holder = Holder::Refused;
                self.refused += 1;
            }
            (Holder::Connection | Holder::Refused, true) => {
                message.holder = Holder::Client;
                message.permit.release_own();
                self.of_clients += units;
                self.refused -= usize::from(before == Holder::Refused);
            }
        }
    }

    fn remove(&mut self, address: usize) -> Option<Permit> {
        let message = self.messages.remove(&address)?;
        match message.holder {
            Holder::Connection => {}
            Holder::Client => self.of_clients -= message.permit.common.num_permits(),
            Holder::Refused => self.refused -= 1,
        }
        Some(message.permit)
    }
}

impl Default for ByteBudget {
    fn default() -> Self {
        Self::new(DEFAULT)
    }
}

impl ByteBudget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let units = units(bytes);
        Self(Arc::new(Pool {
            free: Arc::new(Semaphore::new(units)),
            units: AtomicUsize::new(units),
            waiting: AtomicUsize::new(0),
            held_up: AtomicUsize::new(0),
            complete: Mutex::default(),
        }))
    }

    /// Raises the budget to `bytes`. A value below the current one has no effect until the board is reopened.
    pub fn raise(&self, bytes: usize) {
        let wanted = units(bytes);
        let before = self.0.units.fetch_max(wanted, Ordering::Relaxed);
        self.0.free.add_permits(wanted.saturating_sub(before));
    }

    /// How many bytes are in use.
    pub fn used_bytes(&self) -> usize {
        let units = self.0.units.load(Ordering::Relaxed);
        units.saturating_sub(self.0.free.available_permits()) * UNIT
    }

    /// Whether a connection is not read because one of its messages waits for a permit.
    pub fn is_short(&self) -> bool {
        self.0.held_up.load(Ordering::Relaxed) > 0
    }

    /// Moves the message that `part` belongs to from the quota of its connection to the room of clients, if there is enough. What is not the
    /// part of a message with a permit needs no room.
    pub fn hand_over(&self, part: &[u8]) {
        // The part of a message without its envelope may be shorter than what needs a permit.
        if part.len() > FREE_BYTES / 2 {
            let limit = self.0.units.load(Ordering::Relaxed) / 2;
            self.0.complete.lock().hand_over(part.as_ptr().addr(), limit);
        }
    }

    /// Whether the results that clients hold have taken all of their room.
    pub fn is_full_of_results(&self) -> bool {
        self.0.complete.lock().refused > 0
    }

    /// The total in bytes.
    pub fn limit(&self) -> usize {
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
pub struct NoRoom {
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
    /// Returns the share of the connection's quota.
    fn release_own(&mut self) {
        drop(self.own.split(self.own.num_permits()));
    }

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
                Bytes::from_owner(PermittedMessage::new(message, permit, &self.quota.budget))
            }
            _ => message,
        }
    }
}

/// A message that holds its permit until it is dropped.
struct PermittedMessage {
    message: Bytes,
    budget: ByteBudget,
}

impl PermittedMessage {
    fn new(message: Bytes, permit: Permit, budget: &ByteBudget) -> Self {
        let address = message.as_ptr().addr();
        let complete = CompleteMessage {
            end: address + message.len(),
            permit,
            holder: Holder::Connection,
        };
        budget.0.complete.lock().messages.insert(address, complete);
        Self {
            message,
            budget: budget.clone(),
        }
    }
}

impl Drop for PermittedMessage {
    fn drop(&mut self) {
        // Before the memory is free, so that no other message has the address yet.
        let permit = self.budget.0.complete.lock().remove(self.message.as_ptr().addr());
        drop(permit);
    }
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
mod tests;
